//! The content files that a backup takes along, each checked against its hash.

use crate::at_rest::content_name;
use crate::database::db::Db;
use crate::encode::file_name;
use crate::keys::ContentKey;
use crate::tables::{Snapshot, TableReads as _};
use engine::reads::{Reads as _, StoreResult};
use engine::rows::ContentLocation;
use model::crypto::content_hash;
use std::io;

/// A content file, as it rests.
pub(super) enum FileContent {
    Whole(Vec<u8>),
    /// It is gone, or is not what its hash says.
    Damaged,
}

impl Db<Snapshot> {
    /// The contents that rest in files, in the order of the files' names. What cannot be read is left out: its row is
    /// named as damaged where rows are looked at.
    pub(super) fn contents_in_files(&self) -> StoreResult<Vec<(String, ContentKey)>> {
        let mut files = Vec::new();
        for entry in self.tables.contents().iter()? {
            let Some(entry) = self.unless_damaged(entry)? else { break };
            let (key, Ok(row)) = (entry.key(), entry.value()) else { continue };
            if let (ContentLocation::File, Ok(space)) = (row.place, self.space_id(key.space())) {
                files.push((file_name(&space, &key.hash()), key));
            }
        }
        files.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(files)
    }

    /// Whether a content rests in a file.
    pub(super) fn is_in_file(&self, key: ContentKey) -> bool {
        let row = self.tables.contents().get(key);
        row.is_ok_and(|row| row.is_some_and(|row| row.place == ContentLocation::File))
    }

    /// Reads a content file. What cannot be opened because its key was destroyed is taken as it is.
    pub(super) fn content_file(&self, name: &str, key: ContentKey) -> io::Result<FileContent> {
        let stored = match self.disk.read_file(name) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Ok(FileContent::Damaged),
            read => read?,
        };
        let Ok(space) = self.space_id(key.space()) else { return Ok(FileContent::Damaged) };
        let is_whole = match self.open_at_rest(&space, &content_name(&key.hash()), &stored) {
            Ok(Some(bytes)) => content_hash(&bytes) == key.hash(),
            Ok(None) => true,
            Err(_) => false,
        };
        Ok(if is_whole { FileContent::Whole(stored) } else { FileContent::Damaged })
    }
}
