//! Files: a record for each, a row for the bytes of each version, and a row for each derived file that is expected.
//!
//! The bytes themselves are content of the space ([`events::content`](crate::events::content)); these rows say what people
//! call a file, where it stands, and why. Every change of a status goes through one function for its tier, which knows the
//! allowed edges, stamps the row, and writes an audit row in the same transaction.
//!
//! Order of writes: a record before the versions and relations that refer to it, and a child's record before its relation.

mod forgetting;
mod lists;
mod reading;
mod rows;

pub use rows::{
    Derivation, DerivedFile, FileContent, FileJob, FileLink, FileRecord, FileVersion, Lease, LinkPurpose, OpenUpload,
    StatusStep, UploadPause,
};

use crate::database::batch::Batch;
use crate::keys::*;
use crate::shared::{DerivedFiles, FileJobs, FileLinks, FileVersions, Files, OpenUploads};
use engine::Change;
use engine::reads::{StoreError, StoreResult};
use model::files::{DerivedStatus, FileStatus, StoredStatus, WantedBytes};
use model::{FileId, LinkId, Nanos, Seq, SpaceId};

/// Why a file was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileChangeError {
    /// There is no such file.
    #[error("there is no such file")]
    Unknown,
    /// Its status does not allow it.
    #[error("{what} is {from} and cannot become {to}; it may become {}", listed(.allowed))]
    Edge { what: &'static str, from: &'static str, to: &'static str, allowed: Vec<&'static str> },
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn listed(words: &[&str]) -> String {
    if words.is_empty() { "nothing else".to_owned() } else { words.join(", ") }
}

/// Who changes a status, and why.
#[derive(Clone, Copy, Debug)]
pub struct StatusChange<'a> {
    /// How the audit log calls them.
    pub who: &'a str,
    pub why: &'a str,
}

/// How many statuses of a file are remembered in its row; the audit log has all of them.
const HISTORY_MAX: usize = 50;

fn step(at: Nanos, status: FileStatus, by: StatusChange<'_>) -> StatusStep {
    StatusStep { at, status, who: by.who.to_owned(), why: by.why.to_owned() }
}

/// Which lists a file stands in.
pub(crate) fn index_key(space: &SpaceId, id: FileId, record: &FileRecord) -> FileIndexKey {
    let group = u8::from(record.derivation.is_some()) | u8::from(record.deleted_at.is_some()) << 1;
    FileIndexKey::new(*space, group, record.status as u8, record.created_at, id)
}

/// Where a file waits to be purged, if it does: an original that is hidden.
pub(crate) fn hidden_key(space: &SpaceId, id: FileId, record: &FileRecord) -> Option<HiddenFileKey> {
    let since = record.deleted_at.filter(|_| record.derivation.is_none() && !record.is_purged)?;
    Some(HiddenFileKey::new(*space, since, id))
}

impl Batch<'_> {
    /// Begins a file.
    pub fn begin_file(
        &mut self,
        space: &SpaceId,
        id: FileId,
        record: &FileRecord,
        by: StatusChange<'_>,
    ) -> StoreResult<()> {
        let mut record = record.clone();
        record.history.push(step(self.now, record.status, by));
        self.put_file(space, id, &record)?;
        self.note_status(space, ("file", &id.to_name()), "nothing", record.status.word(), by)
    }

    /// Writes a record, and the lists in which it stands.
    pub fn put_file(&mut self, space: &SpaceId, id: FileId, record: &FileRecord) -> StoreResult<()> {
        let key = FileKey::new(*space, id);
        if let Some(before) = self.db.shared::<Files>(&key)? {
            self.db.tables.file_index.remove(index_key(space, id, &before))?;
            if let Some(hidden) = hidden_key(space, id, &before) {
                self.db.tables.hidden_files.remove(hidden)?;
            }
        }
        if let Some(hidden) = hidden_key(space, id, record) {
            self.db.tables.hidden_files.insert(hidden, ())?;
        }
        self.db.tables.file_index.insert(index_key(space, id, record), ())?;
        if let Some(event) = record.event {
            self.db.tables.file_events.insert(EventIdKey::new(event), id)?;
        }
        self.set_shared::<Files>(&key, record)
    }

    /// Moves a file to another status, if that is allowed.
    pub fn move_file(
        &mut self,
        space: &SpaceId,
        id: FileId,
        to: FileStatus,
        by: StatusChange<'_>,
    ) -> Result<FileRecord, FileChangeError> {
        let mut record = self.db.file(space, id)?.ok_or(FileChangeError::Unknown)?;
        let from = record.status;
        if !from.may_become(to) {
            let allowed = from.next().iter().map(|status| status.word()).collect();
            return Err(FileChangeError::Edge { what: "the file", from: from.word(), to: to.word(), allowed });
        }
        record.status = to;
        record.updated_at = self.now;
        record.error = (to == FileStatus::Failed).then(|| by.why.to_owned());
        record.history.push(step(self.now, to, by));
        let surplus = record.history.len().saturating_sub(HISTORY_MAX);
        record.history.drain(..surplus);
        self.put_file(space, id, &record)?;
        self.note_status(space, ("file", &id.to_name()), from.word(), to.word(), by)?;
        Ok(record)
    }

    /// Begins a version of a file.
    pub fn begin_version(
        &mut self,
        space: &SpaceId,
        (id, version): (FileId, u32),
        row: &FileVersion,
        by: StatusChange<'_>,
    ) -> StoreResult<()> {
        self.put_version(space, (id, version), row)?;
        self.note_status(
            space,
            ("object", &format!("{} version {version}", id.to_name())),
            "nothing",
            row.status.word(),
            by,
        )
    }

    /// Writes the row of a version, and takes or gives back the reference that it holds.
    pub fn put_version(&mut self, space: &SpaceId, (id, version): (FileId, u32), row: &FileVersion) -> StoreResult<()> {
        let key = FileVersionKey::new(*space, id, version);
        let held = row.content.filter(|_| row.holds_reference).map(|content| content.wanted());
        self.hold_reference(&key, held)?;
        self.set_shared::<FileVersions>(&key, row)
    }

    /// Takes the reference that the row of a version holds from now on, and gives back the one that it held.
    pub(super) fn hold_reference(&mut self, key: &FileVersionKey, held: Option<WantedBytes>) -> StoreResult<()> {
        let before = self.db.tables.file_references.get(key)?;
        if before == held {
            return Ok(());
        }
        let (no, _) = self.number_space(&key.space())?;
        if let Some(wanted) = held {
            self.db.tables.file_references.insert(key, wanted)?;
            self.apply(vec![Change::Take(no, wanted.hash, wanted.len)])?;
        } else {
            self.db.tables.file_references.remove(key)?;
        }
        before.map_or(Ok(()), |wanted| self.apply(vec![Change::GiveBack(no, wanted.hash)]))
    }

    /// The record of a file event agrees with it again.
    pub fn file_event_followed(&mut self, event: Seq) -> StoreResult<()> {
        self.touch();
        self.db.tables.file_events_due.remove(EventNo::new(event)).map(drop)
    }

    /// Work that is listed and of which nothing can be read any more: its space has ended.
    pub fn drop_file_job(&mut self, at: Nanos, space: &SpaceId, file: FileId) -> StoreResult<()> {
        self.touch();
        self.db.tables.file_jobs_due.remove(FileJobDueKey::new(at, *space, file))?;
        self.clear_shared::<FileJobs>(&FileKey::new(*space, file)).map(drop)
    }

    /// Moves the bytes of a version to another status, if that is allowed.
    pub fn move_version(
        &mut self,
        space: &SpaceId,
        (id, version): (FileId, u32),
        to: StoredStatus,
        by: StatusChange<'_>,
    ) -> Result<FileVersion, FileChangeError> {
        let mut row = self.db.file_version(space, id, version)?.ok_or(FileChangeError::Unknown)?;
        let from = row.status;
        if !from.may_become_with(to, row.content.is_some()) {
            let next = from.next().iter().filter(|next| from.may_become_with(**next, row.content.is_some()));
            let allowed = next.map(|status| status.word()).collect();
            return Err(FileChangeError::Edge { what: "the object", from: from.word(), to: to.word(), allowed });
        }
        row.status = to;
        row.updated_at = self.now;
        row.error = (to == StoredStatus::Failed).then(|| by.why.to_owned());
        self.put_version(space, (id, version), &row)?;
        self.note_status(
            space,
            ("object", &format!("{} version {version}", id.to_name())),
            from.word(),
            to.word(),
            by,
        )?;
        Ok(row)
    }

    /// Expects a derived file.
    pub fn expect_derived(
        &mut self,
        space: &SpaceId,
        parent: FileId,
        row: &DerivedFile,
        by: StatusChange<'_>,
    ) -> StoreResult<()> {
        self.put_derived(space, parent, row)?;
        self.note_status(
            space,
            ("derived", &format!("{} of {}", row.variant, parent.to_name())),
            "nothing",
            row.status.word(),
            by,
        )
    }

    pub fn put_derived(&mut self, space: &SpaceId, parent: FileId, row: &DerivedFile) -> StoreResult<()> {
        self.set_shared::<DerivedFiles>(&DerivedKey::of(space, parent, &row.variant), row)
    }

    /// Moves a derived file to another status, if that is allowed.
    pub fn move_derived(
        &mut self,
        space: &SpaceId,
        parent: FileId,
        variant: &str,
        to: DerivedStatus,
        by: StatusChange<'_>,
    ) -> Result<DerivedFile, FileChangeError> {
        let mut row = self.db.derived_file(space, parent, variant)?.ok_or(FileChangeError::Unknown)?;
        let from = row.status;
        if !from.may_become(to) {
            let allowed = from.next().iter().map(|status| status.word()).collect();
            return Err(FileChangeError::Edge { what: "the derived file", from: from.word(), to: to.word(), allowed });
        }
        row.status = to;
        row.updated_at = self.now;
        row.error = (to == DerivedStatus::Failed).then(|| by.why.to_owned());
        self.put_derived(space, parent, &row)?;
        self.note_status(
            space,
            ("derived", &format!("{variant} of {}", parent.to_name())),
            from.word(),
            to.word(),
            by,
        )?;
        Ok(row)
    }

    /// Every change of a status has its row in the audit log, and one line in the log.
    fn note_status(
        &mut self,
        space: &SpaceId,
        (tier, target): (&'static str, &str),
        from: &'static str,
        to: &'static str,
        by: StatusChange<'_>,
    ) -> StoreResult<()> {
        tracing::info!(%space, tier, target, from, to, who = by.who, why = by.why, "the status of a file changed");
        let what = format!("{tier} {from} -> {to}: {}", by.why);
        self.audit(Some(*space), by.who, &what, target)
    }

    /// Notes that bytes are coming, and how far they have come; their object stays as long.
    pub fn put_open_upload(&mut self, space: &SpaceId, id: FileId, upload: &OpenUpload) -> StoreResult<()> {
        self.extend_object(upload.object, upload.until)?;
        self.set_shared::<OpenUploads>(&FileKey::new(*space, id), upload)
    }

    /// An upload that is whole, or was given up. Says whether there was one.
    pub fn end_open_upload(&mut self, space: &SpaceId, id: FileId) -> StoreResult<bool> {
        self.clear_shared::<OpenUploads>(&FileKey::new(*space, id))
    }

    /// Makes a link to a file, or changes what it allows.
    pub fn put_file_link(&mut self, space: &SpaceId, id: FileId, link: LinkId, row: &FileLink) -> StoreResult<()> {
        self.set_shared::<FileLinks>(&FileLinkKey::new(*space, id, link), row)
    }

    /// Ends a link. Says whether there was one.
    pub fn end_file_link(&mut self, space: &SpaceId, id: FileId, link: LinkId) -> StoreResult<bool> {
        self.clear_shared::<FileLinks>(&FileLinkKey::new(*space, id, link))
    }

    /// Puts work for a file into the queue, or writes how far it is.
    pub fn put_file_job(&mut self, space: &SpaceId, file: FileId, job: &FileJob) -> StoreResult<()> {
        self.leave_job_queue(space, file)?;
        let due = job.lease.as_ref().map_or(job.due, |lease| lease.until);
        self.db.tables.file_jobs_due.insert(FileJobDueKey::new(due, *space, file), ())?;
        self.set_shared::<FileJobs>(&FileKey::new(*space, file), job)
    }

    /// Work that is done, or that nobody wants any more.
    pub fn end_file_job(&mut self, space: &SpaceId, file: FileId) -> StoreResult<()> {
        self.leave_job_queue(space, file)?;
        self.clear_shared::<FileJobs>(&FileKey::new(*space, file)).map(drop)
    }

    fn leave_job_queue(&mut self, space: &SpaceId, file: FileId) -> StoreResult<()> {
        if let Some(before) = self.db.file_job(space, file)? {
            let due = before.lease.as_ref().map_or(before.due, |lease| lease.until);
            self.db.tables.file_jobs_due.remove(FileJobDueKey::new(due, *space, file))?;
        }
        Ok(())
    }
}
