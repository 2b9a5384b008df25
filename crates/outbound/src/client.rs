//! The client that asks vetted addresses, and posts to them.

use crate::addresses::{AllowedNetworks, BadUrl, vet};
use bytes::Bytes;
use http::HeaderMap;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Url};
use std::net::SocketAddr;
use std::sync::{Arc, Once};
use std::time::Duration;

/// How long a request may take in total.
const SECONDS_MAX: u64 = 10;
/// How much of an answer is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Why a request was not answered. It does not say what was found on the way, which would help to scan a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Nothing is sent to that URL.
    #[error(transparent)]
    Url(#[from] BadUrl),
    /// No connection, no answer in time, or one that broke off.
    #[error("there was no answer")]
    NoAnswer,
}

/// Why nothing was got from a URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GetError {
    /// Nothing is sent to that URL, or to the one that it leads to.
    #[error(transparent)]
    Url(#[from] BadUrl),
    #[error("there was no answer")]
    NoAnswer,
    #[error("it redirects more than {REDIRECTS_MAX} times")]
    Redirects,
    #[error("it redirects to something that is no URL")]
    BadRedirect,
    /// Limits are kept for each host: whoever could lead elsewhere could have any host asked as often as they like.
    #[error("it redirects to another host, {0}")]
    OtherHost(String),
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
    #[error("it answers with status {0}")]
    Status(u16),
}

/// How often a request follows to another URL.
const REDIRECTS_MAX: usize = 5;

/// What was got from a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboundAnswer {
    /// Where it came from in the end.
    pub url: Url,
    /// The address that answered; it was vetted.
    pub address: SocketAddr,
    pub content_type: String,
    pub body: Vec<u8>,
}

/// Resolves names to allowed addresses only.
#[derive(Debug)]
struct Vetting {
    allowed: AllowedNetworks,
}

impl Resolve for Vetting {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = self.allowed.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let vetted: Vec<SocketAddr> = found.filter(|address| allowed.contain(address.ip())).collect();
            if vetted.is_empty() {
                return Err(BadUrl::Private.into());
            }
            Ok(Box::new(vetted.into_iter()) as Addrs)
        })
    }
}

/// An HTTP client that connects to allowed addresses only, whatever a name leads to when it is asked.
#[derive(Debug, Clone)]
pub struct OutboundClient {
    client: Option<Client>,
    allowed: AllowedNetworks,
}

static PROVIDER: Once = Once::new();

/// It fails only where another part of the process has chosen one already.
fn install_provider() {
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
}

/// How long a host that the operator named may take to be reached, and to say more.
const CONNECT_SECONDS_MAX: u64 = 10;
const SILENT_SECONDS_MAX: u64 = 60;

/// A client for hosts that the operator named in the configuration: their addresses are not vetted. It follows nobody and
/// asks no proxy.
pub fn client_for_configured_hosts() -> Result<Client, String> {
    install_provider();
    let built = Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(CONNECT_SECONDS_MAX))
        .read_timeout(Duration::from_secs(SILENT_SECONDS_MAX))
        .referer(false)
        .user_agent(concat!("anteroom/", env!("CARGO_PKG_VERSION")))
        .build();
    built.map_err(|why| why.to_string())
}

impl OutboundClient {
    /// A client for these networks.
    pub fn new(allowed: AllowedNetworks) -> OutboundClient {
        install_provider();
        let built = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .dns_resolver(Arc::new(Vetting { allowed: allowed.clone() }))
            .timeout(Duration::from_secs(SECONDS_MAX))
            .referer(false)
            .user_agent(concat!("anteroom/", env!("CARGO_PKG_VERSION")))
            .build();
        if let Err(why) = &built {
            tracing::warn!(%why, "the HTTP client could not be built; nothing can be sent to other hosts");
        }
        OutboundClient { client: built.ok(), allowed }
    }

    /// The URL, if something may be sent there as far as can be said before its name is resolved.
    pub fn vet(&self, url: &str) -> Result<Url, BadUrl> {
        vet(url, &self.allowed)
    }

    /// Gets what is at a URL, at most so many bytes. Each redirect is vetted like the URL itself, and stays with
    /// its host; nobody is told where the request came from, and no answer but a good one counts.
    pub async fn get(&self, url: &str, headers: &HeaderMap, bytes_max: usize) -> Result<OutboundAnswer, GetError> {
        let client = self.client.as_ref().ok_or(GetError::NoAnswer)?;
        let mut url = self.vet(url)?;
        for _ in 0..=REDIRECTS_MAX {
            let request = client.get(url.clone()).headers(headers.clone());
            let mut answer = request.send().await.map_err(|_| GetError::NoAnswer)?;
            if answer.status().is_redirection() {
                url = self.follow(&url, &answer)?;
                continue;
            }
            if !answer.status().is_success() {
                return Err(GetError::Status(answer.status().as_u16()));
            }
            let address = answer.remote_addr().ok_or(GetError::NoAnswer)?;
            let content_type = answer.headers().get(http::header::CONTENT_TYPE);
            let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
            let mut body = Vec::new();
            while let Some(chunk) = answer.chunk().await.map_err(|_| GetError::NoAnswer)? {
                body.extend_from_slice(&chunk);
                if body.len() > bytes_max {
                    return Err(GetError::TooLong(bytes_max));
                }
            }
            return Ok(OutboundAnswer { url, address, content_type, body });
        }
        Err(GetError::Redirects)
    }

    /// Where an answer leads to, if something may be sent there.
    fn follow(&self, from: &Url, answer: &reqwest::Response) -> Result<Url, GetError> {
        let location = answer.headers().get(http::header::LOCATION).and_then(|value| value.to_str().ok());
        let to = location.and_then(|location| from.join(location).ok()).ok_or(GetError::BadRedirect)?;
        let to = self.vet(to.as_str())?;
        match to.host_str() {
            host if host == from.host_str() => Ok(to),
            other => Err(GetError::OtherHost(other.unwrap_or_default().to_owned())),
        }
    }

    /// Asks for a WebSocket, with that key.
    pub(crate) async fn upgrade(&self, url: &str, key: &str) -> Result<reqwest::Response, GetError> {
        let url = self.vet(url)?;
        let client = self.client.as_ref().ok_or(GetError::NoAnswer)?;
        let request = client.get(url).version(http::Version::HTTP_11);
        let request = request.header("connection", "Upgrade").header("upgrade", "websocket");
        let request = request.header("sec-websocket-version", "13").header("sec-websocket-key", key);
        request.send().await.map_err(|_| GetError::NoAnswer)
    }

    /// As [`OutboundClient::get`], for a thread that may wait.
    pub fn get_and_wait(&self, url: &str, headers: &HeaderMap, bytes_max: usize) -> Result<OutboundAnswer, GetError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|_| GetError::NoAnswer)?;
        runtime.block_on(self.get(url, headers, bytes_max))
    }

    /// Posts a body and returns the status of the answer, whatever it is.
    pub async fn post(&self, url: &str, headers: HeaderMap, body: Bytes) -> Result<u16, SendError> {
        let url = self.vet(url)?;
        let client = self.client.as_ref().ok_or(SendError::NoAnswer)?;
        let mut answer = client.post(url).headers(headers).body(body).send().await.map_err(|_| SendError::NoAnswer)?;
        let mut read = 0;
        // A short answer is read to its end, so that the connection can be used again.
        while read < ANSWER_BYTES_MAX {
            match answer.chunk().await.map_err(|_| SendError::NoAnswer)? {
                Some(chunk) => read += chunk.len(),
                None => break,
            }
        }
        Ok(answer.status().as_u16())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_is_not_connected_to() {
        let name = || "localhost".parse::<Name>().expect("a name");
        assert!(Vetting { allowed: AllowedNetworks::public() }.resolve(name()).await.is_err());
        assert!(Vetting { allowed: AllowedNetworks::all() }.resolve(name()).await.is_ok());
    }

    /// Listens on an address of this machine and gives these answers, one per connection. Says where.
    async fn answers(ip: &str, answers: Vec<String>) -> String {
        let listener = TcpListener::bind((ip, 0)).await.expect("an address");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            for answer in answers {
                let (mut connection, _) = listener.accept().await.expect("a connection");
                let _ = connection.read(&mut [0; 4096]).await;
                let _ = connection.write_all(answer.as_bytes()).await;
            }
        });
        format!("http://{address}")
    }

    fn good(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
    }

    fn redirect(to: &str) -> String {
        format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    }

    #[tokio::test]
    async fn redirects_are_followed_to_allowed_addresses_only() {
        let only = AllowedNetworks::with_private(vec!["127.0.0.2/32".parse().expect("a network")]);
        let (client, none) = (OutboundClient::new(only), HeaderMap::new());
        let end = answers("127.0.0.2", vec![good("here"), good("there")]).await;
        let found = client.get(&end, &none, 100).await.expect("an answer");
        assert_eq!((found.body.as_slice(), found.address.ip().to_string()), (b"here".as_slice(), "127.0.0.2".into()));
        let start = answers("127.0.0.2", vec![redirect(&format!("{end}/x"))]).await;
        let found = client.get(&start, &none, 100).await.expect("an answer");
        assert_eq!((found.body.as_slice(), found.url.path()), (b"there".as_slice(), "/x"));
        // Into this machine, by number and by name, and to what is no web address.
        let inside = answers("127.0.0.1", vec![good("secret")]).await;
        let by_name = inside.replace("127.0.0.1", "localhost");
        for (to, why) in [
            (inside.as_str(), GetError::Url(BadUrl::Private)),
            (by_name.as_str(), GetError::OtherHost("localhost".to_owned())),
            ("file:///etc/passwd", GetError::Url(BadUrl::Scheme)),
            ("http://user@127.0.0.2/", GetError::Url(BadUrl::Userinfo)),
            ("http://[", GetError::BadRedirect),
        ] {
            let start = answers("127.0.0.2", vec![redirect(to)]).await;
            assert_eq!(client.get(&start, &none, 100).await, Err(why), "{to}");
        }
        let client = OutboundClient::new(AllowedNetworks::all());
        let elsewhere = answers("127.0.0.3", vec![good("there")]).await;
        let start = answers("127.0.0.2", vec![redirect(&elsewhere)]).await;
        assert_eq!(client.get(&start, &none, 100).await, Err(GetError::OtherHost("127.0.0.3".to_owned())));
        let round = answers("127.0.0.2", vec![redirect("/again"); 9]).await;
        assert_eq!(client.get(&round, &none, 100).await, Err(GetError::Redirects));
    }

    #[tokio::test]
    async fn a_websocket_is_one_only_if_the_server_has_read_the_request() {
        let client = OutboundClient::new(AllowedNetworks::all());
        let switch = |accept: &str| {
            format!("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{accept}\r\n")
        };
        let wrong = switch("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n");
        for (answer, why) in
            [(wrong, GetError::NoAnswer), (switch(""), GetError::NoAnswer), (good("page"), GetError::Status(200))]
        {
            let url = answers("127.0.0.1", vec![answer]).await.replacen("http", "ws", 1);
            assert_eq!(client.connect_websocket(&url, 100).await.map(drop), Err(why));
        }
    }

    #[tokio::test]
    async fn answers_are_bounded_and_have_to_be_good() {
        let (client, none) = (OutboundClient::new(AllowedNetworks::all()), HeaderMap::new());
        let url = answers("127.0.0.1", vec![good("12345"), good("123456")]).await;
        assert!(client.get(&url, &none, 5).await.is_ok());
        assert_eq!(client.get(&url, &none, 5).await, Err(GetError::TooLong(5)));
        let bad = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned();
        let url = answers("127.0.0.1", vec![bad]).await;
        assert_eq!(client.get(&url, &none, 5).await, Err(GetError::Status(404)));
        assert_eq!(client.get("http://127.0.0.1:1/", &none, 5).await, Err(GetError::NoAnswer));
    }
}
