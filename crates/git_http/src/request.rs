//! What every request names: an owner and a repository.

use crate::app::{GitApp, blocking};
use crate::problems::GitProblem;
use axum::extract::{FromRequestParts, Path};
use http::HeaderMap;
use http::request::Parts;
use model::NostrKey;
use model::nostr::parse_npub;
use node::git::HostedRepository;
use std::sync::Arc;

/// What stands before the repositories of contributors (GRASP-06).
pub(crate) const CONTRIBUTIONS: &str = "/prs/";

/// The owner and the repository that a path names.
pub(crate) struct RepositoryPath {
    owner: NostrKey,
    identifier: String,
    is_contribution: bool,
}

impl<S: Send + Sync> FromRequestParts<S> for RepositoryPath {
    type Rejection = GitProblem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<RepositoryPath, GitProblem> {
        let is_contribution = parts.uri.path().starts_with(CONTRIBUTIONS);
        let named = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((npub, name)) = named.map_err(|_| GitProblem::not_found())?;
        let owner = parse_npub(&npub).ok_or_else(GitProblem::not_found)?;
        let identifier = name.strip_suffix(".git").filter(|name| !name.is_empty()).ok_or_else(GitProblem::not_found)?;
        Ok(RepositoryPath { owner, identifier: identifier.to_owned(), is_contribution })
    }
}

/// Looks up the repository of a path, off the threads that answer requests.
pub(crate) async fn hosted(app: &Arc<GitApp>, path: RepositoryPath) -> Result<HostedRepository, GitProblem> {
    let RepositoryPath { owner, identifier, is_contribution } = path;
    let found = blocking(app, move |service| match is_contribution {
        true => service.contribution(&owner, &identifier),
        false => service.repository(&owner, &identifier),
    });
    found.await?.ok_or_else(GitProblem::not_found)
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
