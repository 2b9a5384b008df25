//! An upload: bytes as they come, hashed and sealed in one pass.
//!
//! What is small is kept in memory and stored with its event in one commit. As soon as there is more, the file is begun by a
//! commit of its own and the bytes go into an object; the event follows when they are all there. Whoever gives up, or is
//! dropped, leaves a record that says so, and nothing else.
//!
//! A *resumable* upload goes into an object from its beginning, says how far it has come whenever it pauses, and goes on from
//! there, also after the node has started again. Dropping one changes nothing.

use crate::commands::files::{FileCommand, FileError, FileRequest, FileResult, NewFile, UploadForm, UploadedBytes};
use crate::commands::{Caller, CommandError, IdempotencyKey, seal_for};
use crate::files::piped::PipedBackend;
use crate::files::reading::keys;
use crate::large_content::StagedContent;
use crate::running::Node;
use crate::writer_command::AskError;
use engine::create::Seal;
use engine::reads::StoreError;
use media::BEGINNING_BYTES;
use model::content::seal_content;
use model::crypto::content_hash;
use model::limits::CHUNK_BYTES;
use model::{FileId, Identity, LinkId, Nanos, ObjectName, SpaceId};
use objects::{ContentWriter, ObjectError, PausedContent, WriteForm};
use store::shared::files::{OpenUpload, UploadPause};

/// Bytes that are kept in memory before a file is begun: one chunk.
const BUFFERED_BYTES_MAX: usize = CHUNK_BYTES;

/// Who uploads what.
#[derive(Clone, Debug)]
pub struct UploadRequest {
    pub space: SpaceId,
    pub caller: Caller,
    pub file: FileId,
    /// What the file is called; none if it was begun already.
    pub new: Option<NewFile>,
    /// The hash that the bytes must have, if whoever sends them says it.
    pub sha256: Option<[u8; 32]>,
    /// The link by which they come.
    pub by_link: Option<LinkId>,
    /// The most bytes that may come.
    pub size_max: u64,
    /// The fewest, if somebody said how many there are.
    pub size_min: Option<u64>,
    /// What makes it safe to repeat.
    pub idempotency: Option<IdempotencyKey>,
    pub random: [u8; 32],
}

/// Why an upload did not come to its end.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum UploadError {
    #[error("the file is larger than {0} bytes, which is the most that is taken")]
    TooLarge(u64),
    #[error("{0} bytes came, and {1} were announced")]
    TooShort(u64, u64),
    /// The bytes have another hash than was said.
    #[error("the bytes are not those that were declared: their SHA-256 is {0}")]
    OtherHash(String),
    #[error(transparent)]
    Ask(#[from] AskError<FileError>),
    #[error("the bytes could not be stored: {0}")]
    Object(ObjectError),
    /// Whoever sent them stopped.
    #[error("{0}")]
    BrokenOff(&'static str),
}

impl From<ObjectError> for UploadError {
    fn from(why: ObjectError) -> UploadError {
        match why {
            ObjectError::TooLong(most) => UploadError::TooLarge(most),
            other => UploadError::Object(other),
        }
    }
}

impl From<StoreError> for UploadError {
    fn from(fault: StoreError) -> UploadError {
        UploadError::Ask(AskError::NotRun(fault.into()))
    }
}

/// Bytes that are coming.
pub struct Upload {
    node: Node,
    request: UploadRequest,
    hasher: Option<ring::digest::Context>,
    state: UploadState,
    /// How many bytes there will be, if it goes on later.
    resumable: Option<u64>,
    /// Where its bytes go, once there are more than a few.
    object: Option<ObjectName>,
}

enum UploadState {
    /// Few have come so far.
    Buffered(Vec<u8>),
    /// They go into an object.
    Writing(Box<ContentWriter>),
    /// It has come to its end, one way or the other.
    Over,
}

impl Upload {
    /// Nothing happens before the first bytes come.
    pub fn new(node: Node, request: UploadRequest) -> Upload {
        let hasher = request.sha256.map(|_| ring::digest::Context::new(&ring::digest::SHA256));
        Upload { node, request, hasher, state: UploadState::Buffered(Vec::new()), resumable: None, object: None }
    }

    /// Begins an upload of that many bytes, which may come in several goes.
    pub fn begin_resumable(node: Node, request: UploadRequest, size: u64) -> Result<Upload, UploadError> {
        if size > request.size_max {
            return Err(UploadError::TooLarge(request.size_max));
        }
        let mut upload = Upload::new(node, UploadRequest { sha256: None, ..request });
        upload.resumable = Some(size);
        upload.state = UploadState::Writing(upload.begin_object()?);
        if let Err(why) = upload.pause() {
            upload.fail(&why.to_string());
            return Err(why);
        }
        Ok(upload)
    }

    /// Goes on with an upload that has paused.
    pub fn resume(node: Node, request: UploadRequest) -> Result<Upload, UploadError> {
        let db = node.snapshot()?;
        let open = db.open_upload(&request.space, request.file)?;
        let Some(OpenUpload { object, pause: Some(pause), .. }) = open else {
            return Err(AskError::Refused(FileError::NoUpload).into());
        };
        let UploadPause { size, offset, pending } = pause;
        // The key of the space may have changed meanwhile.
        let forms: Vec<WriteForm> = match db.key_of_object(object)? {
            Some(key) => vec![WriteForm::Encrypted(key)],
            None => keys(&db, &request.space)?.into_iter().map(WriteForm::Sealed).collect(),
        };
        let paused = PausedContent { plain_len: offset, pending };
        let backend = PipedBackend(node.store().disk().objects());
        let mut resumed = Err(ObjectError::Damaged(object, "it opens under no key of its space"));
        for form in forms {
            resumed = ContentWriter::resume(&backend, object, form, size, paused.clone());
            if !matches!(resumed, Err(ObjectError::Damaged(..))) {
                break;
            }
        }
        let mut upload = Upload::new(node, request);
        (upload.resumable, upload.object) = (Some(size), Some(object));
        match resumed {
            Ok(writer) => upload.state = UploadState::Writing(Box::new(writer)),
            Err(why @ (ObjectError::NotFound(_) | ObjectError::Damaged(..))) => {
                upload.fail(&why.to_string());
                return Err(why.into());
            }
            Err(why) => return Err(why.into()),
        }
        Ok(upload)
    }

    /// How many bytes have come of one that goes on later.
    pub fn offset(&self) -> u64 {
        match &self.state {
            UploadState::Writing(writer) => writer.plain_len(),
            UploadState::Buffered(_) | UploadState::Over => 0,
        }
    }

    /// Whether everything has come that was announced.
    pub fn is_whole(&self) -> bool {
        self.resumable == Some(self.offset())
    }

    /// Makes durable what has come of a resumable upload. Says how many bytes that are.
    pub fn pause(&mut self) -> Result<u64, UploadError> {
        let UploadState::Writing(writer) = &mut self.state else { return Ok(0) };
        let PausedContent { plain_len, pending } = writer.pause()?;
        self.ask(FileCommand::Pause(plain_len, pending))?;
        Ok(plain_len)
    }

    /// Says that the upload has failed for good.
    fn fail(&mut self, why: &str) {
        self.state = UploadState::Over;
        self.say_failed(why);
    }

    /// Says that the upload into this object has failed. Another one of the same file goes on.
    fn say_failed(&self, why: &str) {
        let Some(object) = self.object else { return };
        if let Err(why) = self.ask(FileCommand::Fail(why.to_owned(), Some(object))) {
            tracing::warn!(%why, "an upload that has failed is noted when the node starts again");
        }
    }

    fn ask(&self, command: FileCommand) -> Result<FileResult, AskError<FileError>> {
        let UploadRequest { space, caller, file, idempotency, random, .. } = &self.request;
        let (space, caller, file, idempotency, random) = (*space, caller.clone(), *file, *idempotency, *random);
        self.node.ask(FileRequest { space, caller, file, command, idempotency, random })
    }

    /// Takes more bytes. May wait for a commit, and for the disk.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), UploadError> {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
        match &mut self.state {
            UploadState::Writing(writer) => Ok(writer.write(bytes)?),
            UploadState::Buffered(buffer) if buffer.len() + bytes.len() <= BUFFERED_BYTES_MAX => {
                buffer.extend_from_slice(bytes);
                match buffer.len() as u64 > self.request.size_max {
                    true => Err(UploadError::TooLarge(self.request.size_max)),
                    false => Ok(()),
                }
            }
            UploadState::Buffered(buffer) => {
                let buffered = std::mem::take(buffer);
                let mut writer = self.begin_object()?;
                let written = writer.write(&buffered).and_then(|()| writer.write(bytes));
                self.state = UploadState::Writing(writer);
                Ok(written?)
            }
            UploadState::Over => Ok(()),
        }
    }

    fn begin_object(&mut self) -> Result<Box<ContentWriter>, UploadError> {
        let new = self.request.new.take();
        let begun = self.ask(match self.resumable {
            None => FileCommand::Receive(new),
            Some(size) => FileCommand::ReceiveResumable(new, size),
        })?;
        let place = begun.place.ok_or_else(|| StoreError::Broken("an upload without a place".to_owned()))?;
        self.object = Some(place.object);
        let form = match place.form {
            UploadForm::Sealed(key) => WriteForm::Sealed(key),
            UploadForm::Encrypted(key) => WriteForm::Encrypted(key),
        };
        let backend = PipedBackend(self.node.store().disk().objects());
        let writer = match self.resumable {
            None => ContentWriter::new(&backend, place.object, form, self.request.size_max),
            Some(size) => ContentWriter::new_resumable(&backend, place.object, form, size),
        };
        writer.map(Box::new).map_err(|why| {
            self.say_failed(&why.to_string());
            why.into()
        })
    }

    /// All bytes have come: the file is there when this answers. A resumable upload of which this fails has failed.
    pub fn finish(mut self) -> Result<FileResult, UploadError> {
        let finished = self.check_size().and_then(|()| self.check_hash()).and_then(|()| self.store());
        if let Err(why) = &finished {
            self.give_up(&why.to_string());
        }
        self.state = UploadState::Over;
        finished
    }

    fn check_size(&self) -> Result<(), UploadError> {
        let came = match &self.state {
            UploadState::Buffered(buffer) => buffer.len() as u64,
            UploadState::Writing(writer) => writer.plain_len(),
            UploadState::Over => 0,
        };
        match self.request.size_min {
            Some(least) if came < least => Err(UploadError::TooShort(came, least)),
            Some(_) | None => Ok(()),
        }
    }

    fn check_hash(&mut self) -> Result<(), UploadError> {
        let Some((hasher, declared)) = self.hasher.take().zip(self.request.sha256) else { return Ok(()) };
        let found = hasher.finish();
        if found.as_ref() == declared {
            return Ok(());
        }
        Err(UploadError::OtherHash(hex::encode(found)))
    }

    fn store(&mut self) -> Result<FileResult, UploadError> {
        let bytes = match std::mem::replace(&mut self.state, UploadState::Over) {
            UploadState::Buffered(buffer) => self.seal_small(buffer)?,
            UploadState::Writing(writer) => {
                let object = writer.name();
                let written = writer.finish().inspect_err(|why| {
                    let may_pass = matches!(why, ObjectError::Failed(_) | ObjectError::Full);
                    self.fail_unless(may_pass, &why.to_string());
                })?;
                let (media_type, is_renderable) = media_type(&written.beginning);
                UploadedBytes {
                    content: StagedContent::Object(object, written.len),
                    hash: written.hash,
                    len: written.len,
                    size: written.plain_len,
                    media_type,
                    is_renderable,
                    by_link: self.request.by_link,
                }
            }
            UploadState::Over => return Err(StoreError::Broken("an upload that is over".to_owned()).into()),
        };
        let new = self.request.new.take();
        let stored = self.ask(FileCommand::Finish(new, bytes));
        match (&stored, self.object) {
            (Err(why), _) => {
                let may_pass = matches!(
                    why,
                    AskError::NotRun(_) | AskError::Refused(FileError::Hidden | FileError::Busy | FileError::Link(_))
                );
                self.fail_unless(may_pass, &why.to_string());
            }
            (Ok(_), Some(object)) if self.resumable.is_some() => self.node.store().disk().objects().settle(object),
            (Ok(_), _) => {}
        }
        Ok(stored?)
    }

    /// Whatever goes on later is not given up for what may pass: it goes on from where it was durable last.
    fn fail_unless(&self, may_pass: bool, why: &str) {
        if !(may_pass && self.resumable.is_some()) {
            self.say_failed(why);
        }
    }

    /// Content that passes through the writer, as it travels.
    fn seal_small(&self, plain: Vec<u8>) -> Result<UploadedBytes, UploadError> {
        let db = self.node.snapshot()?;
        let refused = |why: CommandError| UploadError::Ask(AskError::Refused(why.into()));
        let seal = seal_for(&*db, &self.request.space).map_err(refused)?;
        let (size, beginning) = (plain.len() as u64, plain[..plain.len().min(BEGINNING_BYTES)].to_vec());
        let wire = match seal {
            // No content of a file is inline: it is shared within its space.
            Seal::Key(key) => seal_content(&key, &plain, 0, Identity([0; 32]), Nanos(0)),
            Seal::Plain | Seal::Prekey(_) => plain,
        };
        let (media_type, is_renderable) = media_type(&beginning);
        Ok(UploadedBytes {
            hash: content_hash(&wire),
            len: wire.len() as u64,
            content: StagedContent::Bytes(wire),
            size,
            media_type,
            is_renderable,
            by_link: self.request.by_link,
        })
    }

    /// Nothing more will come, and why.
    pub fn abort(mut self, why: &str) {
        if self.resumable.is_some() { self.fail(why) } else { self.give_up(why) }
    }

    fn give_up(&mut self, why: &str) {
        if let UploadState::Writing(writer) = std::mem::replace(&mut self.state, UploadState::Over) {
            drop(writer);
            // It goes on later.
            if self.resumable.is_some() {
                return;
            }
            self.say_failed(why);
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.give_up("the upload was broken off");
    }
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Upload({})", self.request.file)
    }
}

/// What the first bytes of a file tell that it is, and whether renditions are made of that.
fn media_type(beginning: &[u8]) -> (Option<String>, bool) {
    let found = infer::get(beginning).map(|kind| kind.mime_type());
    (found.map(str::to_owned), media::OriginalKind::of(beginning).is_some())
}

#[cfg(test)]
mod tests {
    use super::media_type;

    #[test]
    fn the_type_of_a_file_is_told_by_its_bytes() {
        assert_eq!(media_type(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), (Some("image/png".to_owned()), true));
        assert_eq!(media_type(b"%PDF-1.7\n"), (Some("application/pdf".to_owned()), true));
        assert_eq!(media_type(b"hello"), (None, true));
        assert_eq!(media_type(b"PK\x03\x04 and so on"), (Some("application/zip".to_owned()), false));
        assert_eq!(media_type(b"\0\x01\x02"), (None, false));
    }
}
