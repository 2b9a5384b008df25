//! Uploads in several goes, as tus 1.0 has them: what is under way is a row, and the next request goes on from there.
//!
//! The protocol is a handful of headers over our own uploads; libraries for it bring their own stores of what is under way.

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use model::calendar::Rfc3339;
use model::{FileId, Nanos};
use node::commands::files::NewFile;
use serde::Serialize;
use server::context::RequestContext;
use server::extract::Path;
use server::files::resumable::UploadState;
use server::problem::Problem;
use server::state::{ServerState, SharedState};
use utoipa::ToSchema;

const TUS_VERSION: HeaderValue = HeaderValue::from_static("1.0.0");
const TUS_EXTENSIONS: HeaderValue = HeaderValue::from_static("creation,creation-with-upload,expiration,termination");
const TUS_RESUMABLE: HeaderName = HeaderName::from_static("tus-resumable");
const UPLOAD_OFFSET: HeaderName = HeaderName::from_static("upload-offset");
const UPLOAD_LENGTH: HeaderName = HeaderName::from_static("upload-length");
const UPLOAD_EXPIRES: HeaderName = HeaderName::from_static("upload-expires");
/// What the bytes of a go are sent as.
const OFFSET_BYTES: &str = "application/offset+octet-stream";

/// An upload that comes in several goes.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "file": "file-5d41402abc4b2a76b9719d911017c592", "name": "film.mp4", "offset": 52428800, "size": 104857600,
    "complete": false, "expires_at": "2026-03-22T17:04:09.000000000Z"
}))]
pub(crate) struct ResumableUpload {
    /// The file that it makes.
    file: String,
    name: String,
    /// How many bytes have come, durably.
    offset: u64,
    /// How many there will be.
    size: u64,
    /// Whether all of them are here, and the file with them.
    complete: bool,
    /// When it is given up, if nothing comes until then.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Rfc3339>,
}

/// Adds what every answer of this protocol has.
fn tus(state: &ServerState, response: Response) -> Response {
    let mut response = response;
    let headers = response.headers_mut();
    headers.insert(TUS_RESUMABLE, TUS_VERSION);
    headers.insert("tus-version", TUS_VERSION);
    headers.insert("tus-extension", TUS_EXTENSIONS);
    headers.insert("tus-max-size", HeaderValue::from(state.options.limits.file_bytes_max));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn with_state(mut response: Response, state: &UploadState) -> Response {
    let headers = response.headers_mut();
    headers.insert(UPLOAD_OFFSET, HeaderValue::from(state.offset));
    headers.insert(UPLOAD_LENGTH, HeaderValue::from(state.size));
    let expires = state.until.and_then(|until| HeaderValue::from_str(&http_date(until)).ok());
    headers.extend(expires.map(|expires| (UPLOAD_EXPIRES, expires)));
    response
}

/// A time as headers have it.
fn http_date(at: Nanos) -> String {
    httpdate::fmt_http_date(std::time::UNIX_EPOCH + std::time::Duration::from_nanos(at.0))
}

/// Refuses callers who may not write, and another version of the protocol. Whoever says none speaks this one.
fn check(state: &ServerState, context: &RequestContext, headers: &HeaderMap) -> Result<(), Problem> {
    context.read_as(&*state.node.snapshot()?, state.node.now())?;
    match headers.get(TUS_RESUMABLE) {
        Some(version) if version != TUS_VERSION => {
            Err(Problem::protocol_version("this node speaks version 1.0.0 of tus: send `Tus-Resumable: 1.0.0`"))
        }
        Some(_) | None => Ok(()),
    }
}

fn number(headers: &HeaderMap, name: &HeaderName) -> Result<u64, Problem> {
    let text = headers.get(name).and_then(|value| value.to_str().ok());
    let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.filter(is_number).and_then(|text| text.parse().ok());
    number.ok_or_else(|| Problem::bad_request(format!("{name} is a number of bytes, and has to be sent")))
}

/// `Upload-Metadata: filename BASE64,filetype BASE64`.
fn parse_metadata(headers: &HeaderMap) -> Result<(Option<String>, Option<String>), Problem> {
    let malformed = || Problem::bad_request("Upload-Metadata is a list of names, each with a value in base64");
    let (mut name, mut media_type) = (None, None);
    let Some(value) = headers.get("upload-metadata").filter(|value| !value.is_empty()) else {
        return Ok((None, None));
    };
    for pair in value.to_str().map_err(|_| malformed())?.split(',') {
        let (key, encoded) = pair.trim().split_once(' ').unwrap_or((pair.trim(), ""));
        let bytes = BASE64_STANDARD.decode(encoded.trim()).map_err(|_| malformed())?;
        let text = String::from_utf8(bytes).map_err(|_| malformed())?;
        match key {
            "filename" | "name" => name = Some(text),
            "filetype" | "type" => media_type = Some(text),
            _ => {}
        }
    }
    Ok((name, media_type))
}

fn parse_file(named: &str) -> Result<FileId, Problem> {
    FileId::from_name(named).ok_or_else(|| Problem::not_found("there is no such upload"))
}

fn has_bytes(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| value == OFFSET_BYTES)
}

pub(crate) async fn create(
    State(state): State<SharedState>,
    context: RequestContext,
    request: Request,
) -> Result<Response, Problem> {
    let headers = request.headers().clone();
    check(&state, &context, &headers)?;
    let size = number(&headers, &UPLOAD_LENGTH)?;
    let (name, media_type) = parse_metadata(&headers)?;
    // Browsers say what a file is with parameters.
    let media_type = media_type.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let name = name.unwrap_or_else(|| "file".to_owned());
    let new = NewFile { name, media_type, size: Some(size), ..NewFile::default() };
    let mut begun = state.begin_upload(&context, new, size).await?;
    if has_bytes(&headers) && size > 0 {
        let body: Body = request.into_body();
        let more = state.receive_more(&context, begun.file, 0, body.into_data_stream()).await;
        // What breaks off here goes on later: the upload is there.
        begun = match more {
            Ok(more) => more,
            Err(why) if why.status == StatusCode::PAYLOAD_TOO_LARGE => return Err(why),
            Err(_) => state.upload_state(context.space()?, &context.caller, begun.file)?,
        };
    }
    let place = [(LOCATION, format!("/v1/uploads/{}", begun.file.to_name()))];
    let answer = (StatusCode::CREATED, place, Json(show(&begun))).into_response();
    Ok(tus(&state, with_state(answer, &begun)))
}

fn show(state: &UploadState) -> ResumableUpload {
    ResumableUpload {
        file: state.file.to_name(),
        name: state.record.name.clone(),
        offset: state.offset,
        size: state.size,
        complete: state.until.is_none(),
        expires_at: state.until.map(Rfc3339),
    }
}

pub(crate) async fn get(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(file): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    check(&state, &context, &headers)?;
    let found = state.upload_state(context.space()?, &context.caller, parse_file(&file)?)?;
    Ok(tus(&state, with_state(Json(show(&found)).into_response(), &found)))
}

pub(crate) async fn append(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(file): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let headers = request.headers().clone();
    check(&state, &context, &headers)?;
    if !has_bytes(&headers) {
        return Err(Problem::media_type(format!("send the bytes as {OFFSET_BYTES}")));
    }
    let offset = number(&headers, &UPLOAD_OFFSET)?;
    let body: Body = request.into_body();
    let found = state.receive_more(&context, parse_file(&file)?, offset, body.into_data_stream()).await?;
    Ok(tus(&state, with_state(StatusCode::NO_CONTENT.into_response(), &found)))
}

pub(crate) async fn end(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(file): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    check(&state, &context, &headers)?;
    state.end_upload(&context, parse_file(&file)?).await?;
    Ok(tus(&state, StatusCode::NO_CONTENT.into_response()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_read_or_refused() {
        let read = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("upload-metadata", HeaderValue::from_static(text));
            parse_metadata(&headers).ok()
        };
        let both = Some((Some("a.txt".to_owned()), Some("text/plain".to_owned())));
        assert_eq!(read("filename YS50eHQ=,filetype dGV4dC9wbGFpbg=="), both);
        assert_eq!(read("is_confidential, name YS50eHQ= ,type dGV4dC9wbGFpbg=="), both);
        assert_eq!(read(""), Some((None, None)));
        for bad in ["filename !", "filename /w=="] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn numbers_of_bytes_are_digits() {
        let read = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(UPLOAD_LENGTH, HeaderValue::from_static(text));
            number(&headers, &UPLOAD_LENGTH).ok()
        };
        assert_eq!([read("0"), read("18446744073709551615")], [Some(0), Some(u64::MAX)]);
        for bad in ["", "-1", "+1", "1.0", "18446744073709551616", "ten"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
