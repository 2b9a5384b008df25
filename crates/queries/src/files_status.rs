//! How files stand, for whoever looks after them: what there is of each status, what is stuck, what has failed, what does not
//! fit. The API, the pages and the command line show the same.

use crate::error::QueryError;
use model::calendar::Rfc3339;
use model::{FileId, Nanos, SpaceId};
use node::files::report::{FilesReport, StatusCount, StuckRow, files_report};
use serde::Serialize;
use store::Db;
use store::tables::TableReads;
use utoipa::ToSchema;

/// How files stand.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "counts": [{ "tier": "file", "derivation_type": "", "status": "processed", "count": 12 }],
    "backlog": 1, "open_uploads": 0, "stuck": [], "failed": [], "inconsistent": []
}))]
pub struct FilesStatus {
    pub counts: Vec<FilesCount>,
    /// Files that wait for work or are being worked on.
    pub backlog: u64,
    /// Uploads whose bytes are coming.
    pub open_uploads: u64,
    /// What has been in processing for ten minutes or more, the longest first.
    pub stuck: Vec<StuckFile>,
    /// Files that have failed, the latest first.
    pub failed: Vec<FailedFile>,
    /// Rows that do not fit each other.
    pub inconsistent: Vec<OddFile>,
}

/// How many rows of a tier have a status.
#[derive(Debug, Serialize, ToSchema)]
pub struct FilesCount {
    /// `file`, `object` or `derived`.
    pub tier: &'static str,
    /// The family of derived files; empty for originals.
    pub derivation_type: String,
    pub status: &'static str,
    pub count: u64,
}

/// A row that has been in one state for too long.
#[derive(Debug, Serialize, ToSchema)]
pub struct StuckFile {
    pub tier: &'static str,
    /// The original.
    pub parent: String,
    pub variant: Option<String>,
    /// The rendition, if it was made before.
    pub child: Option<String>,
    pub status: &'static str,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Rfc3339,
    /// How long it has been so.
    pub seconds: u64,
}

/// A file that has failed.
#[derive(Debug, Serialize, ToSchema)]
pub struct FailedFile {
    pub file: String,
    /// The space that it is in.
    pub space: String,
    pub name: String,
    pub error: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Rfc3339,
}

/// A file whose rows do not fit each other.
#[derive(Debug, Serialize, ToSchema)]
pub struct OddFile {
    pub file: String,
    pub what: String,
}

/// How the files of a space stand, or of all spaces. Every row of them is read.
pub fn files_status<V: TableReads>(db: &Db<V>, only: Option<SpaceId>, now: Nanos) -> Result<FilesStatus, QueryError> {
    let FilesReport { counts, backlog, open_uploads, stuck, failed, inconsistent } = files_report(db, only, now)?;
    let failed = failed.into_iter().map(|(space, file, record)| FailedFile {
        file: file.to_name(),
        space: space.to_string(),
        name: record.name,
        error: record.error,
        updated_at: Rfc3339(record.updated_at),
    });
    let inconsistent = inconsistent.into_iter().map(|(file, what)| OddFile { file: file.to_name(), what });
    Ok(FilesStatus {
        counts: counts.into_iter().map(show_count).collect(),
        backlog,
        open_uploads,
        stuck: stuck.into_iter().map(show_stuck).collect(),
        failed: failed.collect(),
        inconsistent: inconsistent.collect(),
    })
}

fn show_count(row: StatusCount) -> FilesCount {
    FilesCount { tier: row.tier, derivation_type: row.derivation_type, status: row.status, count: row.count }
}

fn show_stuck(row: StuckRow) -> StuckFile {
    StuckFile {
        tier: row.tier,
        parent: row.parent.to_name(),
        variant: row.variant,
        child: row.child.map(FileId::to_name),
        status: row.status,
        updated_at: Rfc3339(row.updated_at),
        seconds: row.seconds,
    }
}
