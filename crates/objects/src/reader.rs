//! Reading content by chunks and by ranges.

use crate::backend::{Backend, ObjectError, ObjectSource};
use crate::tree::{GROUP_BYTES, GROUP_HASH_BYTES, TreeHasher, group_count};
use model::content::{ChunkBinding, open_chunk};
use model::crypto::{ObjectKey, SpaceKey};
use model::limits::{CHUNK_BYTES, CHUNK_OVERHEAD_BYTES};
use model::object::{ENCRYPTED_FORM, HEADER_BYTES, OBJECT_VERSION, TRAVELS_FORM};
use model::{ContentHash, ObjectName};
use std::ops::Range;
use std::sync::Arc;

const SEALED_CHUNK_BYTES: u64 = (CHUNK_BYTES + CHUNK_OVERHEAD_BYTES) as u64;

/// How the bytes of an object are to be read.
#[derive(Clone)]
pub enum ReadForm {
    /// As they travel, where content rests so.
    AsItTravels,
    /// Plain, where content travels and rests sealed under the key of its space.
    Sealed(Arc<SpaceKey>),
    /// Plain, which is also how they travel, where content rests under the key of its object.
    Encrypted(ObjectKey),
}

/// The content of one object.
pub struct ContentReader {
    name: ObjectName,
    source: Box<dyn ObjectSource>,
    form: ReadForm,
    /// How many bytes the chunks have where they rest; behind them is the tree of the hash.
    stored_len: u64,
    /// Whether the last chunk is here.
    is_whole: bool,
    /// The chunk that was opened last: ranges that follow each other share one.
    opened: Option<(u64, Vec<u8>)>,
}

impl ContentReader {
    /// Opens an object.
    pub fn open(backend: &dyn Backend, name: ObjectName, form: ReadForm) -> Result<ContentReader, ObjectError> {
        let mut source = backend.open(name)?;
        let mut header = [0; HEADER_BYTES];
        source.read_at(0, &mut header)?;
        let expected = form_byte(&form);
        let stored_len = without_tree(source.len().saturating_sub(HEADER_BYTES as u64), &form);
        // A chunk has at least one byte beside what sealing adds.
        let rest = stored_len % SEALED_CHUNK_BYTES;
        if expected == ENCRYPTED_FORM && (1..=CHUNK_OVERHEAD_BYTES as u64).contains(&rest) {
            return Err(ObjectError::Damaged(name, "it is cut off"));
        }
        match header {
            [OBJECT_VERSION, form_byte] if form_byte == expected => {
                Ok(ContentReader { name, source, form, stored_len, is_whole: true, opened: None })
            }
            [OBJECT_VERSION, _] => Err(ObjectError::Damaged(name, "it is of another form than its row says")),
            _ => Err(ObjectError::Damaged(name, "its version is not known")),
        }
    }

    /// What there is of an object that goes on being written: whole chunks, so many bytes of them with the header.
    pub(crate) fn of_unfinished(
        mut source: Box<dyn ObjectSource>,
        name: ObjectName,
        form: ReadForm,
        len: u64,
    ) -> Result<ContentReader, ObjectError> {
        let mut header = [0; HEADER_BYTES];
        source.read_at(0, &mut header)?;
        if header != [OBJECT_VERSION, form_byte(&form)] {
            return Err(ObjectError::Damaged(name, "it is of another form than its row says"));
        }
        let stored_len = len.saturating_sub(HEADER_BYTES as u64);
        Ok(ContentReader { name, source, form, stored_len, is_whole: false, opened: None })
    }

    /// A chunk as it was before it rested, and as it travels.
    pub(crate) fn read_both(&mut self, index: u64) -> Result<(Vec<u8>, Vec<u8>), ObjectError> {
        let (stored, is_last) = self.stored_chunk(index)?;
        let plain = self.open_stored(index, is_last, &stored)?;
        match self.form {
            ReadForm::AsItTravels | ReadForm::Sealed(_) => Ok((plain, stored)),
            ReadForm::Encrypted(_) => Ok((plain.clone(), plain)),
        }
    }

    /// The values of the tree of the hash, as they were written.
    fn tree(&mut self) -> Result<Vec<u8>, ObjectError> {
        let end = self.source.len();
        let from = HEADER_BYTES as u64 + self.stored_len;
        let mut tree = vec![0; usize::try_from(end.saturating_sub(from)).unwrap_or(0)];
        self.source.read_at(from, &mut tree)?;
        Ok(tree)
    }

    /// The same content, plain, under whichever of these keys it was sealed. None if it was under none of them.
    pub fn unsealed(
        mut self,
        keys: impl IntoIterator<Item = Arc<SpaceKey>>,
    ) -> Result<Option<ContentReader>, ObjectError> {
        for key in keys {
            self.form = ReadForm::Sealed(key);
            self.opened = None;
            if self.is_empty() || self.chunk(0).is_ok() {
                return Ok(Some(self));
            }
        }
        Ok(None)
    }

    /// How many bytes can be read.
    pub fn len(&self) -> u64 {
        match self.form {
            ReadForm::AsItTravels => self.stored_len,
            ReadForm::Sealed(_) | ReadForm::Encrypted(_) => without_overhead(self.stored_len),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hands the bytes of a range to a function, chunk by chunk. The range ends where the content does.
    pub fn read<E: From<ObjectError>>(
        &mut self,
        range: Range<u64>,
        each: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut at, end, name) = (range.start, range.end.min(self.len()), self.name);
        while at < end {
            let index = at / CHUNK_BYTES as u64;
            let (from, chunk) = ((at % CHUNK_BYTES as u64) as usize, self.chunk(index)?);
            let to = chunk.len().min(from + usize::try_from(end - at).unwrap_or(usize::MAX));
            let piece = chunk.get(from..to).filter(|piece| !piece.is_empty());
            let piece = piece.ok_or(ObjectError::Damaged(name, "a chunk is too short"))?;
            at += piece.len() as u64;
            each(piece)?;
        }
        Ok(())
    }

    /// All bytes at once, for content that is known to be short.
    pub fn read_all(&mut self) -> Result<Vec<u8>, ObjectError> {
        let mut bytes = Vec::new();
        self.read::<ObjectError>(0..self.len(), &mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(bytes)
    }

    fn chunk(&mut self, index: u64) -> Result<&[u8], ObjectError> {
        if self.opened.as_ref().is_none_or(|(opened, _)| *opened != index) {
            let chunk = self.open_chunk(index)?;
            self.opened = Some((index, chunk));
        }
        Ok(self.opened.as_ref().map_or(&[], |(_, chunk)| chunk.as_slice()))
    }

    fn open_chunk(&mut self, index: u64) -> Result<Vec<u8>, ObjectError> {
        let (stored, is_last) = self.stored_chunk(index)?;
        self.open_stored(index, is_last, &stored)
    }

    /// A chunk as it rests, and whether it is the last.
    fn stored_chunk(&mut self, index: u64) -> Result<(Vec<u8>, bool), ObjectError> {
        let width = match self.form {
            ReadForm::AsItTravels => CHUNK_BYTES as u64,
            ReadForm::Sealed(_) | ReadForm::Encrypted(_) => SEALED_CHUNK_BYTES,
        };
        let (from, end) = (index.saturating_mul(width), self.stored_len);
        let to = from.saturating_add(width).min(end);
        let length = usize::try_from(to.saturating_sub(from)).unwrap_or(0);
        let mut stored = vec![0; length];
        self.source.read_at(HEADER_BYTES as u64 + from, &mut stored)?;
        Ok((stored, self.is_whole && to == end))
    }

    fn open_stored(&self, index: u64, is_last: bool, stored: &[u8]) -> Result<Vec<u8>, ObjectError> {
        match &self.form {
            ReadForm::AsItTravels => Ok(stored.to_vec()),
            ReadForm::Sealed(key) => open_chunk(key, ChunkBinding::Shared, index, is_last, stored)
                .map_err(|_| ObjectError::Damaged(self.name, "a chunk does not open under the key of its space")),
            ReadForm::Encrypted(key) => key
                .open_chunk(&self.name, index, is_last, stored)
                .map_err(|_| ObjectError::Damaged(self.name, "a chunk does not open under its key")),
        }
    }
}

/// The hash and the length of what travels, of an object that is read in the form in which it does. The tree behind it must
/// be that of its hash.
pub fn hash_object(reader: &mut ContentReader) -> Result<(ContentHash, u64), ObjectError> {
    let mut hasher = TreeHasher::new();
    reader.read::<ObjectError>(0..reader.len(), &mut |piece| {
        hasher.update(piece);
        Ok(())
    })?;
    let (hash, tree) = hasher.finish();
    if reader.tree()? != tree.as_flattened() {
        return Err(ObjectError::Damaged(reader.name, "the tree of its hash is another"));
    }
    Ok((hash, reader.len()))
}

fn form_byte(form: &ReadForm) -> u8 {
    match form {
        ReadForm::AsItTravels | ReadForm::Sealed(_) => TRAVELS_FORM,
        ReadForm::Encrypted(_) => ENCRYPTED_FORM,
    }
}

/// The bytes of an object that are its chunks: behind those of content of more than one group is the tree of its hash.
fn without_tree(bytes: u64, form: &ReadForm) -> u64 {
    // What travels is cut into groups as long as chunks, with what sealing adds where it rests under a key of its own.
    let group = match form {
        ReadForm::AsItTravels | ReadForm::Sealed(_) => GROUP_BYTES,
        ReadForm::Encrypted(_) => SEALED_CHUNK_BYTES,
    };
    let groups = bytes.div_ceil(group + GROUP_HASH_BYTES);
    let chunks = bytes.saturating_sub(groups * GROUP_HASH_BYTES);
    let travels = match form {
        ReadForm::AsItTravels | ReadForm::Sealed(_) => chunks,
        ReadForm::Encrypted(_) => without_overhead(chunks),
    };
    if group_count(travels) == groups { chunks } else { bytes }
}

fn without_overhead(stored: u64) -> u64 {
    stored.saturating_sub(stored.div_ceil(SEALED_CHUNK_BYTES) * CHUNK_OVERHEAD_BYTES as u64)
}

impl std::fmt::Debug for ContentReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ContentReader({})", self.name)
    }
}
