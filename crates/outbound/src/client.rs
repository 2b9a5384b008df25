//! The client that posts to vetted addresses.

use crate::addresses::{BadUrl, is_public, vet};
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

/// Resolves names to public addresses only.
#[derive(Debug)]
struct Vetting {
    allow_private: bool,
}

impl Resolve for Vetting {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let vetted: Vec<SocketAddr> = found.filter(|address| allow_private || is_public(address.ip())).collect();
            if vetted.is_empty() {
                return Err(BadUrl::Private.into());
            }
            Ok(Box::new(vetted.into_iter()) as Addrs)
        })
    }
}

/// An HTTP client that connects to public addresses only, unless it is told otherwise.
#[derive(Debug, Clone)]
pub struct OutboundClient {
    client: Option<Client>,
    allow_private: bool,
}

static PROVIDER: Once = Once::new();

impl OutboundClient {
    /// With `allow_private` it also connects to this machine and the network around it.
    pub fn new(allow_private: bool) -> OutboundClient {
        // It fails only where another part of the process has chosen one already.
        PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
        let built = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .dns_resolver(Arc::new(Vetting { allow_private }))
            .timeout(Duration::from_secs(SECONDS_MAX))
            .referer(false)
            .user_agent(concat!("anteroom/", env!("CARGO_PKG_VERSION")))
            .build();
        if let Err(why) = &built {
            tracing::warn!(%why, "the HTTP client could not be built; nothing can be sent to other hosts");
        }
        OutboundClient { client: built.ok(), allow_private }
    }

    /// The URL, if something may be sent there as far as can be said before its name is resolved.
    pub fn vet(&self, url: &str) -> Result<Url, BadUrl> {
        vet(url, self.allow_private)
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

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_is_not_connected_to() {
        let name = || "localhost".parse::<Name>().expect("a name");
        assert!(Vetting { allow_private: false }.resolve(name()).await.is_err());
        assert!(Vetting { allow_private: true }.resolve(name()).await.is_ok());
    }
}
