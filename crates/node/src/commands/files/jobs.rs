//! Work for files: taken on a lease, completed or failed with its token.

use crate::commands::CommandError;
use crate::commands::files::FileError;
use crate::commands::files::renditions::{child_id, new_derived};
use crate::writer_command::{CommandFailure, WriterCommand};
use engine::reads::{StoreError, StoreResult};
use model::files::{DerivedStatus, FileStatus, StoredStatus};
use model::{FileId, Nanos, SpaceId};
use store::Batch;
use store::events::objects::NewObject;
use store::shared::files::{DerivedFile, FileChangeError, FileContent, FileJob, FileRecord, Lease, StatusChange};

/// How long somebody may work on one file.
pub const LEASE_NANOS: u64 = 10 * 60 * Nanos::SECOND;
/// How often work is begun for one file.
pub const ATTEMPTS_MAX: u32 = 5;
/// How long work is put off for a file that is hidden.
const WHILE_HIDDEN_NANOS: u64 = 3600 * Nanos::SECOND;
/// How long the bytes of a rendition may take to be written.
const WRITING_NANOS: u64 = 3600 * Nanos::SECOND;

/// Why work was not taken, or what was made is not kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// Another worker has it, or nobody wants it any more.
    #[error("the lease of this work has ended")]
    LeaseEnded,
    #[error(transparent)]
    File(#[from] FileError),
}

impl From<StoreError> for WorkError {
    fn from(fault: StoreError) -> WorkError {
        WorkError::File(fault.into())
    }
}

impl From<FileChangeError> for WorkError {
    fn from(why: FileChangeError) -> WorkError {
        WorkError::File(why.into())
    }
}

impl From<CommandError> for WorkError {
    fn from(why: CommandError) -> WorkError {
        WorkError::File(why.into())
    }
}

impl CommandFailure for WorkError {
    fn into_store_error(self) -> Result<StoreError, WorkError> {
        match self {
            WorkError::File(why) => why.into_store_error().map_err(WorkError::File),
            WorkError::LeaseEnded => Err(WorkError::LeaseEnded),
        }
    }
}

/// Takes the work that is due first.
#[derive(Clone, Debug)]
pub struct TakeWork {
    /// The node and the worker.
    pub worker: String,
    /// The renditions that are expected of an image.
    pub variants: Vec<String>,
}

/// Gives back what workers of this node had on a lease when it stopped: they are gone, and that was no failure.
#[derive(Clone, Debug)]
pub(crate) struct ReleaseLeases {
    /// What the names of these workers end with.
    pub(crate) node: String,
}

impl WriterCommand for ReleaseLeases {
    type Answer = ();
    type Error = WorkError;

    fn run(&self, batch: &mut Batch<'_>) -> Result<(), WorkError> {
        for (space, file, job) in batch.db().leased_file_jobs()? {
            if job.lease.as_ref().is_some_and(|lease| lease.worker.ends_with(&self.node)) {
                let (due, attempts) = (batch.now(), job.attempts.saturating_sub(1));
                batch.put_file_job(&space, file, &FileJob { attempts, due, lease: None, ..job })?;
            }
        }
        Ok(())
    }
}

/// Work that somebody has a lease of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeasedWork {
    pub space: SpaceId,
    pub file: FileId,
    /// With which what comes of it is said.
    pub token: u64,
    /// The bytes of the original.
    pub content: FileContent,
    /// The renditions that are to be made.
    pub missing: Vec<String>,
}

impl WriterCommand for TakeWork {
    type Answer = Option<LeasedWork>;
    type Error = WorkError;

    fn run(&self, batch: &mut Batch<'_>) -> Result<Option<LeasedWork>, WorkError> {
        // What nobody wants any more is passed over.
        for (at, space, file) in batch.db().due_file_jobs(batch.now(), LOOKED_AT_MAX)? {
            if let Some(work) = self.take(batch, at, &space, file)? {
                return Ok(Some(work));
            }
        }
        Ok(None)
    }
}

/// How many pieces of work are looked at for one that can be done.
const LOOKED_AT_MAX: usize = 100;

impl TakeWork {
    fn take(
        &self,
        batch: &mut Batch<'_>,
        at: Nanos,
        space: &SpaceId,
        file: FileId,
    ) -> Result<Option<LeasedWork>, WorkError> {
        let (record, job) = (batch.db().file(space, file)?, batch.db().file_job(space, file)?);
        let (Some(record), Some(job)) = (record, job) else {
            batch.drop_file_job(at, space, file)?;
            return Ok(None);
        };
        let Some(content) = batch.db().file_version(space, file, record.version)?.and_then(|row| row.content) else {
            batch.end_file_job(space, file)?;
            return Ok(None);
        };
        if record.deleted_at.is_some() {
            // It may be shown again.
            let due = batch.now().plus(WHILE_HIDDEN_NANOS);
            batch.put_file_job(space, file, &FileJob { due, lease: None, ..job })?;
            return Ok(None);
        }
        if let Some(lease) = &job.lease {
            let worker = lease.worker.as_str();
            tracing::warn!(%space, file = file.to_name(), worker, "a worker has not said what came of a file; another begins");
            batch.count("file-processing-stale", 1);
        }
        let token = batch.now().0.max(job.lease.as_ref().map_or(0, |lease| lease.token.saturating_add(1)));
        if job.attempts >= ATTEMPTS_MAX {
            // Its last lease ended without a word.
            let by = StatusChange { who: &self.worker, why: "nobody who began this has finished it" };
            fail_for_good(batch, space, file, by)?;
            return Ok(None);
        }
        let by = StatusChange { who: &self.worker, why: job.reason.as_deref().unwrap_or("work began") };
        let missing = self.begin(batch, space, (file, &record), by)?;
        let until = batch.now().plus(LEASE_NANOS);
        let lease = Some(Lease { worker: self.worker.clone(), token, until });
        batch.put_file_job(space, file, &FileJob { attempts: job.attempts + 1, lease, ..job })?;
        Ok(Some(LeasedWork { space: *space, file, token, content, missing }))
    }

    /// Moves the file, its bytes and what is missing of it to *processing*. Says what is missing.
    fn begin(
        &self,
        batch: &mut Batch<'_>,
        space: &SpaceId,
        (file, record): (FileId, &FileRecord),
        by: StatusChange<'_>,
    ) -> Result<Vec<String>, WorkError> {
        if record.status.may_become(FileStatus::Processing) {
            batch.move_file(space, file, FileStatus::Processing, by)?;
        }
        let place = (file, record.version);
        if let Some(row) = batch.db().file_version(space, file, record.version)?
            && row.status.may_become_with(StoredStatus::Processing, true)
        {
            batch.move_version(space, place, StoredStatus::Processing, by)?;
        }
        let mut missing = Vec::new();
        for variant in &self.variants {
            let known = batch.db().derived_file(space, file, variant)?;
            match known.map(|row| row.status) {
                None => {
                    let row = new_derived(batch, variant);
                    batch.expect_derived(space, file, &row, by)?;
                }
                // Of an older version it is made anew.
                Some(DerivedStatus::Processed) if is_current(batch, space, (file, record.version), variant)? => {
                    continue;
                }
                Some(_) => {}
            }
            let row = batch.db().derived_file(space, file, variant)?.ok_or(FileChangeError::Unknown)?;
            let row = match row.status {
                DerivedStatus::Processing => row,
                _ => batch.move_derived(space, file, variant, DerivedStatus::Processing, by)?,
            };
            batch.put_derived(space, file, &DerivedFile { attempts: row.attempts + 1, deleted_at: None, ..row })?;
            missing.push(variant.clone());
        }
        Ok(missing)
    }
}

/// Whether what was derived of a file is of that version, and there.
fn is_current(
    batch: &Batch<'_>,
    space: &SpaceId,
    (file, version): (FileId, u32),
    variant: &str,
) -> Result<bool, WorkError> {
    let child = child_id(file, version, variant);
    let made = batch.db().derived_file(space, file, variant)?.is_some_and(|row| row.child == Some(child));
    Ok(made && batch.db().file_version(space, child, 1)?.is_some_and(|row| row.content.is_some()))
}

/// Begins an object for the bytes of a rendition.
#[derive(Clone, Copy, Debug)]
pub struct BeginRendition {
    pub space: SpaceId,
    pub is_encrypted: bool,
}

impl WriterCommand for BeginRendition {
    type Answer = NewObject;
    type Error = WorkError;

    fn run(&self, batch: &mut Batch<'_>) -> Result<NewObject, WorkError> {
        let until = batch.now().plus(WRITING_NANOS);
        Ok(batch.begin_object(&self.space, self.is_encrypted, until)?)
    }
}

/// Says that work has failed.
#[derive(Clone, Debug)]
pub struct FailWork {
    pub space: SpaceId,
    pub file: FileId,
    pub token: u64,
    pub why: String,
    /// Whether trying again would be in vain.
    pub is_permanent: bool,
}

impl WriterCommand for FailWork {
    type Answer = ();
    type Error = WorkError;

    fn run(&self, batch: &mut Batch<'_>) -> Result<(), WorkError> {
        let job = leased(batch, &self.space, self.file, self.token)?;
        let who = job.lease.as_ref().map(|lease| lease.worker.clone()).unwrap_or_default();
        let by = StatusChange { who: &who, why: &self.why };
        if self.is_permanent || job.attempts >= ATTEMPTS_MAX {
            fail_for_good(batch, &self.space, self.file, by)?;
            return Ok(());
        }
        let due = batch.now().plus(retry_delay(job.attempts));
        batch.put_file_job(&self.space, self.file, &FileJob { due, lease: None, ..job })?;
        Ok(())
    }
}

/// How long after so many attempts the next one comes: 10 s, 40 s, 160 s, 640 s.
fn retry_delay(attempts: u32) -> u64 {
    (10 * Nanos::SECOND).saturating_mul(4u64.saturating_pow(attempts.saturating_sub(1)))
}

/// The work, if whoever has that token may still say what came of it.
pub(super) fn leased(batch: &Batch<'_>, space: &SpaceId, file: FileId, token: u64) -> Result<FileJob, WorkError> {
    let job = batch.db().file_job(space, file)?;
    let is_held =
        |job: &FileJob| job.lease.as_ref().is_some_and(|lease| lease.token == token && lease.until > batch.now());
    job.filter(is_held).ok_or(WorkError::LeaseEnded)
}

/// The file has failed, with what was to be made of it. Its bytes can be downloaded all the same.
pub(super) fn fail_for_good(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    file: FileId,
    by: StatusChange<'_>,
) -> Result<(), FileError> {
    for derived in batch.db().derived_files(space, file)? {
        if derived.status.may_become(DerivedStatus::Failed) {
            batch.move_derived(space, file, &derived.variant, DerivedStatus::Failed, by)?;
        }
    }
    let record = batch.db().file(space, file)?.ok_or(FileChangeError::Unknown)?;
    if let Some(row) = batch.db().file_version(space, file, record.version)?
        && row.status.may_become_with(StoredStatus::Failed, true)
    {
        batch.move_version(space, (file, record.version), StoredStatus::Failed, by)?;
    }
    if record.status.may_become(FileStatus::Failed) {
        batch.move_file(space, file, FileStatus::Failed, by)?;
    }
    tracing::warn!(%space, file = file.to_name(), why = by.why, "a file could not be processed");
    batch.count("file-processing-failed", 1);
    batch.end_file_job(space, file)?;
    note_in_journal(batch, space, &record)?;
    Ok(())
}

/// Live streams and webhooks hear that something about a file has changed.
pub(super) fn note_in_journal(batch: &mut Batch<'_>, space: &SpaceId, record: &FileRecord) -> StoreResult<()> {
    use engine::reads::Reads as _;
    let (Some(event), Some(no)) = (record.event, batch.db().space_no(space)?) else { return Ok(()) };
    let Some(seq) = batch.db().seq(&event)? else { return Ok(()) };
    batch.apply(vec![engine::Change::Journal(no, seq, engine::rows::JournalKind::BytesArrived)])
}
