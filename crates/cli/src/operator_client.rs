//! HTTP client for the node that runs in this data folder, authenticated with the operator's token.

mod pinned_tls;

use crate::context::Context;
use crate::data_folder;
use crate::failure::Failure;
use crate::operator_token::{TokenFile, TokenLines};
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

const RESPONSE_BYTES_MAX: usize = 64 << 20;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// For requests that run until a long operation ends, such as a backup.
const LONG_REQUEST_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// How often to query the progress of a long request.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);
/// How often to query the state of a job.
const JOB_POLL_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct OperatorClient {
    url: String,
    token: String,
    /// With TLS: the file with the certificate that the node must present.
    certificate: PathBuf,
    /// What links begin with that people follow.
    public_url: String,
}

impl OperatorClient {
    /// `None` if no node runs in this data folder. A killed node leaves its token file behind, so the lock is checked too.
    pub(crate) fn find(context: &Context) -> Option<OperatorClient> {
        let TokenLines { url, token, certificate, public_url } = TokenFile::read(context)?;
        data_folder::is_in_use(context.data_dir()).then_some(OperatorClient { url, token, certificate, public_url })
    }

    pub(crate) fn public_url(&self) -> &str {
        &self.public_url
    }

    /// For a node that this process serves.
    pub(crate) fn for_address(address: std::net::SocketAddr, token: &str) -> OperatorClient {
        let url = format!("http://{address}");
        OperatorClient { public_url: url.clone(), url, token: format!("op_{token}"), certificate: PathBuf::new() }
    }

    /// Waits before the state of a job is queried again.
    pub(crate) fn wait_for_next_poll(&self) {
        if let Ok(runtime) = self.runtime() {
            // The timer belongs to the runtime, so it is made inside of it.
            runtime.block_on(async { tokio::time::sleep(JOB_POLL_INTERVAL).await });
        }
    }

    /// Sends a request about a space. An empty space name means the first space of the node. The response is JSON, or
    /// `Null` if its body is empty.
    pub(crate) fn send_json(&self, method: Method, path: &str, space: &str, body: &Value) -> Result<Value, Failure> {
        let request = self.request(method, path, Some(space).filter(|space| !space.is_empty()), body)?;
        self.runtime()?.block_on(self.exchange_json(request, REQUEST_TIMEOUT))
    }

    /// Sends a long request, and waits for its end.
    pub(crate) fn post_long<T: serde::de::DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, Failure> {
        let request = self.request(Method::POST, path, None, body)?;
        let answer = self.runtime()?.block_on(self.exchange_json(request, LONG_REQUEST_TIMEOUT))?;
        serde_json::from_value(answer).map_err(|why| self.failed(&why.to_string()))
    }

    /// Sends a long request, and meanwhile passes the response to a `GET` of the same path to `progress`.
    pub(crate) fn post_with_progress(
        &self,
        path: &str,
        body: &Value,
        progress: &mut dyn FnMut(&Value),
    ) -> Result<Value, Failure> {
        let work = self.request(Method::POST, path, None, body)?;
        self.runtime()?.block_on(async {
            let work = self.exchange_json(work, LONG_REQUEST_TIMEOUT);
            tokio::pin!(work);
            loop {
                tokio::select! {
                    response = &mut work => return response,
                    () = tokio::time::sleep(PROGRESS_INTERVAL) => {
                        let query = self.request(Method::GET, path, None, &json!({}))?;
                        tokio::select! {
                            response = &mut work => return response,
                            // A failed query does not end the request.
                            state = self.exchange_json(query, REQUEST_TIMEOUT) => progress(&state.unwrap_or_default()),
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
        let what_to_do = "check that the node runs and try again";
        Failure::new(format!("the request to the node at {} failed: {why}", self.url), what_to_do)
    }

    /// Host and port.
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

    async fn exchange_json(&self, request: Request<Full<Bytes>>, timeout: Duration) -> Result<Value, Failure> {
        let response = tokio::time::timeout(timeout, self.send(request)).await;
        let response = response.map_err(|_| self.failed("timeout"))?;
        let (status, body) = response.map_err(|why| self.failed(&why))?;
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
    let response = async {
        let response = sender.send_request(request).await.map_err(|why| why.to_string())?;
        let status = response.status();
        let body = Limited::new(response.into_body(), RESPONSE_BYTES_MAX).collect().await;
        Ok((status, body.map_err(|why| why.to_string())?.to_bytes()))
    };
    tokio::pin!(response);
    tokio::select! {
        response = &mut response => response,
        ended = connection => match ended {
            Ok(()) => response.await,
            Err(why) => Err(why.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::OperatorClient;

    #[test]
    fn waiting_for_a_job_needs_no_runtime_of_the_caller() {
        OperatorClient::for_address(([127, 0, 0, 1], 1).into(), "token").wait_for_next_poll();
    }
}
