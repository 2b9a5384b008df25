//! How files stand: how many of each status, what is stuck, what waits, what does not fit.

use crate::commands::files::jobs::LEASE_NANOS;
use engine::reads::StoreResult;
use model::files::{DerivedStatus, FileStatus, StoredStatus};
use model::{FileId, Nanos, SpaceId};
use std::collections::BTreeMap;
use store::Db;
use store::shared::files::FileRecord;
use store::tables::TableReads;

/// How many rows that are stuck or do not fit are listed.
const LISTED_MAX: usize = 1000;
/// Files that are read at once.
const PAGE: usize = 1000;

/// How many rows of a tier have a status.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StatusCount {
    /// `file`, `object` or `derived`.
    pub tier: &'static str,
    /// The family of derived files; empty for originals.
    pub derivation_type: String,
    pub status: &'static str,
    pub count: u64,
}

/// A row that has been in one state for too long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StuckRow {
    pub space: SpaceId,
    pub tier: &'static str,
    pub parent: FileId,
    /// The rendition, if it is about one.
    pub variant: Option<String>,
    pub child: Option<FileId>,
    pub status: &'static str,
    pub updated_at: Nanos,
    pub seconds: u64,
}

/// How files stand.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FilesReport {
    pub counts: Vec<StatusCount>,
    /// Work that waits or is done.
    pub backlog: u64,
    /// Uploads whose bytes are coming.
    pub open_uploads: u64,
    /// The longest in their state first.
    pub stuck: Vec<StuckRow>,
    /// Files that have failed, with why; the latest first.
    pub failed: Vec<(SpaceId, FileId, FileRecord)>,
    /// Rows that do not fit each other.
    pub inconsistent: Vec<(FileId, String)>,
}

/// How the files of a space stand, or of all spaces.
pub fn files_report<V: TableReads>(db: &Db<V>, only: Option<SpaceId>, now: Nanos) -> StoreResult<FilesReport> {
    let (backlog, open_uploads) = (db.file_job_count(only.as_ref())?, db.open_upload_count(only.as_ref())?);
    let mut report = FilesReport { backlog, open_uploads, ..FilesReport::default() };
    let mut counts: BTreeMap<(&'static str, String, &'static str), u64> = BTreeMap::new();
    let mut after = only.map(|space| (space, FileId::ZERO));
    loop {
        let files = db.files_after(after, PAGE)?;
        let is_last = files.len() < PAGE;
        after = files.last().map(|(space, file, _)| (*space, *file));
        for (space, file, record) in files {
            if only.is_some_and(|only| only != space) {
                after = None;
                break;
            }
            count_file(db, &space, file, &record, &mut counts)?;
            report.look_at(db, (&space, file), &record, now)?;
            if record.status == FileStatus::Failed && record.deleted_at.is_none() {
                report.failed.push((space, file, record));
            }
        }
        report.trim();
        if is_last || after.is_none() {
            break;
        }
    }
    report.counts = counts
        .into_iter()
        .map(|((tier, derivation_type, status), count)| StatusCount { tier, derivation_type, status, count })
        .collect();
    Ok(report)
}

fn count_file<V: TableReads>(
    db: &Db<V>,
    space: &SpaceId,
    file: FileId,
    record: &FileRecord,
    counts: &mut BTreeMap<(&'static str, String, &'static str), u64>,
) -> StoreResult<()> {
    let family = record.derivation.as_ref().map(|derived| derived.derivation_type.clone()).unwrap_or_default();
    *counts.entry(("file", family.clone(), record.status.word())).or_default() += 1;
    for (_, row) in db.file_versions(space, file)? {
        *counts.entry(("object", family.clone(), row.status.word())).or_default() += 1;
    }
    for row in db.derived_files(space, file)? {
        *counts.entry(("derived", row.derivation_type, row.status.word())).or_default() += 1;
    }
    Ok(())
}

impl FilesReport {
    /// Keeps what is listed, however many files there are.
    fn trim(&mut self) {
        self.stuck.sort_by_key(|row| row.updated_at);
        self.stuck.truncate(LISTED_MAX);
        self.failed.sort_by_key(|(_, _, record)| std::cmp::Reverse(record.updated_at));
        self.failed.truncate(LISTED_MAX);
        self.inconsistent.truncate(LISTED_MAX);
    }

    /// Notes what of a file is stuck, and what does not fit.
    fn look_at<V: TableReads>(
        &mut self,
        db: &Db<V>,
        (space, file): (&SpaceId, FileId),
        record: &FileRecord,
        now: Nanos,
    ) -> StoreResult<()> {
        let stuck = |tier, status, updated_at: Nanos| {
            let seconds = now.0.saturating_sub(updated_at.0) / Nanos::SECOND;
            let row =
                StuckRow { space: *space, tier, parent: file, variant: None, child: None, status, updated_at, seconds };
            (now.0.saturating_sub(updated_at.0) >= LEASE_NANOS).then_some(row)
        };
        let has_job = db.file_job(space, file)?.is_some();
        if record.status == FileStatus::Processing {
            self.stuck.extend(stuck("file", record.status.word(), record.updated_at));
            if !has_job {
                self.inconsistent.push((file, "the file is processing, and no work is noted for it".to_owned()));
            }
        }
        for (version, row) in db.file_versions(space, file)? {
            if row.status == StoredStatus::Processing {
                self.stuck.extend(stuck("object", row.status.word(), row.updated_at));
            }
            let has_bytes = row.content.is_some() || row.deleted_at.is_some();
            if matches!(row.status, StoredStatus::Uploaded | StoredStatus::Processed) && !has_bytes {
                self.inconsistent.push((file, format!("version {version} is {}, and has no bytes", row.status)));
            }
        }
        for row in db.derived_files(space, file)?.into_iter().filter(|row| row.deleted_at.is_none()) {
            if row.status == DerivedStatus::Processing {
                let row = stuck("derived", row.status.word(), row.updated_at).map(|found| StuckRow {
                    variant: Some(row.variant.clone()),
                    child: row.child,
                    ..found
                });
                self.stuck.extend(row);
            }
            let child = row.child.map(|child| db.file(space, child)).transpose()?.flatten();
            if row.status == DerivedStatus::Processed && child.is_none() {
                self.inconsistent.push((file, format!("{} is processed, and there is no such file", row.variant)));
            }
        }
        Ok(())
    }
}
