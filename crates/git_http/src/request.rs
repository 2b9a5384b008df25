//! What every request names: an owner and a repository.

use crate::app::{GitApp, blocking};
use crate::problems::GitProblem;
use http::HeaderMap;
use model::NostrKey;
use node::git::HostedRepository;
use nostr::key::PublicKey;
use nostr::nips::nip19::FromBech32 as _;
use std::sync::Arc;

/// Looks up the repository of a path, off the threads that answer requests.
pub(crate) async fn hosted(app: &Arc<GitApp>, npub: &str, name: &str) -> Result<HostedRepository, GitProblem> {
    let owner = parse_npub(npub).ok_or_else(GitProblem::not_found)?;
    let identifier = name.strip_suffix(".git").filter(|name| !name.is_empty()).ok_or_else(GitProblem::not_found)?;
    let identifier = identifier.to_owned();
    let found = blocking(app, move |service| service.repository(&owner, &identifier)).await?;
    found.ok_or_else(GitProblem::not_found)
}

fn parse_npub(text: &str) -> Option<NostrKey> {
    let is_npub = text.starts_with("npub1") && text.len() == 63;
    PublicKey::from_bech32(text).ok().filter(|_| is_npub).map(|key| NostrKey(key.to_bytes()))
}

/// The version of git's protocol that a client asks for.
pub(crate) fn protocol(headers: &HeaderMap) -> Option<String> {
    let asked = headers.get("git-protocol")?.to_str().ok()?;
    asked.split(':').find(|part| part.starts_with("version=")).map(str::to_owned)
}

/// Whether a body is compressed, which git does with long lists.
pub(crate) fn is_compressed(headers: &HeaderMap) -> Result<bool, GitProblem> {
    match headers.get(http::header::CONTENT_ENCODING).map(|value| value.as_bytes()) {
        None | Some(b"identity") => Ok(false),
        Some(b"gzip" | b"x-gzip") => Ok(true),
        Some(_) => Err(GitProblem(http::StatusCode::UNSUPPORTED_MEDIA_TYPE, "bodies are plain or gzip".into())),
    }
}
