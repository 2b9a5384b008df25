//! Backfill: originals are looked at again, some in each commit. What is missing of them is made, what is there and not noted
//! is noted, what is noted and not there is told.
//!
//! One look serves the dry run, which only reads, and the command, which acts on it.

use crate::commands::files::FileError;
use crate::commands::files::renditions::child_id;
use crate::writer_command::WriterCommand;
use engine::reads::{Reads as _, StoreResult};
use engine::rows::ContentLocation;
use model::files::{DerivedStatus, FileStatus, StoredStatus};
use model::{FileId, SpaceId};
use serde::{Deserialize, Serialize};
use store::shared::files::{DerivedFile, FileJob, FileRecord, StatusChange};
use store::tables::TableReads;
use store::{Batch, Db};

/// How the audit log calls it.
const WHO: &str = "backfill";

/// What a backfill does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BackfillOptions {
    /// The renditions that are expected of images.
    pub variants: Vec<String>,
    /// Whether statuses are brought in line with what is there.
    pub fix_status: bool,
}

/// A backfill goes on after this file.
pub type BackfillPlace = Option<(SpaceId, FileId)>;

/// What was found of one file, where something is to be told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BackfillFinding {
    pub file: String,
    /// The rendition it is about; none for the file itself.
    pub variant: Option<String>,
    pub what: String,
}

/// What a part of a backfill came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BackfillPage {
    /// How many originals were looked at.
    pub processed: u64,
    /// Those of which everything is there and noted.
    pub valid: u64,
    /// The others.
    pub invalid: u64,
    /// Those for which work was put into the queue, or would be.
    pub queued: u64,
    /// Statuses that were brought in line, or would be.
    pub fixed: u64,
    pub findings: Vec<BackfillFinding>,
    /// Where it goes on; none at the end.
    pub next: BackfillPlace,
}

/// What is to be done about one original.
#[derive(Default)]
struct FileVerdict {
    /// Why it is to be processed.
    queue: Option<String>,
    /// Relations that are to be *processed*, because what they speak of is there.
    verified: Vec<String>,
    /// Whether the record is to be *uploaded*, because its bytes are here.
    is_uploaded: bool,
    findings: Vec<(Option<String>, String)>,
}

impl FileVerdict {
    fn is_valid(&self) -> bool {
        self.queue.is_none() && self.findings.is_empty()
    }

    fn fixed(&self) -> u64 {
        self.verified.len() as u64 + u64::from(self.is_uploaded)
    }

    fn tell(&mut self, variant: Option<&str>, what: &str) {
        self.findings.push((variant.map(str::to_owned), what.to_owned()));
    }
}

/// Looks at a part of all originals, and changes nothing.
pub fn look_at<V: TableReads>(
    db: &Db<V>,
    options: &BackfillOptions,
    after: BackfillPlace,
    most: usize,
) -> StoreResult<BackfillPage> {
    let mut page = BackfillPage::default();
    each_original(db, after, most, &mut page, |page, space, file, record| {
        note(page, file, &judge_file(db, space, (file, record), options)?);
        Ok(())
    })?;
    Ok(page)
}

/// Looks at a part of all originals, and does what is to be done.
#[derive(Clone, Debug)]
pub struct Backfill {
    pub options: BackfillOptions,
    pub after: BackfillPlace,
    pub most: usize,
}

impl WriterCommand for Backfill {
    type Answer = BackfillPage;
    type Error = FileError;

    fn run(&self, batch: &mut Batch<'_>) -> Result<BackfillPage, FileError> {
        let mut page = BackfillPage::default();
        let mut verdicts = Vec::new();
        each_original(batch.db(), self.after, self.most, &mut page, |page, space, file, record| {
            let verdict = judge_file(batch.db(), space, (file, record), &self.options)?;
            note(page, file, &verdict);
            verdicts.push((*space, file, verdict));
            Ok(())
        })?;
        for (space, file, verdict) in verdicts {
            act(batch, &space, file, &verdict)?;
        }
        Ok(page)
    }
}

/// Calls a function for each original that has bytes, or should have some, and is not hidden.
fn each_original<V: TableReads>(
    db: &Db<V>,
    after: BackfillPlace,
    most: usize,
    page: &mut BackfillPage,
    mut each: impl FnMut(&mut BackfillPage, &SpaceId, FileId, &FileRecord) -> StoreResult<()>,
) -> StoreResult<()> {
    let files = db.files_after(after, most)?;
    page.next = files.last().filter(|_| files.len() == most).map(|(space, file, _)| (*space, *file));
    for (space, file, record) in &files {
        if record.derivation.is_none() && record.deleted_at.is_none() && record.status != FileStatus::Uploading {
            each(page, space, *file, record)?;
        }
    }
    Ok(())
}

fn note(page: &mut BackfillPage, file: FileId, verdict: &FileVerdict) {
    page.processed += 1;
    page.valid += u64::from(verdict.is_valid());
    page.invalid += u64::from(!verdict.is_valid());
    page.queued += u64::from(verdict.queue.is_some());
    page.fixed += verdict.fixed();
    page.findings.extend(verdict.findings.iter().map(|(variant, what)| BackfillFinding {
        file: file.to_name(),
        variant: variant.clone(),
        what: what.clone(),
    }));
}

/// What is to be done about an original.
fn judge_file<V: TableReads>(
    db: &Db<V>,
    space: &SpaceId,
    (file, record): (FileId, &FileRecord),
    options: &BackfillOptions,
) -> StoreResult<FileVerdict> {
    let mut verdict = FileVerdict::default();
    match record.status {
        FileStatus::Created => {
            if is_here(db, space, file, record.version.max(1))? {
                verdict.tell(None, "the record says created, and its bytes are here");
                verdict.is_uploaded = options.fix_status;
            }
            return Ok(verdict);
        }
        FileStatus::Failed => {
            let why = record.error.as_deref().unwrap_or("nobody said why");
            verdict.tell(None, &format!("it has failed: {why}"));
            return Ok(verdict);
        }
        FileStatus::Uploading => return Ok(verdict),
        FileStatus::Uploaded | FileStatus::Processing | FileStatus::Processed | FileStatus::Archived => {}
    }
    let is_image = db.file_version(space, file, record.version)?.is_some_and(|row| row.is_renderable);
    if !is_image || db.file_job(space, file)?.is_some() {
        return Ok(verdict);
    }
    if !is_here(db, space, file, record.version)? {
        verdict.tell(None, "its bytes are not here, so nothing can be made of it");
        return Ok(verdict);
    }
    let mut missing = Vec::new();
    for variant in &options.variants {
        let relation = db.derived_file(space, file, variant)?.filter(|row| row.deleted_at.is_none());
        let is_there = match &relation {
            Some(row) => {
                let current = child_id(file, record.version, variant);
                row.child == Some(current) && child_is_there(db, space, row)?
            }
            None => false,
        };
        match relation.map(|row| row.status) {
            Some(DerivedStatus::Processed) if is_there => {}
            Some(DerivedStatus::Processed) => {
                verdict.tell(Some(variant), "it says processed, and what it speaks of is not there");
                missing.push(variant.as_str());
            }
            Some(_) if is_there => {
                verdict.tell(Some(variant), "it is there, and does not say processed");
                if options.fix_status {
                    verdict.verified.push(variant.clone());
                }
            }
            Some(DerivedStatus::Failed) => verdict.tell(Some(variant), "it has failed"),
            Some(DerivedStatus::Created | DerivedStatus::Processing) | None => missing.push(variant.as_str()),
        }
    }
    // Whoever works on an archived file begins when it is brought back.
    if !missing.is_empty() && record.status != FileStatus::Archived {
        verdict.queue = Some(format!("a backfill misses {}", missing.join(", ")));
    } else if record.status == FileStatus::Processing && missing.is_empty() {
        verdict.tell(None, "it says processing, and nobody works on it");
        verdict.queue = Some("a backfill found that nobody works on it".to_owned());
    }
    Ok(verdict)
}

/// Whether the bytes of a version are here.
fn is_here<V: TableReads>(db: &Db<V>, space: &SpaceId, file: FileId, version: u32) -> StoreResult<bool> {
    let Some(content) = db.file_version(space, file, version)?.and_then(|row| row.content) else { return Ok(false) };
    let Some(number) = db.space_no(space)? else { return Ok(false) };
    let row = db.content(number, &content.hash)?;
    Ok(content.len == 0 || row.is_some_and(|row| row.place != ContentLocation::Absent))
}

/// Whether what a relation speaks of is a file with its bytes.
fn child_is_there<V: TableReads>(db: &Db<V>, space: &SpaceId, row: &DerivedFile) -> StoreResult<bool> {
    let Some(child) = row.child else { return Ok(false) };
    let Some(record) = db.file(space, child)? else { return Ok(false) };
    let has_status = matches!(record.status, FileStatus::Uploaded | FileStatus::Processed | FileStatus::Archived);
    let stored = db.file_version(space, child, record.version)?.map(|row| row.status);
    let is_stored = matches!(stored, Some(StoredStatus::Uploaded | StoredStatus::Processed));
    Ok(has_status && is_stored && record.deleted_at.is_none() && is_here(db, space, child, record.version)?)
}

fn act(batch: &mut Batch<'_>, space: &SpaceId, file: FileId, verdict: &FileVerdict) -> Result<(), FileError> {
    let by = StatusChange { who: WHO, why: "its bytes were found" };
    if verdict.is_uploaded {
        let record = batch.move_file(space, file, FileStatus::Uploaded, by)?;
        let version = record.version.max(1);
        if batch.db().file_version(space, file, version)?.is_some_and(|row| row.status == StoredStatus::Created) {
            batch.move_version(space, (file, version), StoredStatus::Uploaded, by)?;
        }
    }
    for variant in &verdict.verified {
        tracing::info!(%space, file = file.to_name(), variant, "a rendition was verified");
        let by = StatusChange { who: WHO, why: "it was verified" };
        let row = batch.db().derived_file(space, file, variant)?;
        if row.is_some_and(|row| row.status == DerivedStatus::Failed) {
            batch.move_derived(space, file, variant, DerivedStatus::Processing, by)?;
        }
        batch.move_derived(space, file, variant, DerivedStatus::Processed, by)?;
    }
    if let Some(why) = &verdict.queue {
        let job = FileJob { attempts: 0, due: batch.now(), lease: None, reason: Some(why.clone()) };
        batch.put_file_job(space, file, &job)?;
    }
    Ok(())
}
