//! An upload in one request: the bytes as the body, or as a file of a form.

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, StatusCode};
use node::commands::files::NewFile;
use node::files::upload::UploadRequest;
use queries::files::{File, show_file};
use serde::Deserialize;
use server::context::RequestContext;
use server::extract::{Path, Query};
use server::files::upload::FormUpload;
use server::problem::Problem;
use server::state::SharedState;
use utoipa::IntoParams;

/// What is said of a file that is uploaded.
#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct UploadQuery {
    /// What it is called, unless a form says so in its own way; `file` if nobody says.
    #[param(min_length = 1, max_length = 255, pattern = r"^(?!\.\.?$)[^/\\\x00-\x1f\x7f-\x9f\u202a-\u202e]+$")]
    name: Option<String>,
}

pub(crate) async fn upload(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<UploadQuery>,
    request: Request,
) -> Result<Response, Problem> {
    let headers = request.headers().clone();
    let sha256 = declared_hash(&headers)?;
    let media_type = text(&headers, &CONTENT_TYPE).split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let (file, record) = if media_type == "multipart/form-data" {
        let FormUpload { file, record, .. } = state.receive_form(&context, request, query.name, sha256).await?;
        (file, record)
    } else {
        let name = query.name.unwrap_or_else(unnamed);
        let size = text(&headers, &CONTENT_LENGTH).parse().ok();
        if let Some(size) = size.filter(|size| *size > state.options.limits.file_bytes_max) {
            return Err(Problem::too_large(format!(
                "the file has {size} bytes, and {} is the most that is taken",
                state.options.limits.file_bytes_max
            )));
        }
        // What a command-line client says of anything that it sends says nothing.
        let media_type = if media_type == "application/x-www-form-urlencoded" { String::new() } else { media_type };
        let new = NewFile { name, media_type, size, metadata: String::new() };
        let body: Body = request.into_body();
        state.receive_file(&context, new, sha256, body.into_data_stream()).await?
    };
    let db = state.node.snapshot()?;
    let viewer = context.read_as(&*db, state.node.now())?;
    let place = [(LOCATION, format!("/v1/files/{}", file.to_name()))];
    Ok((StatusCode::CREATED, place, Json(show_file(&*db, &viewer, file, record)?)).into_response())
}

/// A new version of a file.
pub(crate) async fn replace(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(file): Path<String>,
    request: Request,
) -> Result<Json<File>, Problem> {
    let found = super::find(&state, &context, &file)?;
    let sha256 = declared_hash(request.headers())?;
    let begun = state.upload_request(context.space()?, context.caller.clone(), found.id)?;
    let body: Body = request.into_body();
    let request = UploadRequest { sha256, idempotency: context.idempotency, ..begun };
    state.receive_bytes(request, body.into_data_stream()).await?;
    super::find(&state, &context, &found.id.to_name())?.show().map(Json)
}

fn text<'h>(headers: &'h HeaderMap, name: &http::HeaderName) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// What a file is called that nobody named.
fn unnamed() -> String {
    "file".to_owned()
}

/// `Content-Digest: sha-256=:BASE64:` (RFC 9530).
pub(super) fn declared_hash(headers: &HeaderMap) -> Result<Option<[u8; 32]>, Problem> {
    let Some(value) = headers.get("content-digest").filter(|value| !value.is_empty()) else { return Ok(None) };
    let read = || {
        let digests = value.to_str().ok()?;
        let hash = digests.split(',').find_map(|digest| digest.trim().strip_prefix("sha-256=:")?.strip_suffix(':'))?;
        BASE64_STANDARD.decode(hash).ok()?.try_into().ok()
    };
    let malformed = || Problem::bad_request("Content-Digest is sha-256=:BASE64: as in RFC 9530");
    read().map(Some).ok_or_else(malformed)
}

#[cfg(test)]
mod tests {
    use super::declared_hash;
    use http::{HeaderMap, HeaderValue};

    #[test]
    fn a_declared_hash_is_read_or_refused() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("content-digest", HeaderValue::from_str(text).expect("a header"));
            declared_hash(&headers).ok()
        };
        let hash = "X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=";
        assert_eq!(read(&format!("sha-256=:{hash}:")).flatten().map(|hash| hash[0]), Some(0x5f));
        assert_eq!(read(&format!("md5=:AAAA:, sha-256=:{hash}:")).flatten().map(|hash| hash[0]), Some(0x5f));
        for bad in ["sha-256=hash", "sha-256=:AAAA:", "md5=:AAAA:"] {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert_eq!(declared_hash(&HeaderMap::new()).ok(), Some(None));
    }
}
