//! What happens to a file that is here: renamed, put away, hidden, processed again, purged.

use super::checks::{check_metadata, check_name};
use super::jobs::fail_for_good;
use super::uploads::FileCommandContext;
use super::{FileChange, FileError, FileResult};
use crate::commands::deletion;
use model::files::{FileStatus, StoredStatus};
use store::Batch;
use store::shared::files::{FileChangeError, FileJob, FileVersion};

impl FileCommandContext<'_> {
    pub(super) fn change(&self, batch: &mut Batch<'_>, change: &FileChange) -> Result<FileResult, FileError> {
        let mut record = self.own(batch)?;
        if record.is_purged {
            return Err(FileError::Purged);
        }
        match change.archived {
            Some(true) if record.status != FileStatus::Archived => {
                let before = record.status;
                record = batch.move_file(self.space(), self.id(), FileStatus::Archived, self.because("archived"))?;
                record.before_archive = Some(before);
            }
            Some(false) if record.status == FileStatus::Archived => {
                let to = record.before_archive.unwrap_or(FileStatus::Uploaded);
                record = batch.move_file(self.space(), self.id(), to, self.because("brought back"))?;
                record.before_archive = None;
            }
            Some(_) | None => {}
        }
        if let Some(name) = &change.name {
            check_name(name)?;
            record.name.clone_from(name);
        }
        if let Some(metadata) = &change.metadata {
            check_metadata(metadata)?;
            record.metadata.clone_from(metadata);
        }
        record.updated_at = batch.now();
        batch.put_file(self.space(), self.id(), &record)?;
        Ok(self.result(record))
    }

    pub(super) fn set_deleted(&self, batch: &mut Batch<'_>, is_deleted: bool) -> Result<FileResult, FileError> {
        let mut record = self.own(batch)?;
        if is_deleted && record.status == FileStatus::Processing {
            return Err(FileError::Busy);
        }
        if !is_deleted && record.is_purged {
            return Err(FileError::Purged);
        }
        if record.deleted_at.is_some() != is_deleted {
            record.deleted_at = is_deleted.then(|| batch.now());
            record.updated_at = batch.now();
            batch.put_file(self.space(), self.id(), &record)?;
            let what = if is_deleted { "delete file" } else { "bring file back" };
            batch.audit(Some(*self.space()), self.who, what, &self.id().to_name())?;
        }
        Ok(self.result(record))
    }

    /// Processing that has failed begins anew, with all of its attempts.
    pub(super) fn retry(&self, batch: &mut Batch<'_>) -> Result<FileResult, FileError> {
        let record = self.own(batch)?;
        let version = batch.db().file_version(self.space(), self.id(), record.version)?;
        // A new version may have failed of a file that is processed.
        let has_failed = |row: &FileVersion| record.status == FileStatus::Failed || row.status == StoredStatus::Failed;
        if !version.is_some_and(|row| row.content.is_some() && has_failed(&row)) {
            return Err(FileError::NotFailed);
        }
        let (due, reason) = (batch.now(), Some(format!("{} asked for it", self.who)));
        batch.put_file_job(self.space(), self.id(), &FileJob { attempts: 0, due, lease: None, reason })?;
        batch.audit(Some(*self.space()), self.who, "retry file", &self.id().to_name())?;
        Ok(self.result(record))
    }

    /// Whoever works on it comes too late from now on.
    pub(super) fn fail_work(&self, batch: &mut Batch<'_>, why: &str) -> Result<FileResult, FileError> {
        let record = self.own(batch)?;
        let version = batch.db().file_version(self.space(), self.id(), record.version)?;
        let is_processed = |row: FileVersion| row.status == StoredStatus::Processing;
        let waits = batch.db().file_job(self.space(), self.id())?.is_some();
        if record.status != FileStatus::Processing && !version.is_some_and(is_processed) {
            // What only waits is begun with that, and fails.
            if !(waits && record.status.may_become(FileStatus::Processing)) {
                return Err(FileError::NotProcessing);
            }
            batch.move_file(self.space(), self.id(), FileStatus::Processing, self.because(why))?;
        }
        fail_for_good(batch, self.space(), self.id(), self.because(why))?;
        let record = batch.db().file(self.space(), self.id())?.ok_or(FileChangeError::Unknown)?;
        Ok(self.result(record))
    }

    pub(super) fn purge(&self, batch: &mut Batch<'_>) -> Result<FileResult, FileError> {
        let record = self.own(batch)?;
        if matches!(record.status, FileStatus::Processing | FileStatus::Uploading) {
            return Err(FileError::Busy);
        }
        let events = batch.db().file_versions(self.space(), self.id())?.into_iter().filter_map(|(_, row)| row.event);
        for event in events.collect::<Vec<_>>() {
            deletion::purge_event(batch, &self.context, &event)?;
        }
        batch.forget_file(self.space(), self.id())?;
        batch.audit(Some(*self.space()), self.who, "purge file", &self.id().to_name())?;
        let record = batch.db().file(self.space(), self.id())?.ok_or(FileChangeError::Unknown)?;
        Ok(self.result(record))
    }
}
