//! What the rows of a file begin with, and the event that speaks of it.

use super::checks::{check_media_type, check_metadata, check_name};
use super::uploads::FileCommandContext;
use super::{FileError, FileResult, NewFile, UploadedBytes};
use crate::commands::CommandError;
use crate::commands::moderation::check_quota;
use model::crypto::chosen_key;
use model::files::{FileStatus, Manifest, StoredStatus, WantedBytes};
use model::{EventId, Kind};
use store::Batch;
use store::shared::files::{FileRecord, FileVersion};

impl FileCommandContext<'_> {
    pub(super) fn begin(
        &self,
        batch: &mut Batch<'_>,
        new: &NewFile,
        status: FileStatus,
        why: &str,
    ) -> Result<FileResult, FileError> {
        if batch.db().file(self.space(), self.id())?.is_some() {
            return Err(CommandError::Taken(self.id().to_name()).into());
        }
        let record = self.new_record(batch, new, status)?;
        // Records alone may not fill the disk either.
        check_quota(batch, self.context.no, &self.context.signer.identity, 1)?;
        batch.begin_file(self.space(), self.id(), &record, self.because(why))?;
        Ok(self.result(record))
    }

    pub(super) fn result(&self, record: FileRecord) -> FileResult {
        FileResult { id: self.id(), record, place: None }
    }

    fn new_record(&self, batch: &Batch<'_>, new: &NewFile, status: FileStatus) -> Result<FileRecord, FileError> {
        check_name(&new.name)?;
        check_media_type(&new.media_type)?;
        check_metadata(&new.metadata)?;
        let now = batch.now();
        Ok(FileRecord {
            owner: self.context.signer.identity,
            name: new.name.clone(),
            media_type: new.media_type.clone(),
            size: new.size,
            status,
            created_at: now,
            updated_at: now,
            deleted_at: None,
            is_purged: false,
            metadata: new.metadata.clone(),
            derivation: None,
            event: None,
            version: 0,
            before_archive: None,
            error: None,
            history: Vec::new(),
        })
    }

    pub(super) fn new_version(&self, batch: &Batch<'_>, status: StoredStatus) -> FileVersion {
        let now = batch.now();
        FileVersion {
            content: None,
            object: None,
            size: None,
            status,
            created_at: now,
            updated_at: now,
            deleted_at: None,
            error: None,
            event: None,
            holds_reference: false,
            is_renderable: false,
        }
    }

    /// The event that speaks of the bytes.
    pub(super) fn create_event(
        &self,
        batch: &mut Batch<'_>,
        record: &FileRecord,
        bytes: &UploadedBytes,
    ) -> Result<EventId, FileError> {
        let manifest = Manifest {
            id: Some(self.id().to_name()),
            name: record.name.clone(),
            media_type: record.media_type.clone(),
            size: bytes.size,
            content: WantedBytes { hash: bytes.hash, len: bytes.len },
        };
        let content = manifest.encode().map_err(CommandError::from)?;
        let aux = chosen_key(&self.id().to_name());
        Ok(self.context.create(batch, (Kind::File, aux), Vec::new(), content)?)
    }
}
