//! Files as those see them who may: their records, their versions, what was derived from them, and whether they are ready.
//!
//! Whoever may read a space and knows the id of a file, which is random, may read the file. Lists show people their own
//! files, and administration all of them.

use crate::error::QueryError;
use crate::viewer::Viewer;
use engine::access::Principal;
use engine::reads::Reads as _;
use engine::rows::ContentLocation;
use model::calendar::Rfc3339;
use model::files::{DERIVATION_DEPTH_MAX, DerivedStatus, FileStatus};
use model::{FileId, Nanos, SpaceNo};
use serde::Serialize;
use serde_json::Value;
use store::Db;
use store::shared::files::{DerivedFile, FileRecord, FileVersion};
use store::tables::TableReads;
use utoipa::ToSchema;

/// A file.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "file-5d41402abc4b2a76b9719d911017c592", "name": "cat.png", "media_type": "image/png", "size": 48213,
    "status": "processed", "ready": true, "owner": "alice", "created_at": "2026-03-21T17:04:09.000000001Z",
    "updated_at": "2026-03-21T17:04:10.000000001Z", "deleted_at": null, "metadata": {}, "version": 1, "error": null,
    "event": "3be9f54074dbd655150de80e02aedb4e", "hash": "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    "derivation_type": "", "variant": null, "parent": null, "renditions": []
}))]
pub struct File {
    pub id: String,
    pub name: String,
    /// By the bytes, where these tell.
    pub media_type: String,
    /// How many bytes it has, once that is known.
    pub size: Option<u64>,
    /// Where it stands.
    pub status: &'static str,
    /// Whether it can be downloaded and everything that is expected of it is there.
    pub ready: bool,
    /// The user who uploaded it, or the public key of an identity from elsewhere.
    pub owner: String,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Rfc3339,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Rfc3339,
    /// Since when it is hidden.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub deleted_at: Option<Rfc3339>,
    /// What whoever uploaded it keeps with it.
    pub metadata: Value,
    /// The latest version.
    pub version: u32,
    /// Why it has failed.
    pub error: Option<String>,
    /// The event that speaks of it.
    pub event: Option<String>,
    /// BLAKE3 of the bytes as they travel between nodes.
    pub hash: Option<String>,
    /// The family of a derived file; empty for an original.
    pub derivation_type: String,
    /// Which of its family it is.
    pub variant: Option<String>,
    /// What it was derived from.
    pub parent: Option<String>,
    /// What is derived from it, or is to be.
    pub renditions: Vec<FileRendition>,
}

/// A derived file that is expected of another.
#[derive(Debug, Serialize, ToSchema)]
pub struct FileRendition {
    pub derivation_type: String,
    pub variant: String,
    pub status: &'static str,
    /// The derived file, once it was made.
    pub file: Option<String>,
    pub width: Option<u32>,
    pub height: Option<u32>,
    /// How often it was begun.
    pub attempts: u32,
    pub error: Option<String>,
}

/// A version of a file, or the bytes of a rendition: what object stores call an object.
#[derive(Debug, Serialize, ToSchema)]
pub struct FileVersionShown {
    pub version: u32,
    pub size: Option<u64>,
    pub hash: Option<String>,
    pub status: &'static str,
    /// Where the bytes are: `database`, the word of the place of objects, or `absent`.
    pub backend: &'static str,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Rfc3339,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Rfc3339,
    pub error: Option<String>,
}

impl Viewer {
    /// Whether the viewer sees the files of everybody in lists.
    pub fn lists_all_files(&self) -> bool {
        matches!(self.principal, Principal::Operator | Principal::Key { user: None, .. })
    }
}

/// A file by its id, or by the id of its event.
pub fn find_file<V: TableReads>(db: &Db<V>, viewer: &Viewer, named: &str) -> Result<(FileId, FileRecord), QueryError> {
    let unknown = || QueryError::not_found("there is no such file");
    let id = match FileId::from_name(named) {
        Some(id) => Some(id),
        None => named.parse().ok().map(|event| db.file_of_event(&event)).transpose()?.flatten(),
    };
    let id = id.ok_or_else(unknown)?;
    let record = db.file(&viewer.space, id)?.ok_or_else(unknown)?;
    let is_own = viewer.identity() == Some(&record.owner);
    if is_hidden(db, viewer, &record)? && !is_own && !viewer.lists_all_files() {
        return Err(unknown());
    }
    if viewer.blocked.contains(&record.owner) {
        return Err(unknown());
    }
    Ok((id, record))
}

/// Whether a file is hidden, or something that it was derived from.
fn is_hidden<V: TableReads>(db: &Db<V>, viewer: &Viewer, record: &FileRecord) -> Result<bool, QueryError> {
    let (mut is_hidden, mut derivation) = (record.deleted_at.is_some(), record.derivation.clone());
    for _ in 0..DERIVATION_DEPTH_MAX {
        let Some(derived) = derivation else { break };
        let parent = db.file(&viewer.space, derived.parent)?;
        is_hidden |= parent.as_ref().is_none_or(|parent| parent.deleted_at.is_some());
        derivation = parent.and_then(|parent| parent.derivation);
    }
    Ok(is_hidden)
}

/// A file as it is shown.
pub fn show_file<V: TableReads>(
    db: &Db<V>,
    viewer: &Viewer,
    id: FileId,
    record: FileRecord,
) -> Result<File, QueryError> {
    let mut derived = db.derived_files(&viewer.space, id)?;
    derived.retain(|row| row.deleted_at.is_none() || record.deleted_at.is_some());
    let version = db.file_version(&viewer.space, id, record.version)?;
    let is_at_work = db.file_job(&viewer.space, id)?.is_some();
    let is_ready = !is_at_work && is_ready(db, viewer.no, &record, version.as_ref(), &derived)?;
    let owner = db.user_name(&viewer.space, &record.owner)?;
    let owner = owner.map_or_else(|| record.owner.to_string(), |name| name.to_string());
    let metadata = serde_json::from_str(&record.metadata).unwrap_or_else(|_| Value::Object(serde_json::Map::new()));
    let derivation = record.derivation.as_ref();
    Ok(File {
        id: id.to_name(),
        media_type: record.media_type.clone(),
        size: record.size,
        status: record.status.word(),
        ready: is_ready,
        owner,
        created_at: Rfc3339(record.created_at),
        updated_at: Rfc3339(record.updated_at),
        deleted_at: record.deleted_at.map(Rfc3339),
        metadata,
        version: record.version,
        error: record.error.clone(),
        event: record.event.map(|event| event.to_string()),
        hash: version.and_then(|row| row.content).map(|content| content.hash.to_string()),
        derivation_type: derivation.map(|derivation| derivation.derivation_type.clone()).unwrap_or_default(),
        variant: derivation.map(|derivation| derivation.variant.clone()),
        parent: derivation.map(|derivation| derivation.parent.to_name()),
        renditions: derived.into_iter().map(show_rendition).collect(),
        name: record.name,
    })
}

fn show_rendition(derived: DerivedFile) -> FileRendition {
    let (width, height) = derived.dimensions.unzip();
    FileRendition {
        status: derived.status.word(),
        file: derived.child.map(FileId::to_name),
        derivation_type: derived.derivation_type,
        variant: derived.variant,
        width,
        height,
        attempts: derived.attempts,
        error: derived.error,
    }
}

/// Whether the bytes of a file are here and everything that is expected of it was made.
fn is_ready<V: TableReads>(
    db: &Db<V>,
    space: SpaceNo,
    record: &FileRecord,
    version: Option<&FileVersion>,
    derived: &[DerivedFile],
) -> Result<bool, QueryError> {
    let Some(content) = version.and_then(|row| row.content) else { return Ok(false) };
    let row = db.content(space, &content.hash)?;
    let is_here = content.len == 0 || row.is_some_and(|row| row.place != ContentLocation::Absent);
    let is_shown = matches!(record.status, FileStatus::Uploaded | FileStatus::Processed | FileStatus::Archived);
    Ok(is_here && is_shown && derived.iter().all(|derived| derived.status == DerivedStatus::Processed))
}

/// The versions of a file, the first one first.
pub fn versions<V: TableReads>(db: &Db<V>, viewer: &Viewer, id: FileId) -> Result<Vec<FileVersionShown>, QueryError> {
    let mut shown = Vec::new();
    for (version, row) in db.file_versions(&viewer.space, id)? {
        let place = row.content.map(|content| db.content(viewer.no, &content.hash)).transpose()?.flatten();
        let backend = match place.map(|row| row.place) {
            Some(ContentLocation::Row) => "database",
            Some(ContentLocation::Object(_)) => db.objects_word(),
            Some(ContentLocation::Absent) | None => "absent",
        };
        shown.push(FileVersionShown {
            version,
            size: row.size,
            hash: row.content.map(|content| content.hash.to_string()),
            status: row.status.word(),
            backend,
            created_at: Rfc3339(row.created_at),
            updated_at: Rfc3339(row.updated_at),
            error: row.error,
        });
    }
    Ok(shown)
}

/// What of the files of a space is listed.
#[derive(Clone, Debug)]
pub struct FileFilter {
    pub statuses: Vec<FileStatus>,
    /// Only originals, if empty; derived files of this family otherwise; both, if nothing is said.
    pub derivation_type: Option<String>,
    pub include_deleted: bool,
    /// Files before this one, the latest first.
    pub before: FilePlace,
}

/// Where a list of files goes on.
pub type FilePlace = (Nanos, FileId);

/// A page of files, and where the next one begins.
pub fn list_files<V: TableReads>(
    db: &Db<V>,
    viewer: &Viewer,
    filter: &FileFilter,
    most: usize,
) -> Result<(Vec<File>, Option<FilePlace>), QueryError> {
    let groups: Vec<u8> = (0..4u8)
        .filter(|group| match filter.derivation_type.as_deref() {
            Some("") => group & 1 == 0,
            Some(_) => group & 1 == 1,
            None => true,
        })
        .filter(|group| filter.include_deleted || group & 2 == 0)
        .collect();
    let (mut files, mut before) = (Vec::new(), filter.before);
    // Those of others, and of other families, are passed over: a page looks at a bounded number of them.
    for _ in 0..PAGES_PASSED_OVER_MAX {
        let page = db.list_files(&viewer.space, &filter.statuses, &groups, before, most)?;
        let is_last = page.len() < most;
        for (id, record) in page {
            before = (record.created_at, id);
            let is_listed = viewer.lists_all_files() || viewer.identity() == Some(&record.owner);
            let family = record.derivation.as_ref().map(|derivation| derivation.derivation_type.as_str());
            let fits = filter.derivation_type.as_deref().is_none_or(|wanted| family.unwrap_or_default() == wanted);
            if is_listed && fits {
                files.push(show_file(db, viewer, id, record)?);
            }
            if files.len() == most {
                return Ok((files, Some(before)));
            }
        }
        if is_last {
            return Ok((files, None));
        }
    }
    // Whose file was passed over last is nobody's business: only its time is said.
    Ok((files, Some((before.0, FileId::ZERO))))
}

/// How many pages of files that are not listed are passed over for one that is.
const PAGES_PASSED_OVER_MAX: usize = 20;
