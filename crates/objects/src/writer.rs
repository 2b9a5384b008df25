//! Writing content in one pass: chunks, seals, hash and its tree, object.

use crate::backend::{Backend, ObjectError, ObjectSink};
use crate::reader::{ContentReader, ReadForm};
use crate::tree::TreeHasher;
use model::content::seal_chunk;
use model::crypto::{ObjectKey, SpaceKey};
use model::limits::{CHUNK_BYTES, CHUNK_OVERHEAD_BYTES};
use model::object::{ENCRYPTED_FORM, HEADER_BYTES, OBJECT_VERSION, TRAVELS_FORM};
use model::{ContentHash, ObjectName};
use std::sync::Arc;

/// How many bytes of the beginning are kept, for those who tell what the content is.
const BEGINNING_BYTES: usize = 4096;

/// What comes in, and how it rests.
#[derive(Clone)]
pub enum WriteForm {
    /// Content as it travels in a sealed space comes in; it rests so.
    AsItTravels,
    /// Plain bytes come in; they travel and rest sealed under the key of their space.
    Sealed(Arc<SpaceKey>),
    /// Content of an open space comes in, which travels plain; it rests under the key of its object.
    Encrypted(ObjectKey),
}

/// Content that was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenContent {
    /// The hash of what travels.
    pub hash: ContentHash,
    /// How many bytes travel.
    pub len: u64,
    /// How many bytes came in.
    pub plain_len: u64,
    /// The first bytes that came in.
    pub beginning: Vec<u8>,
}

/// How far content has come that goes on later, perhaps in another process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PausedContent {
    /// How many bytes have come in.
    pub plain_len: u64,
    /// The last of them, which wait for their chunk to be whole, or the last.
    pub pending: Vec<u8>,
}

/// Content that is being written into an object.
pub struct ContentWriter {
    name: ObjectName,
    sink: Box<dyn ObjectSink>,
    form: WriteForm,
    /// What has come of the chunk that is not known to be the last.
    pending: Vec<u8>,
    index: u64,
    hasher: TreeHasher,
    len: u64,
    plain_len: u64,
    plain_len_max: u64,
    beginning: Vec<u8>,
    /// Whether something could not be written: what is known of the content does not fit the object any more.
    is_broken: bool,
}

impl ContentWriter {
    /// Begins an object for content of at most so many bytes.
    pub fn new(
        backend: &dyn Backend,
        name: ObjectName,
        form: WriteForm,
        plain_len_max: u64,
    ) -> Result<ContentWriter, ObjectError> {
        ContentWriter::begin(backend.create(name)?, name, form, plain_len_max)
    }

    /// Begins an object for content that may come in several goes: it can be [resumed](ContentWriter::resume).
    pub fn new_resumable(
        backend: &dyn Backend,
        name: ObjectName,
        form: WriteForm,
        plain_len_max: u64,
    ) -> Result<ContentWriter, ObjectError> {
        ContentWriter::begin(backend.create_resumable(name)?, name, form, plain_len_max)
    }

    fn begin(
        mut sink: Box<dyn ObjectSink>,
        name: ObjectName,
        form: WriteForm,
        plain_len_max: u64,
    ) -> Result<ContentWriter, ObjectError> {
        let form_byte = match form {
            WriteForm::AsItTravels | WriteForm::Sealed(_) => TRAVELS_FORM,
            WriteForm::Encrypted(_) => ENCRYPTED_FORM,
        };
        sink.write(&[OBJECT_VERSION, form_byte])?;
        Ok(ContentWriter {
            name,
            sink,
            form,
            pending: Vec::with_capacity(CHUNK_BYTES),
            index: 0,
            hasher: TreeHasher::new(),
            len: 0,
            plain_len: 0,
            plain_len_max,
            beginning: Vec::new(),
            is_broken: false,
        })
    }

    /// Goes on with content that was paused: what was written then is read again, for the hash. What was written after the
    /// pause, and is not in it, comes again.
    pub fn resume(
        backend: &dyn Backend,
        name: ObjectName,
        form: WriteForm,
        plain_len_max: u64,
        paused: PausedContent,
    ) -> Result<ContentWriter, ObjectError> {
        let PausedContent { plain_len, pending } = paused;
        let damaged = |why| ObjectError::Damaged(name, why);
        let chunked = plain_len.checked_sub(pending.len() as u64).filter(|chunked| chunked % CHUNK_BYTES as u64 == 0);
        let chunks = chunked.ok_or(damaged("what is known of it does not fit"))? / CHUNK_BYTES as u64;
        let stored_len = HEADER_BYTES as u64 + chunks * form.stored_chunk_bytes();
        let mut writer = ContentWriter {
            name,
            sink: backend.resume(name, stored_len)?,
            form,
            pending: Vec::with_capacity(CHUNK_BYTES),
            index: chunks,
            hasher: TreeHasher::new(),
            len: 0,
            plain_len,
            plain_len_max,
            beginning: Vec::new(),
            is_broken: false,
        };
        let source = backend.open_unfinished(name)?;
        let mut reader = ContentReader::of_unfinished(source, name, writer.form.read_form(), stored_len)?;
        for chunk in 0..chunks {
            let (plain, wire) = reader.read_both(chunk)?;
            let missing = BEGINNING_BYTES.saturating_sub(writer.beginning.len()).min(plain.len());
            writer.beginning.extend_from_slice(&plain[..missing]);
            writer.hasher.update(&wire);
            writer.len += wire.len() as u64;
        }
        let missing = BEGINNING_BYTES.saturating_sub(writer.beginning.len()).min(pending.len());
        writer.beginning.extend_from_slice(&pending[..missing]);
        writer.pending.extend_from_slice(&pending);
        Ok(writer)
    }

    /// Makes durable what has come, and says what is needed to go on from here.
    pub fn pause(&mut self) -> Result<PausedContent, ObjectError> {
        self.refuse_broken()?;
        self.sink.sync()?;
        Ok(PausedContent { plain_len: self.plain_len, pending: self.pending.clone() })
    }

    /// The name of the object.
    pub fn name(&self) -> ObjectName {
        self.name
    }

    /// How many bytes have come in.
    pub fn plain_len(&self) -> u64 {
        self.plain_len
    }

    /// Takes more bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), ObjectError> {
        self.refuse_broken()?;
        let written = self.take(bytes);
        self.is_broken = written.is_err();
        written
    }

    fn refuse_broken(&self) -> Result<(), ObjectError> {
        match self.is_broken {
            true => Err(ObjectError::Failed("something of it could not be written before".to_owned())),
            false => Ok(()),
        }
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<(), ObjectError> {
        self.plain_len = self.plain_len.saturating_add(bytes.len() as u64);
        if self.plain_len > self.plain_len_max {
            return Err(ObjectError::TooLong(self.plain_len_max));
        }
        let wanted = BEGINNING_BYTES.saturating_sub(self.beginning.len()).min(bytes.len());
        self.beginning.extend_from_slice(&bytes[..wanted]);
        while !bytes.is_empty() {
            // A full chunk goes when something comes behind it: only then it is known not to be the last.
            if self.pending.len() == CHUNK_BYTES {
                self.put_chunk(false)?;
            }
            let taken = (CHUNK_BYTES - self.pending.len()).min(bytes.len());
            self.pending.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// Ends the content; the object is durable under its name.
    pub fn finish(mut self) -> Result<WrittenContent, ObjectError> {
        self.refuse_broken()?;
        if !self.pending.is_empty() {
            self.put_chunk(true)?;
        }
        let (hash, tree) = self.hasher.finish();
        if !tree.is_empty() {
            self.sink.write(tree.as_flattened())?;
        }
        self.sink.finish()?;
        Ok(WrittenContent { hash, len: self.len, plain_len: self.plain_len, beginning: self.beginning })
    }

    fn put_chunk(&mut self, is_last: bool) -> Result<(), ObjectError> {
        match &self.form {
            WriteForm::AsItTravels => {
                self.hasher.update(&self.pending);
                self.len += self.pending.len() as u64;
                self.sink.write(&self.pending)?;
            }
            WriteForm::Sealed(key) => {
                let wire = seal_chunk(key, self.index, is_last, &self.pending);
                self.hasher.update(&wire);
                self.len += wire.len() as u64;
                self.sink.write(&wire)?;
            }
            WriteForm::Encrypted(key) => {
                self.hasher.update(&self.pending);
                self.len += self.pending.len() as u64;
                self.sink.write(&key.seal_chunk(&self.name, self.index, is_last, &self.pending))?;
            }
        }
        self.index += 1;
        self.pending.clear();
        Ok(())
    }
}

impl WriteForm {
    /// The bytes that a whole chunk has where it rests.
    fn stored_chunk_bytes(&self) -> u64 {
        match self {
            WriteForm::AsItTravels => CHUNK_BYTES as u64,
            WriteForm::Sealed(_) | WriteForm::Encrypted(_) => (CHUNK_BYTES + CHUNK_OVERHEAD_BYTES) as u64,
        }
    }

    fn read_form(&self) -> ReadForm {
        match self {
            WriteForm::AsItTravels => ReadForm::AsItTravels,
            WriteForm::Sealed(key) => ReadForm::Sealed(key.clone()),
            WriteForm::Encrypted(key) => ReadForm::Encrypted(key.clone()),
        }
    }
}

impl std::fmt::Debug for ContentWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ContentWriter({}, {} bytes)", self.name, self.plain_len)
    }
}
