//! `Idempotency-Key`: what makes a write safe to repeat.
//!
//! Authentication reads the body of a request that brings such a key, because the same key with another body is a mistake that
//! must be reported. Whether something was asked before is decided by the writer, with what it does.

use crate::context::RequestContext;
use crate::extract::RequestBody;
use crate::problem::Problem;
use axum::body::Body;
use axum::extract::{FromRequest as _, Request};
use http::uri::PathAndQuery;
use http::{HeaderMap, Method};
use node::commands::{CallerKind, IdempotencyKey};

/// The longest `Idempotency-Key`.
const KEY_BYTES_MAX: usize = 255;

/// The key, if one was sent.
fn key(headers: &HeaderMap) -> Result<Option<&[u8]>, Problem> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(key) = values.next() else { return Ok(None) };
    if values.next().is_some() || key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(Problem::bad_request("Idempotency-Key is one value of 1 to 255 bytes"));
    }
    Ok(Some(key.as_bytes()))
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}

/// The request again, and what makes it safe to repeat if it is a write that brings a key for that.
pub(crate) async fn read_key(
    context: &RequestContext,
    request: Request,
) -> Result<(Request, Option<IdempotencyKey>), Problem> {
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    let Some(key) = key(request.headers())?.filter(|_| !is_read) else { return Ok((request, None)) };
    // What the operator means without naming a space changes with the spaces that there are.
    let space = match context.caller.kind {
        CallerKind::Operator => request.headers().get("x-space").map_or(Vec::new(), |name| name.as_bytes().to_vec()),
        CallerKind::Key(_) | CallerKind::Session => context.space.map_or(Vec::new(), |space| space.0.to_vec()),
    };
    let user = context.caller.user.as_deref().unwrap_or_default();
    let who_and_key = hash(&[&space, &context.account, user.as_bytes(), key]);
    // Host and scheme are of the connection, not of the request.
    let path = request.uri().path_and_query().map(PathAndQuery::as_str).unwrap_or_default();
    let what = format!("{} {path}", request.method());
    let (parts, body) = request.into_parts();
    let mut bare = Request::new(body);
    // The limit of bodies is among the extensions.
    *bare.extensions_mut() = parts.extensions.clone();
    let RequestBody(body) = RequestBody::from_request(bare, &()).await?;
    let fingerprint = hash(&[what.as_bytes(), &body]);
    Ok((Request::from_parts(parts, Body::from(body)), Some(IdempotencyKey { who_and_key, fingerprint })))
}
