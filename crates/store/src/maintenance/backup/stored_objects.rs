//! The objects that a backup takes along, as they rest, each checked against the hash of its content.

use crate::database::db::Db;
use crate::maintenance::backup::write::BackupError;
use crate::tables::{Snapshot, TableReads as _};
use engine::reads::{Reads as _, StoreResult};
use engine::rows::ContentLocation;
use model::{ContentHash, ObjectName, SpaceNo};
use objects::ObjectError;

/// How much is read of an object at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Content that rests in an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredObject {
    pub(super) name: ObjectName,
    space: SpaceNo,
    hash: ContentHash,
    len: u64,
}

impl Db<Snapshot> {
    /// The objects that rows of content speak of, by their names. What cannot be read is left out: its row is named as
    /// damaged where rows are looked at.
    pub(super) fn stored_objects(&self) -> StoreResult<Vec<StoredObject>> {
        let mut objects = Vec::new();
        for entry in self.tables.contents().iter()? {
            let Some(entry) = self.unless_damaged(entry)? else { break };
            let (key, Ok(row)) = (entry.key(), entry.value()) else { continue };
            if let ContentLocation::Object(name) = row.place {
                objects.push(StoredObject { name, space: key.space(), hash: key.hash(), len: row.len });
            }
        }
        objects.sort_by_key(|object| object.name);
        Ok(objects)
    }

    /// Whether a content rests in that object.
    pub(super) fn is_stored(&self, object: &StoredObject) -> bool {
        let row = self.content(object.space, &object.hash);
        row.is_ok_and(|row| row.is_some_and(|row| row.place == ContentLocation::Object(object.name)))
    }

    /// Whether the content of an object is what its hash says. What cannot be opened because its key was destroyed is taken
    /// as it is.
    pub(crate) fn is_object_whole(
        &self,
        space: SpaceNo,
        hash: &ContentHash,
        name: ObjectName,
        len: u64,
    ) -> ObjectCheck {
        let mut reader = match self.object_reader(space, hash, name) {
            Ok(Some(reader)) => reader,
            Ok(None) => return ObjectCheck::KeyDestroyed,
            Err(why) => return ObjectCheck::Damaged(why.to_string()),
        };
        match objects::hash_object(&mut reader) {
            Ok(found) if found == (*hash, len) => ObjectCheck::Whole,
            Ok(_) => ObjectCheck::Damaged("it has other bytes".to_owned()),
            Err(why) => ObjectCheck::Damaged(why.to_string()),
        }
    }

    /// Hands an object to a function as it rests, piece by piece. Says whether it is whole.
    pub(super) fn copy_object(
        &self,
        object: &StoredObject,
        each: &mut dyn FnMut(&[u8]) -> Result<(), BackupError>,
    ) -> Result<bool, BackupError> {
        if let ObjectCheck::Damaged(_) = self.is_object_whole(object.space, &object.hash, object.name, object.len) {
            return Ok(false);
        }
        let Ok(mut source) = self.disk.objects().open(object.name) else { return Ok(false) };
        let (mut at, mut piece) = (0, vec![0; PIECE_BYTES]);
        while at < source.len() {
            let length = usize::try_from(source.len() - at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            let read: Result<(), ObjectError> = source.read_at(at, &mut piece[..length]);
            if read.is_err() {
                return Ok(false);
            }
            each(&piece[..length])?;
            at += length as u64;
        }
        Ok(true)
    }
}

/// What an object was found to be.
pub(crate) enum ObjectCheck {
    Whole,
    KeyDestroyed,
    Damaged(String),
}
