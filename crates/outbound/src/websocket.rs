//! WebSockets to vetted addresses.

use crate::client::{GetError, OutboundClient};
use reqwest::Upgraded;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

/// A WebSocket to another host.
pub type OutboundSocket = WebSocketStream<Upgraded>;

impl OutboundClient {
    /// Opens a WebSocket that takes messages of at most so many bytes. The address is vetted as for every other request;
    /// nobody is followed elsewhere.
    pub async fn connect_websocket(&self, url: &str, message_bytes_max: usize) -> Result<OutboundSocket, GetError> {
        let url = match url.strip_prefix("ws") {
            Some(rest) if rest.starts_with("://") || rest.starts_with("s://") => format!("http{rest}"),
            _ => return Err(GetError::Url(crate::BadUrl::Scheme)),
        };
        let key = generate_key();
        let answer = self.upgrade(&url, &key).await?;
        if answer.status().as_u16() != 101 {
            return Err(GetError::Status(answer.status().as_u16()));
        }
        let accepted = answer.headers().get("sec-websocket-accept").and_then(|value| value.to_str().ok());
        if accepted != Some(derive_accept_key(key.as_bytes()).as_str()) {
            return Err(GetError::NoAnswer);
        }
        let stream = answer.upgrade().await.map_err(|_| GetError::NoAnswer)?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(message_bytes_max))
            .max_frame_size(Some(message_bytes_max));
        Ok(WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await)
    }
}
