//! Files that go for ever: with the event that speaks of them, with their retention, or with their space.

use super::{DerivedFile, FileChangeError, FileRecord, FileVersion, StatusChange};
use crate::database::batch::Batch;
use crate::keys::*;
use crate::shared::{DerivedFiles, FileJobs, FileLinks, FileVersions, Files, OpenUploads};
use engine::reads::{StoreError, StoreResult};
use model::files::{DerivedStatus, FileStatus, StoredStatus};
use model::{EventId, FileId, SpaceId};

/// What a file is called that was purged.
const PURGED_NAME: &str = "purged";

impl Batch<'_> {
    /// The content of an event was purged that speaks of a file: with the latest version all of it goes, with an older one that
    /// version alone.
    pub fn forget_file_of_event(&mut self, space: &SpaceId, id: FileId, event: &EventId) -> StoreResult<()> {
        if self.db.file(space, id)?.is_none_or(|record| record.event == Some(*event)) {
            return self.forget_file(space, id);
        }
        for (version, row) in self.db.file_versions(space, id)? {
            if row.event == Some(*event) {
                let deleted_at = row.deleted_at.or(Some(self.now));
                self.put_version(space, (id, version), &FileVersion { content: None, deleted_at, ..row })?;
            }
        }
        Ok(())
    }

    /// Nothing is kept of a file and of what was derived from it but the rows that say that they were.
    pub fn forget_file(&mut self, space: &SpaceId, id: FileId) -> StoreResult<()> {
        let now = self.now;
        self.end_file_job(space, id)?;
        self.stop_processing(space, id)?;
        self.clear_shared_range::<FileLinks>(FileLinkKey::of_file(*space, id), usize::MAX)?;
        for derived in self.db.derived_files(space, id)? {
            if let Some(child) = derived.child {
                self.forget_file(space, child)?;
            }
            let deleted_at = derived.deleted_at.or(Some(now));
            self.put_derived(space, id, &DerivedFile { deleted_at, ..derived })?;
        }
        for (version, row) in self.db.file_versions(space, id)? {
            let deleted_at = row.deleted_at.or(Some(now));
            let row = FileVersion { content: None, holds_reference: false, deleted_at, ..row };
            self.put_version(space, (id, version), &row)?;
        }
        if let Some(upload) = self.db.open_upload(space, id)? {
            self.forget_object(upload.object)?;
            self.end_open_upload(space, id)?;
        }
        if let Some(record) = self.db.file(space, id)? {
            let deleted_at = record.deleted_at.or(Some(now));
            // What people said of it goes with its bytes.
            let (name, metadata) = (PURGED_NAME.to_owned(), String::new());
            let gone = FileRecord { name, metadata, deleted_at, is_purged: true, updated_at: now, ..record };
            self.put_file(space, id, &gone)?;
        }
        Ok(())
    }

    /// Nobody works on a file any more, although it was not done.
    fn stop_processing(&mut self, space: &SpaceId, id: FileId) -> StoreResult<()> {
        let by = StatusChange { who: "the node", why: "it was purged" };
        let fault = |why: FileChangeError| match why {
            FileChangeError::Store(fault) => fault,
            other => StoreError::Broken(other.to_string()),
        };
        let is_under_way = |status| matches!(status, FileStatus::Processing | FileStatus::Uploading);
        if self.db.file(space, id)?.is_some_and(|record| is_under_way(record.status)) {
            self.move_file(space, id, FileStatus::Failed, by).map_err(fault)?;
        }
        for (version, row) in self.db.file_versions(space, id)? {
            if matches!(row.status, StoredStatus::Processing | StoredStatus::Uploading) {
                let row = self.move_version(space, (id, version), StoredStatus::Failed, by).map_err(fault)?;
                self.put_version(space, (id, version), &FileVersion { object: None, ..row })?;
            }
        }
        for row in self.db.derived_files(space, id)? {
            if row.status == DerivedStatus::Processing {
                self.move_derived(space, id, &row.variant, DerivedStatus::Failed, by).map_err(fault)?;
            }
        }
        Ok(())
    }

    /// Forgets at most so many rows of the files of an ended space, whose keys are gone. Says how many.
    pub(crate) fn forget_files_of(&mut self, space: &SpaceId, most: usize) -> StoreResult<usize> {
        let held = self.db.tables.file_references.range(FileVersionKey::of_space(*space))?.take(most);
        let held = held.map(|row| Ok(row?.key())).collect::<StoreResult<Vec<_>>>()?;
        for key in &held {
            self.hold_reference(key, None)?;
        }
        let mut gone = held.len();
        let objects = self.db.shared_range::<OpenUploads>(FileKey::of_space(*space))?.take(most);
        let objects = objects.filter_map(|row| row.ok().map(|(_, row)| row.object)).collect::<Vec<_>>();
        objects.into_iter().try_for_each(|object| self.forget_object(object))?;
        let left = |gone: usize| most.saturating_sub(gone);
        gone += self.clear_shared_range::<FileJobs>(FileKey::of_space(*space), left(gone))?;
        gone += self.clear_shared_range::<OpenUploads>(FileKey::of_space(*space), left(gone))?;
        gone += self.clear_shared_range::<FileLinks>(FileLinkKey::of_space(*space), left(gone))?;
        gone += self.clear_shared_range::<DerivedFiles>(DerivedKey::of_space(*space), left(gone))?;
        gone += self.clear_shared_range::<FileVersions>(FileVersionKey::of_space(*space), left(gone))?;
        gone += self.clear_shared_range::<Files>(FileKey::of_space(*space), left(gone))?;
        if gone < most {
            self.db.tables.file_index.remove_range(FileIndexKey::of_space(*space), usize::MAX)?;
            self.db.tables.hidden_files.remove_range(HiddenFileKey::of_space(*space), usize::MAX)?;
            // The rows of the work cannot be read any more, and say no more when it was due.
            let due = self.db.tables.file_jobs_due.iter()?.map(|row| row.map(|row| row.key()));
            let due = due.filter(|key| key.as_ref().map_or(true, |key| key.space() == *space));
            for key in due.collect::<StoreResult<Vec<_>>>()? {
                self.db.tables.file_jobs_due.remove(key)?;
            }
        }
        Ok(gone)
    }
}
