//! Links to files: made, listed and ended by whose file it is; followed by whoever has one.

use super::{File, find};
use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode};
use model::calendar::Rfc3339;
use model::{FileId, LinkId};
use node::commands::files::{FileCommand, NewFile, NewLink};
use node::files::upload::UploadRequest;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use server::context::RequestContext;
use server::extract::{Path, Query, RequestBody};
use server::files::links::{LinkName, OpenedLink, SignedQuery, link_url};
use server::input::json;
use server::problem::Problem;
use server::secrets::random_bytes;
use server::state::{ServerState, SharedState};
use store::shared::files::{FileLink, LinkPurpose};
use utoipa::{IntoParams, ToSchema};

/// How long a link is good for, if nobody says otherwise: a day.
const SECONDS_DEFAULT: u64 = 24 * 3600;

/// A link by which a file is downloaded, that is to be made.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({ "expires_in": 3600, "variant": "preview_1024" }))]
pub(crate) struct LinkBody {
    /// Which rendition is downloaded; the file itself, if nothing is said.
    #[schema(min_length = 1, max_length = 64)]
    variant: Option<String>,
    /// Seconds until it is not good any more: a day, if nothing is said.
    #[serde(default, deserialize_with = "whole_number")]
    #[schema(minimum = 1, maximum = 31_622_400)]
    expires_in: Option<u64>,
}

/// A link by which the bytes of a file, or of a new version of it, are uploaded, that is to be made.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({ "expires_in": 900, "size": 48213 }))]
pub(crate) struct UploadLinkBody {
    /// How many bytes are uploaded, exactly; any number within the limits, if nothing is said.
    #[serde(default, deserialize_with = "whole_number")]
    #[schema(minimum = 0, maximum = 17_179_869_184_u64)]
    size: Option<u64>,
    /// Seconds until it is not good any more: a day, if nothing is said.
    #[serde(default, deserialize_with = "whole_number")]
    #[schema(minimum = 1, maximum = 31_622_400)]
    expires_in: Option<u64>,
}

/// The greatest number below which every whole number is a number of JavaScript.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A whole number, also as some write it: `10.0` is one in JSON.
fn whole_number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(from)? else { return Ok(None) };
    let as_float = || number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..EXACT_MAX).contains(float));
    let whole = number.as_u64().or_else(|| as_float().map(|float| float as u64));
    whole.map(Some).ok_or_else(|| D::Error::custom("a whole number from 0 on is expected"))
}

/// A file whose bytes are uploaded by a link.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "cat.png", "size": 48213, "expires_in": 900 }))]
pub(crate) struct PresignedBody {
    #[schema(min_length = 1, max_length = 255, pattern = r"^(?!\.\.?$)[^/\\\x00-\x1f\x7f-\x9f\u202a-\u202e]+$")]
    name: String,
    /// Until the bytes tell.
    media_type: Option<String>,
    /// How many bytes are uploaded, exactly; any number within the limits, if nothing is said.
    #[serde(default, deserialize_with = "whole_number")]
    #[schema(minimum = 0, maximum = 17_179_869_184_u64)]
    size: Option<u64>,
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    /// Seconds until the link is not good any more: a day, if nothing is said.
    #[serde(default, deserialize_with = "whole_number")]
    #[schema(minimum = 1, maximum = 31_622_400)]
    expires_in: Option<u64>,
}

/// A link to a file.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "0f2e4d6c8b0a29384756647382910a0b", "method": "GET", "variant": null, "size": null,
    "url": "/v1/links/AQEB?expires=1774112649&sign=5d41", "created_at": "2026-03-21T17:04:09.000000001Z",
    "expires_at": "2026-03-22T17:04:09.000000001Z"
}))]
pub(crate) struct FileLinkShown {
    id: String,
    /// `GET` to download, `PUT` to upload.
    method: &'static str,
    /// The rendition that is downloaded.
    variant: Option<String>,
    /// How many bytes are uploaded.
    size: Option<u64>,
    /// On this node; whole, if the node knows its public address.
    url: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Rfc3339,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Rfc3339,
}

/// What was uploaded by a link. Whoever has the link learns nothing else of the file.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UploadedByLink {
    id: String,
    version: u32,
    status: &'static str,
    size: u64,
}

/// The links to a file that are still good.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileLinks {
    links: Vec<FileLinkShown>,
}

/// A file that was begun, and the link by which its bytes are uploaded.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PresignedUpload {
    file: File,
    link: FileLinkShown,
}

/// What the URL of a link says.
#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct LinkQuery {
    /// Unix seconds.
    expires: u64,
    /// How many bytes are uploaded.
    length: Option<u64>,
    /// An HMAC-SHA256 of the rest.
    #[param(pattern = "^[0-9a-f]{64}$")]
    sign: String,
}

impl LinkQuery {
    fn signed(self) -> SignedQuery {
        SignedQuery { expires: self.expires, length: self.length, signature: self.sign }
    }
}

fn show(state: &ServerState, name: &LinkName, link: &FileLink) -> Result<FileLinkShown, Problem> {
    let base = state.options.public_url.as_deref().unwrap_or_default();
    Ok(FileLinkShown {
        id: name.link.to_string(),
        method: link.purpose.method(),
        variant: link.purpose.variant().map(str::to_owned),
        size: link.purpose.size(),
        url: format!("{base}{}", link_url(name, link)?),
        created_at: Rfc3339(link.created_at),
        expires_at: Rfc3339(link.until),
    })
}

async fn make(
    state: &ServerState,
    context: &RequestContext,
    file: FileId,
    purpose: LinkPurpose,
    expires_in: Option<u64>,
) -> Result<FileLinkShown, Problem> {
    let most = state.options.limits.file_bytes_max;
    if purpose.size().is_some_and(|size| size > most) {
        return Err(Problem::too_large(format!("{most} bytes is the most that a file may have")));
    }
    let name = LinkName::draw(context.space()?, file)?;
    let new = NewLink { secret: random_bytes()?, purpose, seconds: expires_in.unwrap_or(SECONDS_DEFAULT) };
    state.change_file(context, file, FileCommand::MakeLink(name.link, new)).await?;
    let link = state.node.snapshot()?.file_link(&name.space, file, name.link)?;
    show(state, &name, &link.ok_or_else(|| Problem::not_found("the link was ended already"))?)
}

pub(crate) async fn create(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(file): Path<String>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<(StatusCode, Json<FileLinkShown>), Problem> {
    let body: LinkBody = if body.is_empty() { LinkBody::default() } else { json(&headers, &body)? };
    let found = find(&state, &context, &file)?;
    if let Some(variant) = &body.variant
        && found.db.derived_file(&found.viewer.space, found.id, variant)?.is_none()
    {
        return Err(Problem::not_found("there is no such rendition of this file; `renditions` lists what there is"));
    }
    let purpose = LinkPurpose::Download { variant: body.variant };
    Ok((StatusCode::CREATED, Json(make(&state, &context, found.id, purpose, body.expires_in).await?)))
}

pub(crate) async fn create_for_upload(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(file): Path<String>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<(StatusCode, Json<FileLinkShown>), Problem> {
    let body: UploadLinkBody = if body.is_empty() { UploadLinkBody::default() } else { json(&headers, &body)? };
    let id = find(&state, &context, &file)?.id;
    let purpose = LinkPurpose::Upload { size: body.size };
    Ok((StatusCode::CREATED, Json(make(&state, &context, id, purpose, body.expires_in).await?)))
}

pub(crate) async fn list(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(file): Path<String>,
) -> Result<Json<FileLinks>, Problem> {
    let found = find(&state, &context, &file)?;
    if found.viewer.identity() != Some(&found.record.owner) && !found.viewer.lists_all_files() {
        return Err(Problem::forbidden("links to a file are shown to whose file it is"));
    }
    let (space, now) = (found.viewer.space, state.node.now());
    let mut links = Vec::new();
    for (link, row) in found.db.file_links(&space, found.id)? {
        if row.until > now {
            links.push(show(&state, &LinkName { space, file: found.id, link }, &row)?);
        }
    }
    Ok(Json(FileLinks { links }))
}

pub(crate) async fn end(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((file, link)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let id = find(&state, &context, &file)?.id;
    let link: LinkId = link.parse().map_err(|_| Problem::not_found("there is no such link"))?;
    state.change_file(&context, id, FileCommand::EndLink(link)).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn presign(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<(StatusCode, Json<PresignedUpload>), Problem> {
    let PresignedBody { name, media_type, size, metadata, expires_in } = json(&headers, &body)?;
    let metadata = metadata.map(|metadata| Value::Object(metadata).to_string()).unwrap_or_default();
    let new = NewFile { name, media_type: media_type.unwrap_or_default(), size, metadata };
    let file = FileId(random_bytes()?);
    state.change_file(&context, file, FileCommand::Begin(new)).await?;
    let link = make(&state, &context, file, LinkPurpose::Upload { size }, expires_in).await?;
    let file = find(&state, &context, &file.to_name())?.show()?;
    Ok((StatusCode::CREATED, Json(PresignedUpload { file, link })))
}

pub(crate) async fn download(
    State(state): State<SharedState>,
    Path(key): Path<String>,
    Query(query): Query<LinkQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let OpenedLink { db, name, link, record } = state.open_link(&key, &query.signed(), "GET")?;
    let Some(variant) = link.purpose.variant() else {
        return state.send_file(name.space, name.file, &record, &headers, false).await;
    };
    let absent = || Problem::not_found("this rendition is not here");
    let derived = db.derived_file(&name.space, name.file, variant)?.and_then(|derived| derived.child);
    let child = derived.ok_or_else(absent)?;
    let record = db.file(&name.space, child)?.ok_or_else(absent)?;
    state.send_file(name.space, child, &record, &headers, false).await
}

pub(crate) async fn upload(
    State(state): State<SharedState>,
    Path(key): Path<String>,
    Query(query): Query<LinkQuery>,
    request: Request,
) -> Result<Response, Problem> {
    let opened = state.open_link(&key, &query.signed(), "PUT")?;
    let sha256 = super::upload::declared_hash(request.headers())?;
    let (size, caller, name) = (opened.link.purpose.size(), opened.caller(), opened.name);
    let begun = state.upload_request(name.space, caller.clone(), name.file)?;
    let body: Body = request.into_body();
    let (by_link, size_max) = (Some(name.link), size.unwrap_or(begun.size_max));
    let request = UploadRequest { sha256, by_link, size_max, size_min: size, ..begun };
    let (_, record) = state.receive_bytes(request, body.into_data_stream()).await?;
    let (status, size) = (record.status.word(), record.size.unwrap_or_default());
    let shown = UploadedByLink { id: name.file.to_name(), version: record.version, status, size };
    Ok((StatusCode::OK, Json(shown)).into_response())
}

#[cfg(test)]
mod tests {
    use super::UploadLinkBody;

    #[test]
    fn numbers_are_whole_however_they_are_written() {
        let read = |text: &str| serde_json::from_str::<UploadLinkBody>(text).ok().map(|body| body.size);
        assert_eq!(read(r#"{"size": 10}"#), Some(Some(10)));
        assert_eq!(read(r#"{"size": 10.0}"#), Some(Some(10)));
        assert_eq!([read("{}"), read(r#"{"size": null}"#)], [Some(None), Some(None)]);
        for bad in ["-1", "1.5", "1e300", "\"1\""] {
            assert_eq!(read(&format!("{{\"size\": {bad}}}")), None, "{bad}");
        }
    }
}
