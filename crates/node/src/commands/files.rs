//! Files: begun, uploaded, changed and deleted, each step in one transaction.
//!
//! A file has a record from its beginning. When its bytes are here, an event speaks of them, so that messages can refer to
//! it and other nodes learn of it; the event carries the id of the file as the id that its author chose. What is small
//! passes through the writer together with its event; what is large was written into an object before.

mod changes;
mod checks;
pub mod completion;
pub(crate) mod followed;
pub mod imported;
pub mod jobs;
pub mod links;
mod records;
pub(crate) mod renditions;
mod uploads;

use crate::commands::{Caller, CommandError, IdempotencyKey, conversation};
use crate::large_content::StagedContent;
use crate::writer_command::{CommandFailure, WriterCommand};
use engine::access::Action;
use engine::reads::StoreError;
use model::crypto::{ObjectKey, SpaceKey};
use model::files::{FileStatus, StoredStatus};
use model::{ContentHash, FileId, LinkId, ObjectName, SpaceId};
use std::sync::Arc;
use store::Batch;
use store::shared::files::{FileChangeError, FileRecord, FileVersion, LinkPurpose, StatusChange};
use uploads::FileCommandContext;

/// How many versions a file may have. All of them are read when it is purged.
pub(crate) const VERSIONS_MAX: u32 = 1000;

/// A command about one file.
#[derive(Clone, Debug)]
pub struct FileRequest {
    pub space: SpaceId,
    pub caller: Caller,
    pub file: FileId,
    pub command: FileCommand,
    /// What makes an upload safe to repeat.
    pub idempotency: Option<IdempotencyKey>,
    /// Randomness for an identity that may have to be made.
    pub random: [u8; 32],
}

/// What is done about a file.
#[derive(Clone, Debug)]
pub enum FileCommand {
    /// Begin a file whose bytes come later.
    Begin(NewFile),
    /// The bytes are coming; begins the file if it was not begun, or a new version of one that has bytes. Answers where they
    /// are to be written.
    Receive(Option<NewFile>),
    /// The same, for bytes of that number which may come in several goes.
    ReceiveResumable(Option<NewFile>, u64),
    /// So many bytes have come and are durable but the last ones, which are these; more come later.
    Pause(u64, Vec<u8>),
    /// All bytes are here; begins the file, or a new version of it, if that was not begun.
    Finish(Option<NewFile>, UploadedBytes),
    /// The bytes will not come, and why; into that object, if it is named.
    Fail(String, Option<ObjectName>),
    /// Change what people call it.
    Change(FileChange),
    /// Hide it.
    Delete,
    /// Show it again.
    Undelete,
    /// Process it again, where that has failed.
    Retry,
    /// Stop processing it, and say why.
    FailWork(String),
    /// Delete its bytes and everything derived from it for ever.
    Purge,
    /// Make a link to it.
    MakeLink(LinkId, NewLink),
    /// End a link to it.
    EndLink(LinkId),
}

/// A link that is made.
#[derive(Clone)]
pub struct NewLink {
    /// What its URL is signed with: random.
    pub secret: [u8; 32],
    pub purpose: LinkPurpose,
    /// How long it is good for.
    pub seconds: u64,
}

impl std::fmt::Debug for NewLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewLink({:?} for {} s)", self.purpose, self.seconds)
    }
}

/// A file that is begun.
#[derive(Clone, Debug, Default)]
pub struct NewFile {
    pub name: String,
    pub media_type: String,
    pub size: Option<u64>,
    /// A JSON object.
    pub metadata: String,
}

/// The bytes of a file.
#[derive(Clone, Debug)]
pub struct UploadedBytes {
    pub content: StagedContent,
    /// The hash and the length of what travels.
    pub hash: ContentHash,
    pub len: u64,
    pub size: u64,
    /// What the bytes are, if they tell.
    pub media_type: Option<String>,
    /// Whether renditions are expected of it.
    pub is_renderable: bool,
    /// The link by which they came, which ends with that.
    pub by_link: Option<LinkId>,
}

/// What is to change of a file.
#[derive(Clone, Debug, Default)]
pub struct FileChange {
    pub name: Option<String>,
    /// A JSON object.
    pub metadata: Option<String>,
    pub archived: Option<bool>,
}

/// What a command about a file did.
#[derive(Clone, Debug)]
pub struct FileResult {
    /// The file: for a request that was done before the one that it made then.
    pub id: FileId,
    pub record: FileRecord,
    /// Where the bytes are to be written, if they are coming.
    pub place: Option<UploadPlace>,
}

/// Where the bytes of an upload are written, and how.
#[derive(Clone, Debug)]
pub struct UploadPlace {
    pub object: ObjectName,
    pub form: UploadForm,
}

/// How the bytes of an upload rest.
#[derive(Clone, Debug)]
pub enum UploadForm {
    /// Sealed, under the key of their space.
    Sealed(Arc<SpaceKey>),
    /// Under a key of their own.
    Encrypted(ObjectKey),
}

/// Why a command about a file was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Change(#[from] FileChangeError),
    /// Something that was said of it is not what it may be.
    #[error("{0}")]
    Bad(&'static str),
    /// Its bytes are gone for ever.
    #[error("the file was purged, so there is nothing to show again")]
    Purged,
    /// Nothing has failed that could be tried again.
    #[error("only a file whose processing has failed is processed again")]
    NotFailed,
    /// It was made of another file.
    #[error("the file was made of another one; change that, and this one follows")]
    Derived,
    /// It is not being processed.
    #[error("only a file that is being processed, or waits for it, can be failed")]
    NotProcessing,
    /// It is hidden.
    #[error("the file is deleted; restore it first")]
    Hidden,
    /// It is being processed.
    #[error("the file is being processed; try again when it is done")]
    Busy,
    /// A link cannot be made.
    #[error("{0}")]
    Link(&'static str),
    /// No upload of it goes on.
    #[error("no upload of this file goes on; it was finished or given up")]
    NoUpload,
    /// More uploads are open than may be.
    #[error("{0} uploads are open, which is the most; finish or end some of them")]
    TooManyUploads(u64),
}

impl From<StoreError> for FileError {
    fn from(fault: StoreError) -> FileError {
        FileError::Command(CommandError::Store(fault))
    }
}

impl CommandFailure for FileError {
    fn into_store_error(self) -> Result<StoreError, FileError> {
        match self {
            FileError::Command(CommandError::Store(fault)) | FileError::Change(FileChangeError::Store(fault)) => {
                Ok(fault)
            }
            other => Err(other),
        }
    }
}

impl WriterCommand for FileRequest {
    type Answer = FileResult;
    type Error = FileError;

    fn run(&self, batch: &mut Batch<'_>) -> Result<FileResult, FileError> {
        let action = match self.command {
            FileCommand::Begin(_)
            | FileCommand::Receive(_)
            | FileCommand::ReceiveResumable(..)
            | FileCommand::Pause(..)
            | FileCommand::Finish(..)
            | FileCommand::Fail(..) => Action::Write,
            FileCommand::Change(_)
            | FileCommand::Delete
            | FileCommand::Undelete
            | FileCommand::Retry
            | FileCommand::FailWork(_)
            | FileCommand::Purge
            | FileCommand::MakeLink(..)
            | FileCommand::EndLink(_) => Action::Change,
        };
        let context = conversation::context(batch, &self.space, &self.caller, &self.random, action)?;
        let who = context.audit_name();
        let work = FileCommandContext { request: self, context, who: &who };
        match &self.command {
            FileCommand::Begin(new) => work.begin(batch, new, FileStatus::Created, "begun"),
            FileCommand::Receive(new) => work.receive(batch, new.as_ref(), None),
            FileCommand::ReceiveResumable(new, size) => work.receive(batch, new.as_ref(), Some(*size)),
            FileCommand::Pause(offset, pending) => work.pause(batch, *offset, pending),
            FileCommand::Finish(new, bytes) => work.finish_once(batch, new.as_ref(), bytes),
            FileCommand::Fail(why, object) => work.fail(batch, why, *object),
            FileCommand::Change(change) => work.change(batch, change),
            FileCommand::Delete => work.set_deleted(batch, true),
            FileCommand::Undelete => work.set_deleted(batch, false),
            FileCommand::Retry => work.retry(batch),
            FileCommand::FailWork(why) => work.fail_work(batch, why),
            FileCommand::Purge => work.purge(batch),
            FileCommand::MakeLink(link, new) => work.make_link(batch, *link, new),
            FileCommand::EndLink(link) => work.end_link(batch, *link),
        }
    }
}

/// An upload that will not be finished: its object goes, and its rows say why. A file that had bytes before keeps them.
pub(crate) fn fail_upload(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    id: FileId,
    by: StatusChange<'_>,
) -> Result<FileResult, FileError> {
    let upload = batch.db().open_upload(space, id)?;
    let mut record = batch.db().file(space, id)?.ok_or(FileChangeError::Unknown)?;
    let has_bytes = record.version > 0 && record.status != FileStatus::Uploading;
    if !has_bytes {
        record = batch.move_file(space, id, FileStatus::Failed, by)?;
    }
    let Some(upload) = upload else { return Ok(FileResult { id, record, place: None }) };
    batch.forget_object(upload.object)?;
    batch.end_open_upload(space, id)?;
    let place = (id, upload.version);
    let is_its_own = |row: &FileVersion| row.object == Some(upload.object);
    if batch.db().file_version(space, id, upload.version)?.is_some_and(|row| is_its_own(&row)) {
        let row = batch.move_version(space, place, StoredStatus::Failed, by)?;
        batch.put_version(space, place, &FileVersion { object: None, ..row })?;
    }
    Ok(FileResult { id, record, place: None })
}

/// An upload that nobody goes on with: fails it, or forgets what there is of it if its file is gone.
fn give_up_upload(
    batch: &mut Batch<'_>,
    (space, file): (&SpaceId, FileId),
    object: ObjectName,
    why: &str,
) -> Result<(), FileError> {
    match fail_upload(batch, space, file, StatusChange { who: "the node", why }) {
        Err(FileError::Change(FileChangeError::Unknown | FileChangeError::Edge { .. })) => {
            batch.forget_object(object)?;
            batch.end_open_upload(space, file)?;
            Ok(())
        }
        other => other.map(drop),
    }
}

/// Ends uploads that were interrupted when the node stopped and cannot go on, with other objects that were being written:
/// the objects go, and files say why.
#[derive(Clone, Debug)]
pub(crate) struct FailInterrupted(pub(crate) Vec<ObjectName>);

impl WriterCommand for FailInterrupted {
    type Answer = ();
    type Error = FileError;

    fn run(&self, batch: &mut Batch<'_>) -> Result<(), FileError> {
        for (space, file, upload) in batch.db().open_uploads()? {
            if upload.pause.is_none() {
                let why = "the node stopped before the upload was whole";
                give_up_upload(batch, (&space, file), upload.object, why)?;
            }
        }
        self.0.iter().try_for_each(|object| batch.forget_object(*object))?;
        Ok(())
    }
}

/// Ends uploads that nobody has gone on with for too long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailExpired;

impl WriterCommand for FailExpired {
    type Answer = ();
    type Error = FileError;

    fn run(&self, batch: &mut Batch<'_>) -> Result<(), FileError> {
        for (space, file, upload) in batch.db().open_uploads()? {
            if upload.until <= batch.now() {
                let why = "nothing more of the upload came for too long";
                give_up_upload(batch, (&space, file), upload.object, why)?;
            }
        }
        Ok(())
    }
}
