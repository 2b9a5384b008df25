//! Files: records agree with their lists, and nothing stands in a state that nothing will move.

use super::Check;
use crate::events::objects::ObjectState;
use crate::keys::*;
use crate::shared::files::{hidden_key, index_key};
use crate::shared::{DerivedFiles, FileJobs, FileVersions, Files, OpenUploads};
use crate::tables::TableReads as _;
use engine::reads::StoreResult;
use model::files::{DerivedStatus, FileStatus, StoredStatus};

impl Check<'_> {
    pub(super) fn files(&mut self) -> StoreResult<()> {
        let db = self.db;
        let (mut files, mut hidden) = (0, 0);
        for entry in db.shared_range::<Files>(..)? {
            let Some((key, record)) = db.unless_damaged(entry)? else { break };
            files += 1;
            let (space, file) = (key.space(), key.file());
            let is_listed = db.tables.file_index().contains(index_key(&space, file, &record))?;
            self.require(is_listed, || format!("{file}: it stands in no list"));
            if let Some(key) = hidden_key(&space, file, &record) {
                hidden += 1;
                let is_listed = db.tables.hidden_files().contains(key)?;
                self.require(is_listed, || format!("{file}: it is hidden, and nothing will purge it"));
            }
            if let Some(event) = record.event {
                let named = db.tables.file_events().get(EventIdKey::new(event))?;
                self.require(named == Some(file), || format!("{file}: its event does not know it"));
            }
            let has_mover = match record.status {
                FileStatus::Uploading => db.open_upload(&space, file)?.is_some(),
                FileStatus::Processing => db.file_job(&space, file)?.is_some(),
                FileStatus::Created
                | FileStatus::Uploaded
                | FileStatus::Processed
                | FileStatus::Failed
                | FileStatus::Archived => true,
            };
            self.require(has_mover, || format!("{file}: it is {}, and nothing will move it", record.status));
        }
        let listed = db.tables.file_index().len()?;
        self.require(listed == files || !self.is_readable, || format!("{listed} files are listed, {files} are there"));
        let listed = db.tables.hidden_files().len()?;
        self.require(listed == hidden || !self.is_readable, || {
            format!("{listed} files are listed as hidden, {hidden} are")
        });
        self.versions_of_files()?;
        self.uploads_and_work()
    }

    fn versions_of_files(&mut self) -> StoreResult<()> {
        let (db, mut held) = (self.db, 0);
        for entry in db.shared_range::<FileVersions>(..)? {
            let Some((key, row)) = db.unless_damaged(entry)? else { break };
            let noted = db.tables.file_references().get(key)?;
            let holds = row.content.filter(|_| row.holds_reference).map(|content| content.wanted());
            held += u64::from(holds.is_some());
            let (file, version) = (key.file(), key.version());
            self.require(noted == holds, || format!("{file} version {version}: its reference is not noted"));
            let is_coming = row.status != StoredStatus::Uploading || db.open_upload(&key.space(), file)?.is_some();
            self.require(is_coming, || format!("{file} version {version}: it is uploading, and nobody uploads it"));
            let has_mover = row.status != StoredStatus::Processing || db.file_job(&key.space(), file)?.is_some();
            self.require(has_mover, || format!("{file} version {version}: it is processing, and nobody works on it"));
        }
        let noted = db.tables.file_references().len()?;
        self.require(noted == held || !self.is_readable, || {
            format!("{noted} references of files are noted, {held} held")
        });
        for entry in db.shared_range::<DerivedFiles>(..)? {
            let Some((key, row)) = db.unless_damaged(entry)? else { break };
            let has_mover =
                row.status != DerivedStatus::Processing || db.file_job(&key.space(), key.parent())?.is_some();
            self.require(has_mover, || format!("{} of {}: nobody works on it", row.variant, key.parent()));
        }
        Ok(())
    }

    fn uploads_and_work(&mut self) -> StoreResult<()> {
        let (db, mut jobs) = (self.db, 0);
        for entry in db.shared_range::<OpenUploads>(..)? {
            let Some((key, upload)) = db.unless_damaged(entry)? else { break };
            let state = db.unless_damaged(db.object_row(upload.object))?.flatten().map(|row| row.state);
            let is_written = matches!(state, Some(ObjectState::Writing { .. }));
            self.require(is_written, || format!("{}: an upload is open whose object is not written", key.file()));
        }
        for entry in db.shared_range::<FileJobs>(..)? {
            let Some((key, job)) = db.unless_damaged(entry)? else { break };
            jobs += 1;
            let due = job.lease.as_ref().map_or(job.due, |lease| lease.until);
            let is_due = db.tables.file_jobs_due().contains(FileJobDueKey::new(due, key.space(), key.file()))?;
            self.require(is_due, || format!("{}: work waits for it, and is not listed", key.file()));
        }
        let due = db.tables.file_jobs_due().len()?;
        self.require(due == jobs || !self.is_readable, || format!("{due} pieces of work are listed, {jobs} wait"));
        Ok(())
    }
}
