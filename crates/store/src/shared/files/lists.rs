//! The lists of files made anew, where only the rows were taken over.

use super::{OpenUpload, StatusChange};
use crate::database::batch::Batch;
use crate::keys::*;
use crate::shared::files::{FileChangeError, FileJob, FileVersion};
use crate::shared::{FileJobs, FileVersions, Files};
use engine::reads::StoreResult;
use model::files::{FileStatus, StoredStatus};
use model::{FileId, SpaceId};

impl Batch<'_> {
    /// Makes the lists of files anew from their rows, with the references that these hold. Work begins anew; uploads that were
    /// under way have failed, because their bytes were not taken over.
    pub fn rebuild_file_lists(&mut self) -> StoreResult<()> {
        let files = self.db.shared_range::<Files>(..)?.collect::<StoreResult<Vec<_>>>()?;
        for (key, record) in files {
            self.put_file(&key.space(), key.file(), &record)?;
        }
        let versions = self.db.shared_range::<FileVersions>(..)?.collect::<StoreResult<Vec<_>>>()?;
        for (key, row) in versions {
            if let Some(event) = row.event {
                self.db.tables.file_events.insert(EventIdKey::new(event), key.file())?;
            }
            self.put_version(&key.space(), (key.file(), key.version()), &row)?;
        }
        let jobs = self.db.shared_range::<FileJobs>(..)?.collect::<StoreResult<Vec<_>>>()?;
        for (key, job) in jobs {
            let (space, file) = (key.space(), key.file());
            self.put_file_job(&space, file, &FileJob { lease: None, due: self.now, ..job })?;
        }
        for (space, file, upload) in self.db.open_uploads()? {
            self.end_lost_upload(&space, file, &upload).or_else(|why| match why {
                FileChangeError::Store(fault) => Err(fault),
                FileChangeError::Unknown | FileChangeError::Edge { .. } => Ok(()),
            })?;
            self.end_open_upload(&space, file)?;
        }
        Ok(())
    }

    fn end_lost_upload(&mut self, space: &SpaceId, file: FileId, upload: &OpenUpload) -> Result<(), FileChangeError> {
        let by = StatusChange { who: "the node", why: "its bytes were not taken over" };
        let place = (file, upload.version);
        if self.db.file(space, file)?.is_some_and(|record| record.status == FileStatus::Uploading) {
            self.move_file(space, file, FileStatus::Failed, by)?;
        }
        if self.db.file_version(space, file, upload.version)?.is_some_and(|row| row.status == StoredStatus::Uploading) {
            let row = self.move_version(space, place, StoredStatus::Failed, by)?;
            self.put_version(space, place, &FileVersion { object: None, ..row })?;
        }
        Ok(())
    }
}
