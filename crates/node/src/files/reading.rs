//! The bytes of a file on their way out: plain, by ranges, chunk by chunk.

use engine::reads::{Reads as _, StoreError, StoreResult};
use engine::rows::ContentLocation;
use model::content::{ChunkBinding, open_content};
use model::crypto::SpaceKey;
use model::{SpaceId, SpaceNo};
use objects::{ContentReader, ObjectError};
use std::ops::Range;
use std::sync::Arc;
use store::Db;
use store::shared::files::FileContent;
use store::tables::TableReads;

/// The bytes of a file, ready to be read.
#[derive(Debug)]
pub enum FileReader {
    /// Small ones.
    Bytes(Vec<u8>),
    /// An object.
    Object(Box<ContentReader>),
}

impl FileReader {
    /// Opens the content of a file. None if it is not here, or nobody can open it any more.
    pub fn open<V: TableReads>(
        db: &Db<V>,
        (space, number): (&SpaceId, SpaceNo),
        content: &FileContent,
    ) -> StoreResult<Option<FileReader>> {
        if content.len == 0 {
            return Ok(Some(FileReader::Bytes(Vec::new())));
        }
        let Some(row) = db.content(number, &content.hash)? else { return Ok(None) };
        let is_sealed = travels_sealed(db, space)?;
        match row.place {
            ContentLocation::Absent => Ok(None),
            ContentLocation::Row => {
                let Some(wire) = db.content_bytes(number, &content.hash, u64::MAX)? else { return Ok(None) };
                let plain = match is_sealed {
                    false => wire,
                    true => match open_with_any_key(db, space, &wire)? {
                        Some(plain) => plain,
                        None => return Ok(None),
                    },
                };
                Ok(Some(FileReader::Bytes(plain)))
            }
            ContentLocation::Object(name) => {
                let Some(reader) = db.object_reader(number, &content.hash, name)? else { return Ok(None) };
                let reader = match is_sealed {
                    false => reader,
                    true => match reader.unsealed(keys(db, space)?).map_err(|why| as_fault(&why))? {
                        Some(reader) => reader,
                        None => return Ok(None),
                    },
                };
                Ok(Some(FileReader::Object(Box::new(reader))))
            }
        }
    }

    /// How many bytes the file has.
    pub fn len(&self) -> u64 {
        match self {
            FileReader::Bytes(bytes) => bytes.len() as u64,
            FileReader::Object(reader) => reader.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hands the bytes of a range to a function, chunk by chunk.
    pub fn read<E: From<ObjectError>>(
        &mut self,
        range: Range<u64>,
        each: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            FileReader::Bytes(bytes) => {
                let at = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                let (from, to) = (at(range.start), at(range.end));
                if from < to { each(&bytes[from..to]) } else { Ok(()) }
            }
            FileReader::Object(reader) => reader.read(range, each),
        }
    }
}

/// Whether content of a space travels sealed. Whoever has joined a space has a key of it, or had one.
fn travels_sealed<V: TableReads>(db: &Db<V>, space: &SpaceId) -> StoreResult<bool> {
    match db.hosted_space(space)? {
        Some(kept) => Ok(kept.sealed),
        None => db.joined(space),
    }
}

/// Opens content that travels sealed, under whichever of the keys of its space it was sealed.
fn open_with_any_key<V: TableReads>(db: &Db<V>, space: &SpaceId, wire: &[u8]) -> StoreResult<Option<Vec<u8>>> {
    let mut opened = keys(db, space)?.into_iter().filter_map(|key| open_content(&key, wire, ChunkBinding::Shared).ok());
    Ok(opened.next())
}

/// The keys of a space, the one that is in use first.
pub(super) fn keys<V: TableReads>(db: &Db<V>, space: &SpaceId) -> StoreResult<Vec<Arc<SpaceKey>>> {
    let mut keys: Vec<Arc<SpaceKey>> = db.current_space_key(space)?.into_iter().collect();
    let current = keys.first().map(|key| key.id());
    for secret in db.space_keys(space)? {
        let key = SpaceKey::new(space, secret);
        if Some(key.id()) != current {
            keys.push(Arc::new(key));
        }
    }
    Ok(keys)
}

/// What went wrong while bytes were read, as a fault of the store that concerns this content alone.
pub fn as_fault(why: &ObjectError) -> StoreError {
    StoreError::Broken(why.to_string())
}
