//! Uploads: a file is begun, its bytes come, and an event speaks of them.

use super::renditions::{end_older_work, forget_derived};
use super::{
    FileError, FileRequest, FileResult, NewFile, UploadForm, UploadPlace, UploadedBytes, VERSIONS_MAX, fail_upload,
};
use crate::commands::conversation::{self, CommandContext};
use crate::commands::moderation::check_quota;
use crate::commands::{CommandError, IdempotencyKey, hosted, seal};
use crate::large_content::StagedContent;
use engine::access::{Action, Facts};
use engine::create::Seal;
use engine::reads::Reads as _;
use engine::rows::ContentLocation;
use model::files::{FileStatus, StoredStatus};
use model::{FileId, Nanos, ObjectName, SpaceId};
use store::Batch;
use store::events::objects::ObjectState;
use store::shared::api_keys::{IdempotencyRecord, RequestOutcome};
use store::shared::files::{
    FileChangeError, FileContent, FileJob, FileRecord, FileVersion, OpenUpload, StatusChange, UploadPause,
};

/// How long an upload may take from its first byte to its last.
const UPLOAD_NANOS_MAX: u64 = 24 * 3600 * Nanos::SECOND;

/// How many uploads may be open that go on later.
const OPEN_UPLOADS_MAX: u64 = 1000;
const OPEN_UPLOADS_PER_OWNER_MAX: u64 = 50;

/// A command under way.
pub(super) struct FileCommandContext<'a> {
    pub(super) request: &'a FileRequest,
    pub(super) context: CommandContext<'a>,
    pub(super) who: &'a str,
}

impl FileCommandContext<'_> {
    pub(super) fn space(&self) -> &SpaceId {
        &self.request.space
    }

    pub(super) fn id(&self) -> FileId {
        self.request.file
    }

    pub(super) fn because<'w>(&'w self, why: &'w str) -> StatusChange<'w> {
        StatusChange { who: self.who, why }
    }

    /// The file, if the caller may change it.
    pub(super) fn own(&self, batch: &Batch<'_>) -> Result<FileRecord, FileError> {
        let record = batch.db().file(self.space(), self.id())?.ok_or(FileChangeError::Unknown)?;
        let is_own = record.owner == self.context.signer.identity;
        let facts = Facts { is_closed_to_caller: false, is_own, is_known: true };
        conversation::check_access(&self.context.principal, Action::Change, &facts)?;
        // It is made, shown, hidden and purged with what it was derived from.
        if record.derivation.is_some() {
            return Err(FileError::Derived);
        }
        Ok(record)
    }

    /// Bytes are coming into an object: of a new file, of one that has none yet, or of a new version of one that has some.
    /// Those of which the number is known may come in several goes.
    pub(super) fn receive(
        &self,
        batch: &mut Batch<'_>,
        new: Option<&NewFile>,
        resumable: Option<u64>,
    ) -> Result<FileResult, FileError> {
        let by = self.because("upload began");
        let record = match (batch.db().file(self.space(), self.id())?, new) {
            (Some(_), _) => self.begin_on(batch, FileStatus::Uploading, by)?,
            (None, Some(new)) => self.begin(batch, new, FileStatus::Uploading, by.why)?.record,
            (None, None) => return Err(FileChangeError::Unknown.into()),
        };
        if let Some(size) = resumable.or(record.size.filter(|_| record.version == 0)) {
            let others = if resumable.is_some() { self.announced(batch)? } else { 0 };
            check_quota(batch, self.context.no, &self.context.signer.identity, size.saturating_add(others))?;
        }
        let kept = hosted(batch.db(), self.space())?;
        let until = batch.now().plus(UPLOAD_NANOS_MAX);
        let object = batch.begin_object(self.space(), !kept.sealed, until)?;
        let form = match (seal(batch.db(), self.space(), &kept)?, object.key) {
            (Seal::Key(key), _) => UploadForm::Sealed(key),
            (Seal::Plain | Seal::Prekey(_), Some(key)) => UploadForm::Encrypted(key),
            (Seal::Plain | Seal::Prekey(_), None) => return Err(CommandError::NoKey.into()),
        };
        let place = (self.id(), record.version + 1);
        match batch.db().file_version(self.space(), place.0, place.1)? {
            Some(_) => {
                let row = batch.move_version(self.space(), place, StoredStatus::Uploading, by)?;
                batch.put_version(self.space(), place, &FileVersion { object: Some(object.name), ..row })?;
            }
            None => {
                let row = self.new_version(batch, StoredStatus::Uploading);
                let row = FileVersion { object: Some(object.name), ..row };
                batch.begin_version(self.space(), place, &row, by)?;
            }
        }
        let pause = resumable.map(|size| UploadPause { size, offset: 0, pending: Vec::new() });
        let upload = OpenUpload { object: object.name, version: place.1, until, pause };
        batch.put_open_upload(self.space(), self.id(), &upload)?;
        Ok(FileResult { id: self.id(), record, place: Some(UploadPlace { object: object.name, form }) })
    }

    /// How many bytes the caller's other uploads will have that go on later. There may be only so many of them.
    fn announced(&self, batch: &Batch<'_>) -> Result<u64, FileError> {
        let open = batch.db().open_upload_count(None)?;
        if open >= OPEN_UPLOADS_MAX {
            return Err(FileError::TooManyUploads(open));
        }
        let (mut own, mut bytes) = (0, 0_u64);
        for (space, file, upload) in batch.db().open_uploads()? {
            let owner = batch.db().file(&space, file)?.map(|record| record.owner);
            if let Some(pause) = upload.pause.filter(|_| owner == Some(self.context.signer.identity)) {
                own += 1;
                bytes = bytes.saturating_add(pause.size);
            }
        }
        if own >= OPEN_UPLOADS_PER_OWNER_MAX {
            return Err(FileError::TooManyUploads(own));
        }
        Ok(bytes)
    }

    /// Bytes of a known file begin to come, or have come. One that has bytes already keeps its status: they are a new version.
    fn begin_on(
        &self,
        batch: &mut Batch<'_>,
        status: FileStatus,
        by: StatusChange<'_>,
    ) -> Result<FileRecord, FileError> {
        let record = self.own(batch)?;
        if record.deleted_at.is_some() {
            return Err(FileError::Hidden);
        }
        if record.version >= VERSIONS_MAX {
            return Err(FileError::Link("the file has a thousand versions, which is the most"));
        }
        match record.status {
            // The version began before; whoever works on an older one comes too late.
            FileStatus::Processing if status == FileStatus::Uploaded && self.is_open(batch)? => Ok(record),
            FileStatus::Processing => Err(FileError::Busy),
            FileStatus::Archived => Err(FileError::Link("the file is archived; bring it back first")),
            FileStatus::Uploaded | FileStatus::Processed => Ok(record),
            // What could not be processed is uploaded again, in one step where nothing was said of its beginning.
            FileStatus::Failed if status == FileStatus::Uploaded => {
                batch.move_file(self.space(), self.id(), FileStatus::Uploading, by)?;
                Ok(batch.move_file(self.space(), self.id(), status, by)?)
            }
            FileStatus::Created | FileStatus::Uploading | FileStatus::Failed => {
                Ok(batch.move_file(self.space(), self.id(), status, by)?)
            }
        }
    }

    fn is_open(&self, batch: &Batch<'_>) -> Result<bool, FileError> {
        Ok(batch.db().open_upload(self.space(), self.id())?.is_some())
    }

    /// So many bytes have come; whoever sends them may go on later.
    pub(super) fn pause(&self, batch: &mut Batch<'_>, offset: u64, pending: &[u8]) -> Result<FileResult, FileError> {
        let record = self.own(batch)?;
        let upload = batch.db().open_upload(self.space(), self.id())?;
        let Some(OpenUpload { pause: Some(pause), object, version, .. }) = upload else {
            return Err(FileError::NoUpload);
        };
        let state = batch.db().object_row(object)?.map(|row| row.state);
        if !matches!(state, Some(ObjectState::Writing { .. })) {
            return Err(FileError::NoUpload);
        }
        let until = batch.now().plus(UPLOAD_NANOS_MAX);
        let pause = Some(UploadPause { offset, pending: pending.to_vec(), ..pause });
        let upload = OpenUpload { object, version, until, pause };
        batch.put_open_upload(self.space(), self.id(), &upload)?;
        Ok(self.result(record))
    }

    /// Finishes an upload, once however often the same request is sent.
    pub(super) fn finish_once(
        &self,
        batch: &mut Batch<'_>,
        new: Option<&NewFile>,
        bytes: &UploadedBytes,
    ) -> Result<FileResult, FileError> {
        let Some(IdempotencyKey { who_and_key, fingerprint }) = self.request.idempotency else {
            return self.finish(batch, new, bytes);
        };
        if let Some(earlier) = batch.db().asked(&who_and_key, batch.now())? {
            let RequestOutcome::Event(event) = earlier.outcome else { return Err(CommandError::OtherRequest.into()) };
            if earlier.fingerprint != fingerprint {
                return Err(CommandError::OtherRequest.into());
            }
            let id = batch.db().file_of_event(&event)?.ok_or(FileChangeError::Unknown)?;
            let record = batch.db().file(self.space(), id)?.ok_or(FileChangeError::Unknown)?;
            let mine = batch.db().file(self.space(), self.id())?;
            if id != self.id() && mine.is_some_and(|row| row.status == FileStatus::Uploading) {
                fail_upload(batch, self.space(), self.id(), self.because("the same request was done before"))?;
            }
            return Ok(FileResult { id, record, place: None });
        }
        let finished = self.finish(batch, new, bytes)?;
        if let Some(event) = finished.record.event {
            let outcome = RequestOutcome::Event(event);
            batch.keep_asked(who_and_key, &IdempotencyRecord { fingerprint, at: batch.now(), outcome })?;
        }
        Ok(finished)
    }

    fn finish(
        &self,
        batch: &mut Batch<'_>,
        new: Option<&NewFile>,
        bytes: &UploadedBytes,
    ) -> Result<FileResult, FileError> {
        check_quota(batch, self.context.no, &self.context.signer.identity, bytes.len)?;
        let by = self.because("its bytes are here");
        let known = batch.db().file(self.space(), self.id())?;
        let mut record = match (known, new) {
            (Some(_), _) => self.begin_on(batch, FileStatus::Uploaded, by)?,
            (None, Some(new)) => self.begin(batch, new, FileStatus::Uploaded, by.why)?.record,
            (None, None) => return Err(FileChangeError::Unknown.into()),
        };
        match &bytes.media_type {
            Some(media_type) => record.media_type.clone_from(media_type),
            // What was said was said of other bytes.
            None if record.version > 0 => record.media_type.clear(),
            None => {}
        }
        let version = record.version + 1;
        let event = self.create_event(batch, &record, bytes)?;
        match &bytes.content {
            StagedContent::Bytes(wire) => batch.deliver(self.space(), &bytes.hash, wire)?,
            StagedContent::Object(name, len) => batch.enter_object(self.space(), &bytes.hash, *len, *name)?,
        };
        // An object that took too long, or was given up meanwhile, is not there any more.
        let row = batch.db().content(self.context.no, &bytes.hash)?;
        if bytes.len > 0 && row.is_none_or(|row| row.place == ContentLocation::Absent) {
            return Err(FileError::NoUpload);
        }
        let content = Some(FileContent { hash: bytes.hash, len: bytes.len });
        let place = (self.id(), version);
        self.end_older(batch, bytes, by)?;
        // A link is good for one upload.
        if let Some(link) = bytes.by_link
            && !batch.end_file_link(self.space(), self.id(), link)?
        {
            return Err(FileError::Link("the link was ended or used while the bytes came"));
        }
        match batch.db().file_version(self.space(), self.id(), version)? {
            Some(row) => {
                if row.status == StoredStatus::Failed {
                    batch.move_version(self.space(), place, StoredStatus::Uploading, by)?;
                }
                let row = batch.move_version(self.space(), place, StoredStatus::Uploaded, by)?;
                let (size, event, is_renderable) = (Some(bytes.size), Some(event), bytes.is_renderable);
                let row = FileVersion { content, object: None, size, event, is_renderable, ..row };
                batch.put_version(self.space(), place, &row)?;
            }
            None => {
                let row = self.new_version(batch, StoredStatus::Uploaded);
                let (size, event, is_renderable) = (Some(bytes.size), Some(event), bytes.is_renderable);
                let row = FileVersion { content, size, event, is_renderable, ..row };
                batch.begin_version(self.space(), place, &row, by)?;
            }
        }
        let updated_at = batch.now();
        record = FileRecord { size: Some(bytes.size), event: Some(event), version, updated_at, ..record };
        batch.put_file(self.space(), self.id(), &record)?;
        if bytes.is_renderable {
            let (due, reason) = (batch.now(), (version > 1).then(|| format!("version {version} was uploaded")));
            batch.put_file_job(self.space(), self.id(), &FileJob { attempts: 0, due, lease: None, reason })?;
        } else if version > 1 {
            forget_derived(batch, (self.space(), self.id()), by)?;
            record = batch.db().file(self.space(), self.id())?.ok_or(FileChangeError::Unknown)?;
        }
        Ok(self.result(record))
    }

    /// What was under way of the file is over: another upload of the same version, and work on an older one.
    fn end_older(&self, batch: &mut Batch<'_>, bytes: &UploadedBytes, by: StatusChange<'_>) -> Result<(), FileError> {
        if let Some(open) = batch.db().open_upload(self.space(), self.id())? {
            let is_own = matches!(bytes.content, StagedContent::Object(name, _) if name == open.object);
            if !is_own {
                batch.forget_object(open.object)?;
            }
            batch.end_open_upload(self.space(), self.id())?;
        }
        end_older_work(batch, (self.space(), self.id()), by)?;
        Ok(())
    }

    /// An upload will not be finished: the one into that object, if it is named. Another one goes on.
    pub(super) fn fail(
        &self,
        batch: &mut Batch<'_>,
        why: &str,
        object: Option<ObjectName>,
    ) -> Result<FileResult, FileError> {
        let record = self.own(batch)?;
        let open = batch.db().open_upload(self.space(), self.id())?;
        if object.is_some() && open.map(|open| open.object) != object {
            return Ok(self.result(record));
        }
        fail_upload(batch, self.space(), self.id(), self.because(why))
    }
}
