//! Asking the node that runs in this data folder, as its operator.

mod pinned_tls;

use crate::context::Context;
use crate::data_folder;
use crate::failure::Failure;
use crate::home_space::TokenFile;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// An answer larger than this is not read.
const ANSWER_BYTES_MAX: usize = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(60);
/// For what may take as long as the disk does.
const PATIENCE_WITH_WORK: Duration = Duration::from_secs(24 * 3600);
/// How often to ask how far the work is.
const LOOK: Duration = Duration::from_millis(500);

const PAUSE: Duration = Duration::from_millis(100);

/// A node that runs.
#[derive(Debug)]
pub(crate) struct Remote {
    url: String,
    token: String,
    /// The file with the certificate that the node must have, if it speaks HTTPS.
    certificate: PathBuf,
}

impl Remote {
    /// The node that runs in this data folder, if one does. A token that a killed node left behind is not enough.
    pub(crate) fn find(context: &Context) -> Option<Remote> {
        let (url, token, certificate) = TokenFile::read(context)?;
        data_folder::is_in_use(context.data_dir()).then_some(Remote { url, token, certificate })
    }

    /// Where the node is reached.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A node that this process serves.
    pub(crate) fn at(address: std::net::SocketAddr, token: &str) -> Remote {
        Remote { url: format!("http://{address}"), token: format!("op_{token}"), certificate: PathBuf::new() }
    }

    /// Waits for as long as one should between two questions about the same work.
    pub(crate) fn pause(&self) {
        if let Ok(runtime) = self.runtime() {
            runtime.block_on(tokio::time::sleep(PAUSE));
        }
    }

    /// Asks for something in a space; the answer is JSON, or nothing.
    pub(crate) fn ask(&self, method: Method, path: &str, space: &str, body: &Value) -> Result<Value, Failure> {
        // Without a name the node takes the first space that it keeps.
        let request = self.request(method, path, Some(space).filter(|space| !space.is_empty()), body)?;
        self.runtime()?.block_on(self.answer(request, PATIENCE))
    }

    /// Asks for work, and meanwhile asks how far it is: the answer to a `GET` of the same path goes to a function.
    pub(crate) fn ask_for_work(
        &self,
        path: &str,
        body: &Value,
        progress: &mut dyn FnMut(&Value),
    ) -> Result<Value, Failure> {
        let work = self.request(Method::POST, path, None, body)?;
        self.runtime()?.block_on(async {
            let work = self.answer(work, PATIENCE_WITH_WORK);
            tokio::pin!(work);
            loop {
                tokio::select! {
                    answer = &mut work => return answer,
                    () = tokio::time::sleep(LOOK) => {
                        let look = self.request(Method::GET, path, None, &json!({}))?;
                        tokio::select! {
                            answer = &mut work => return answer,
                            // Not to know how far it is ends nothing.
                            state = self.answer(look, PATIENCE) => progress(&state.unwrap_or_default()),
                        }
                    }
                }
            }
        })
    }

    fn runtime(&self) -> Result<tokio::runtime::Runtime, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|why| self.failed(&why.to_string()))
    }

    fn failed(&self, why: &str) -> Failure {
        let what_to_do = "check that the node runs; if it was killed, start it again, or remove operator.token";
        Failure::new(format!("the node at {} cannot be asked: {why}", self.url), what_to_do)
    }

    /// Where to connect to, without the scheme.
    fn address(&self) -> &str {
        self.url.trim_start_matches("https://").trim_start_matches("http://")
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        space: Option<&str>,
        body: &Value,
    ) -> Result<Request<Full<Bytes>>, Failure> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, self.address())
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(space) = space {
            request = request.header("x-space", space);
        }
        request.body(Full::new(Bytes::from(body.to_string()))).map_err(|why| self.failed(&why.to_string()))
    }

    async fn answer(&self, request: Request<Full<Bytes>>, patience: Duration) -> Result<Value, Failure> {
        let answer = tokio::time::timeout(patience, self.send(request)).await;
        let answer = answer.map_err(|_| self.failed("it does not answer"))?;
        let (status, body) = answer.map_err(|why| self.failed(&why))?;
        let value: Value =
            if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap_or_default() };
        if status.is_success() {
            return Ok(value);
        }
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        Err(Failure::new(text("detail"), text("action")))
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes), String> {
        let stream = TcpStream::connect(self.address()).await.map_err(|why| why.to_string())?;
        if !self.url.starts_with("https://") {
            return exchange(stream, request).await;
        }
        let stream = pinned_tls::connect(stream, &self.certificate).await?;
        exchange(stream, request).await
    }
}

async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Bytes), String> {
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
