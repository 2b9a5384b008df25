//! A server on a real socket, and clients that say whatever they like to it, byte by byte.

use super::TestServer;
use crate::app::App;
use crate::listen::{RunningServer, serve};
use crate::options::{Limits, ServerOptions};
use crate::state::ServerState;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};

/// How often another client tries: one that was slow itself may have been turned away.
const TRIES: usize = 100;

/// A test server that listens.
pub struct Wire {
    pub home: TestServer,
    server: RunningServer,
}

impl Wire {
    /// Limits that are reached soon.
    pub fn impatient_limits() -> Limits {
        let (header_timeout, write_stall_timeout) = (Duration::from_millis(300), Duration::from_millis(100));
        Limits { header_timeout, write_stall_timeout, request_seconds: 1, ..Limits::default() }
    }

    pub async fn new(make_app: fn(Arc<ServerState>) -> App, limits: Limits) -> Wire {
        let options = ServerOptions { limits, ..ServerOptions::default() };
        let home = TestServer::new(make_app, options, store::StoreOptions::default());
        let server = serve(home.app(), SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a server");
        Wire { home, server }
    }

    /// A client that has said nothing yet.
    pub async fn client(&self) -> Client {
        Client(TcpStream::connect(self.server.address).await.expect("a connection"))
    }

    /// A client that takes as little as possible at a time.
    pub async fn narrow_client(&self) -> Client {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4096).expect("a small buffer");
        Client(socket.connect(self.server.address).await.expect("a connection"))
    }

    /// Says this, and hears everything until the server closes.
    pub async fn said(&self, bytes: &[u8]) -> Vec<u8> {
        let client = self.client().await;
        client.says_and_hears(bytes).await
    }

    /// Says this, and gives the status of the answer; zero if the connection was closed without one.
    pub async fn status(&self, bytes: &[u8]) -> (u16, String) {
        let heard = String::from_utf8_lossy(&self.said(bytes).await).into_owned();
        let status = heard.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        (status.unwrap_or(0), heard)
    }

    /// Whoever else asks is answered.
    pub async fn others_are_answered(&self) {
        for _ in 0..TRIES {
            let (status, _) = self.status(b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
            if status == 200 {
                return;
            }
        }
        panic!("others are not answered");
    }

    /// Posts this again and again while somebody listens, who has just asked to. Ends when they were cut off.
    pub async fn says_until_nobody_listens(&self, listener: &Client, text: &str) {
        // The head of the answer, or the first frames of HTTP/2.
        listener.hears_some().await;
        while self.home.state.hub.subscribers() == 0 {
            tokio::task::yield_now().await;
        }
        while self.home.state.hub.subscribers() > 0 {
            let body = Some(serde_json::json!({ "body": text }));
            let answer = self.home.by("alice", "POST", "/v1/threads/t/messages", body).await;
            assert_eq!(answer.status, 201, "{answer:?}");
        }
        self.others_are_answered().await;
    }

    /// A request of alice with this body.
    pub fn post(&self, path: &str, body: &[u8]) -> Vec<u8> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: a\r\nx-api-key: {}\r\nx-user-id: alice\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n",
            self.home.backend,
            body.len()
        );
        [head.as_bytes(), body].concat()
    }
}

/// One end of a connection.
pub struct Client(TcpStream);

impl Client {
    /// Says everything, unless the other end closes first.
    pub async fn says(&self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.0.writable().await.is_ok() {
            match self.0.try_write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(why) if why.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    /// Hears a part; nothing if the other end closed.
    pub async fn hears_some(&self) -> Vec<u8> {
        let mut bytes = vec![0; 65_536];
        while self.0.readable().await.is_ok() {
            match self.0.try_read(&mut bytes) {
                Ok(read) => {
                    bytes.truncate(read);
                    return bytes;
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
        Vec::new()
    }

    /// Hears everything until the other end closes.
    pub async fn hears(&self) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            match self.hears_some().await {
                some if some.is_empty() => return all,
                some => all.extend(some),
            }
        }
    }

    /// Both at the same time, so that neither end waits for the other.
    pub async fn says_and_hears(&self, bytes: &[u8]) -> Vec<u8> {
        tokio::join!(self.says(bytes), self.hears()).1
    }
}
