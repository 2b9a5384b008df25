//! Conditional requests: `ETag`, `If-None-Match` (304) and `If-Match` (412), on the routes whose row says so
//! ([`RouteConditions`]).
//!
//! A tag is the hash of the answer, or of the hashes of its parts, so whatever changes what a caller sees changes it,
//! whoever made the change. That nothing was changed between the look at the tag and the write is checked by the writer
//! ([`ExpectedVersion`]).

use crate::context::RequestContext;
use crate::problem::Problem;
use crate::routes::RouteConditions;
use crate::state::ServerState;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use node::commands::ExpectedVersion;
use serde::Serialize;

/// Bytes of a tag before they are written in hexadecimal.
const TAG_BYTES: usize = 16;
/// What a cache of one user may keep, if it asks each time whether it is still so.
const REVALIDATE: HeaderValue = HeaderValue::from_static("private, no-cache");

/// The tag of an answer.
fn tag(body: &[u8]) -> String {
    format!("\"{}\"", hex::encode(&blake3::hash(body).as_bytes()[..TAG_BYTES]))
}

/// The tag of an answer that is put together of parts, each told by its hash or by itself.
pub fn tag_of_parts<'a>(parts: impl Iterator<Item = &'a [u8]>) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    format!("\"{}\"", hex::encode(&hasher.finalize().as_bytes()[..TAG_BYTES]))
}

/// Whether a list of tags, as these headers have them, names this one. Weak tags are compared as strong ones: a proxy
/// that compresses makes them so.
fn names(list: &str, tag: &str) -> bool {
    list.split(',').map(str::trim).any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}

/// All tags that a header lists, on however many lines.
fn tags(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let lines: Vec<&str> = headers.get_all(name).iter().map(|line| line.to_str().unwrap_or_default()).collect();
    (!lines.is_empty()).then(|| lines.join(","))
}

/// Whether a caller has what this tag names already.
pub fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    tags(headers, &header::IF_NONE_MATCH).is_some_and(|known| names(&known, tag))
}

/// Adds tags to what is read, and answers those who have it already. Refuses `If-Match` where there is nothing to compare.
pub async fn conditional(request: Request, next: Next) -> Response {
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    let conditions = request.extensions().get::<RouteConditions>().copied().unwrap_or_default();
    if !is_read && conditions != RouteConditions::Compared && request.headers().contains_key(header::IF_MATCH) {
        return Problem::precondition("this path has no ETag to compare If-Match with").into_response();
    }
    let known = tags(request.headers(), &header::IF_NONE_MATCH);
    let response = next.run(request).await;
    match conditions == RouteConditions::Tagged && response.status() == StatusCode::OK {
        true => with_tag(response, known.as_deref()).await,
        false => response,
    }
}

async fn with_tag(response: Response, known: Option<&str>) -> Response {
    let (mut parts, mut body) = response.into_parts();
    let given = parts.headers.get(header::ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
    let tag = match given {
        Some(tag) => tag,
        None => {
            // What is tagged is no stream: it is in memory already.
            let Ok(bytes) = to_bytes(body, usize::MAX).await else {
                return Problem::broken("an answer could not be written").into_response();
            };
            let tag = tag(&bytes);
            body = Body::from(bytes);
            tag
        }
    };
    parts.headers.entry(header::CACHE_CONTROL).or_insert(REVALIDATE);
    let is_known = known.is_some_and(|known| names(known, &tag));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        parts.headers.insert(header::ETAG, tag);
    }
    match is_known {
        true => {
            parts.status = StatusCode::NOT_MODIFIED;
            parts.headers.remove(header::CONTENT_TYPE);
            Response::from_parts(parts, Body::empty())
        }
        false => Response::from_parts(parts, body),
    }
}

/// The tags that a caller wants what they change to have.
#[derive(Debug)]
pub struct ExpectedTag(String);

impl ExpectedTag {
    /// From `If-Match`, if it was sent with a request that was not done before: what is asked again is answered as the
    /// first time, although that has changed it.
    pub fn read(
        state: &ServerState,
        context: &RequestContext,
        headers: &HeaderMap,
    ) -> Result<Option<ExpectedTag>, Problem> {
        match tags(headers, &header::IF_MATCH) {
            Some(tags) if !state.is_repeated(context)? => Ok(Some(ExpectedTag(tags))),
            _ => Ok(None),
        }
    }

    /// The request, which is done only if nothing is changed from now on, if what it changes looks as expected.
    pub fn check<T: Serialize>(
        &self,
        mut context: RequestContext,
        shown: &T,
        version: ExpectedVersion,
    ) -> Result<RequestContext, Problem> {
        let body = serde_json::to_vec(shown).map_err(|_| Problem::broken("an answer could not be written"))?;
        if !names(&self.0, &tag(&body)) {
            return Err(Problem::precondition("it is not what If-Match names any more"));
        }
        context.expected = Some(version);
        Ok(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_named_alone_in_a_list_weakly_or_by_anything() {
        let tag = tag(b"{}");
        assert_eq!(tag.len(), 2 + 2 * TAG_BYTES);
        for list in [tag.clone(), format!("\"a\", {tag}"), format!("W/{tag} ,\"b\""), "*".to_owned()] {
            assert!(names(&list, &tag), "{list}");
        }
        for list in ["", "\"a\"", tag.trim_matches('"'), "W/*"] {
            assert!(!names(list, &tag), "{list}");
        }
    }
}
