//! Asking the node that runs in this data folder, as its operator.

use crate::context::Context;
use crate::failure::Failure;
use crate::house::TokenFile;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::time::Duration;

/// An answer larger than this is not read.
const ANSWER_BYTES_MAX: usize = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// A node that runs.
#[derive(Debug)]
pub(crate) struct Remote {
    url: String,
    token: String,
}

impl Remote {
    /// The node that runs in this data folder, if one does.
    pub(crate) fn find(context: &Context) -> Option<Remote> {
        TokenFile::read(context).map(|(url, token)| Remote { url, token })
    }

    /// A node that this process serves.
    pub(crate) fn at(address: std::net::SocketAddr, token: &str) -> Remote {
        Remote { url: format!("http://{address}"), token: format!("op_{token}") }
    }

    /// Asks for something in a space; the answer is JSON, or nothing.
    pub(crate) fn ask(&self, method: Method, path: &str, space: &str, body: &Value) -> Result<Value, Failure> {
        let failed = |why: String| {
            let what_to_do = "check that the node runs; if it was killed, start it again, or remove operator.token";
            Failure::new(format!("the node at {} cannot be asked: {why}", self.url), what_to_do)
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|why| failed(why.to_string()))?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, self.url.trim_start_matches("http://"))
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::CONTENT_TYPE, "application/json");
        // Without a name the node takes the first space that it keeps.
        let request = if space.is_empty() { request } else { request.header("x-space", space) };
        let request = request.body(Full::new(Bytes::from(body.to_string()))).map_err(|why| failed(why.to_string()))?;
        let answer = runtime.block_on(async { tokio::time::timeout(PATIENCE, self.send(request)).await });
        let (status, body) = answer.map_err(|_| failed("it does not answer".into()))?.map_err(failed)?;
        let value: Value =
            if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap_or_default() };
        if status.is_success() {
            return Ok(value);
        }
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        Err(Failure::new(text("detail"), text("action")))
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes), String> {
        let stream = tokio::net::TcpStream::connect(self.url.trim_start_matches("http://"));
        let stream = stream.await.map_err(|why| why.to_string())?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|why| why.to_string())?;
        let answer = async {
            let response = sender.send_request(request).await.map_err(|why| why.to_string())?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
            Ok((status, body.map_err(|why| why.to_string())?.to_bytes()))
        };
        tokio::pin!(answer);
        tokio::select! {
            answer = &mut answer => answer,
            ended = connection => match ended {
                Ok(()) => answer.await,
                Err(why) => Err(why.to_string()),
            },
        }
    }
}
