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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use axum::Router;
    use axum::body::Body;
    use axum::routing::get;
    use http::{Request, StatusCode};
    use tower::ServiceExt as _;

    async fn read(path: &str) -> (StatusCode, String) {
        let tell = |path: RepositoryPath| async move { format!("{} {}", path.identifier, path.is_contribution) };
        let router: Router = Router::new()
            .route("/{npub}/{repository}/info/refs", get(tell))
            .route("/prs/{npub}/{repository}/info/refs", get(tell));
        let request = Request::get(format!("{path}/info/refs")).body(Body::empty()).unwrap();
        let answer = router.oneshot(request).await.unwrap();
        let status = answer.status();
        let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn extract_identifier_from_repo_path_valid() {
        let npub = "npub1zde0qdyzrhkgu6ww0k59lytfwpu40wdjhejxhjkasrcpkujjd42qkh57pl";
        for (path, told) in [
            (format!("/{npub}/tool.git"), "tool false"),
            (format!("/{npub}/a%2Fb%20c.git.git"), "a/b c.git false"),
            (format!("/prs/{npub}/tool.git"), "tool true"),
        ] {
            assert_eq!(read(&path).await, (StatusCode::OK, told.to_owned()), "{path}");
        }
        for path in [format!("/{npub}/tool"), format!("/{npub}/.git"), "/npub1x/tool.git".into(), "/../tool.git".into()]
        {
            assert_eq!(read(&path).await.0, StatusCode::NOT_FOUND, "{path}");
        }
    }
}
