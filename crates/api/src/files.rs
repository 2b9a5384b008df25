//! Files: uploaded in one request, described, listed, changed, downloaded.

pub(crate) mod links;
pub(crate) mod resumable;
mod upload;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use model::files::FileStatus;
use model::{FileId, Nanos};
use node::commands::files::{FileChange, FileCommand};
use queries::Viewer;
use queries::files::{File, FileFilter, FileVersionShown, find_file, list_files, show_file, versions};
use queries::paging::page_limit;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use server::context::RequestContext;
use server::extract::{Path, Query, RequestBody};
use server::input::json;
use server::problem::Problem;
use server::state::{ServerState, SharedState};
use std::sync::Arc;
use store::Db;
use store::shared::files::FileRecord;
use store::tables::Snapshot;
pub(crate) use upload::{UploadQuery, replace, upload};
use utoipa::{IntoParams, ToSchema};

/// Files on one page.
const PAGE_MAX: usize = 200;

/// Which files are listed.
#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct FileQuery {
    /// Only files of these statuses, separated by commas: `created`, `uploading`, `uploaded`, `processing`, `processed`,
    /// `failed`, `archived`. All but archived ones, if nothing is said.
    #[param(
        pattern = "^(created|uploading|uploaded|processing|processed|failed|archived)(,(created|uploading|uploaded|processing|processed|failed|archived))*$"
    )]
    status: Option<String>,
    /// Only derived files of this family, for example `thumbnail`; only originals, if it is empty.
    derivation_type: Option<String>,
    /// Whether hidden files are listed as well.
    include_deleted: Option<bool>,
    /// At most so many.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<usize>,
    /// From the `next` of another page.
    #[param(pattern = "^[0-9]{1,19}-[0-9a-f]{32}$")]
    cursor: Option<String>,
}

/// A page of files, the latest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FilesPage {
    files: Vec<File>,
    /// Where to go on; absent at the end.
    next: Option<String>,
}

/// The versions of a file.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileVersions {
    versions: Vec<FileVersionShown>,
}

/// What is to change of a file; what is left out stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "kitten.png", "metadata": { "album": "cats" } }))]
pub(crate) struct FileBody {
    #[schema(min_length = 1, max_length = 255, pattern = r"^(?!\.\.?$)[^/\\\x00-\x1f\x7f-\x9f\u202a-\u202e]+$")]
    name: Option<String>,
    /// Replaces the metadata.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    /// Puts it away, or brings it back.
    archived: Option<bool>,
}

/// How a file is deleted.
#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct DeleteQuery {
    /// Whether its bytes and everything derived from it go for ever.
    purge: Option<bool>,
    /// Whether a hidden file is shown again instead.
    restore: Option<bool>,
}

/// Which bytes of a file are sent.
#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct ContentQuery {
    /// A rendition in place of the original, for example `thumbnail_256`.
    variant: Option<String>,
    /// An older version; the latest, if nothing is said.
    #[param(minimum = 1)]
    version: Option<u32>,
    /// Whether browsers are told to save it, whatever it is.
    download: Option<bool>,
}

/// A file that a request names, as its caller sees it.
struct Found {
    db: Arc<Db<Snapshot>>,
    viewer: Viewer,
    id: FileId,
    record: FileRecord,
}

fn find(state: &ServerState, context: &RequestContext, named: &str) -> Result<Found, Problem> {
    let db = state.node.snapshot()?;
    let viewer = context.read_as(&*db, state.node.now())?;
    let (id, record) = find_file(&*db, &viewer, named)?;
    Ok(Found { db, viewer, id, record })
}

impl Found {
    fn show(self) -> Result<File, Problem> {
        Ok(show_file(&*self.db, &self.viewer, self.id, self.record)?)
    }
}

pub(crate) async fn list(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<FileQuery>,
) -> Result<Json<FilesPage>, Problem> {
    let filter = FileFilter {
        statuses: parse_statuses(query.status.as_deref())?,
        derivation_type: query.derivation_type,
        include_deleted: query.include_deleted.unwrap_or(false),
        before: parse_place(query.cursor.as_deref())?,
    };
    let db = state.node.snapshot()?;
    let viewer = context.read_as(&*db, state.node.now())?;
    let (files, next) = list_files(&*db, &viewer, &filter, page_limit(query.limit, PAGE_MAX)?)?;
    Ok(Json(FilesPage { files, next: next.map(|(at, id)| format!("{}-{id}", at.0)) }))
}

fn parse_statuses(text: Option<&str>) -> Result<Vec<FileStatus>, Problem> {
    let Some(text) = text else {
        return Ok(FileStatus::ALL.iter().copied().filter(|status| *status != FileStatus::Archived).collect());
    };
    let read = |word: &str| {
        FileStatus::from_word(word).ok_or_else(|| {
            let words: Vec<&str> = FileStatus::ALL.iter().map(|status| status.word()).collect();
            Problem::bad_request(format!("{word:?} is no status of files; these are: {}", words.join(", ")))
        })
    };
    text.split(',').map(str::trim).map(read).collect()
}

fn parse_place(cursor: Option<&str>) -> Result<(Nanos, FileId), Problem> {
    let Some(cursor) = cursor else { return Ok((Nanos(u64::MAX), FileId([0xff; 16]))) };
    let read = || {
        let (at, id) = cursor.split_once('-')?;
        Some((Nanos(at.parse().ok()?), id.parse().ok()?))
    };
    read().ok_or_else(|| Problem::bad_request("the cursor is not one that a page of files gave"))
}

pub(crate) async fn get(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(file): Path<String>,
) -> Result<Json<File>, Problem> {
    find(&state, &context, &file)?.show().map(Json)
}

pub(crate) async fn list_versions(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(file): Path<String>,
) -> Result<Json<FileVersions>, Problem> {
    let found = find(&state, &context, &file)?;
    Ok(Json(FileVersions { versions: versions(&*found.db, &found.viewer, found.id)? }))
}

pub(crate) async fn change(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(file): Path<String>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Json<File>, Problem> {
    let FileBody { name, metadata, archived } = json(&headers, &body)?;
    let metadata = metadata.map(|metadata| Value::Object(metadata).to_string());
    let id = find(&state, &context, &file)?.id;
    state.change_file(&context, id, FileCommand::Change(FileChange { name, metadata, archived })).await?;
    find(&state, &context, &id.to_name())?.show().map(Json)
}

pub(crate) async fn delete(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(file): Path<String>,
    Query(query): Query<DeleteQuery>,
) -> Result<StatusCode, Problem> {
    let id = find(&state, &context, &file)?.id;
    let command = match (query.purge.unwrap_or(false), query.restore.unwrap_or(false)) {
        (true, true) => return Err(Problem::conflict("what is purged cannot be restored: say one of the two")),
        (true, false) => FileCommand::Purge,
        (false, true) => FileCommand::Undelete,
        (false, false) => FileCommand::Delete,
    };
    state.change_file(&context, id, command).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn retry(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(file): Path<String>,
) -> Result<StatusCode, Problem> {
    let id = find(&state, &context, &file)?.id;
    state.change_file(&context, id, FileCommand::Retry).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn content(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(file): Path<String>,
    Query(query): Query<ContentQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Found { db, viewer, id, record } = find(&state, &context, &file)?;
    let as_download = query.download.unwrap_or(false);
    let Some(variant) = query.variant else {
        let record = match query.version {
            None => record,
            Some(version) if version == record.version => record,
            // What the latest one is says nothing of an older one: it is sent as bytes.
            Some(version) if (1..record.version).contains(&version) => {
                FileRecord { version, media_type: String::new(), ..record }
            }
            Some(version) => return Err(Problem::not_found(format!("there is no version {version} of this file"))),
        };
        return state.send_file(viewer.space, id, &record, &headers, as_download).await;
    };
    let unknown = || Problem::not_found("there is no such rendition of this file; `renditions` lists what there is");
    let derived = db.derived_file(&viewer.space, id, &variant)?.ok_or_else(unknown)?;
    let Some(child) = derived.child else {
        let why = derived.error.unwrap_or_else(|| "it is not made yet".to_owned());
        return Err(Problem::status_conflict(format!("the rendition {variant} is {}: {why}", derived.status)));
    };
    let record = db.file(&viewer.space, child)?.ok_or_else(unknown)?;
    state.send_file(viewer.space, child, &record, &headers, as_download).await
}
