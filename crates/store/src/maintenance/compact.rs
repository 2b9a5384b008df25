//! Giving room back to the file system: the rows are copied into a new file, in order, so that they fill its pages, and the
//! new file takes the place of the old one.
//!
//! A crash leaves the old file or the new one, never half of one. Where there is no room for a second file, the database
//! engine moves its pages together in place, which is slower.

use crate::database::open::{OpenError, Store};
use crate::disk::{FolderDisk, compacting_path, remove_if_there, sync_dir};
use crate::errors::{fault, guarded_write};
use crate::tables::{TableReads as _, Tables, census, copy_rows};
use engine::reads::{StoreError, StoreResult};
use redb::Builder;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// A smaller file is not worth the time at a start.
const WORTH_COMPACTING_BYTES: u64 = 64 << 20;
/// How many rows at either end of a table tell how long its rows are.
const SAMPLED_ROWS: usize = 64;
/// What a row of the smaller tables takes, roughly.
const SMALL_ROW_BYTES: u64 = 64;

/// How large the database file was, and is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compacted {
    pub before: u64,
    pub after: u64,
}

fn io_fault(why: io::Error) -> StoreError {
    fault(redb::StorageError::Io(why))
}

impl Store {
    /// Whether more than half of the database file is unused. Only where that is likely every page is looked at.
    pub fn is_mostly_free(&self) -> StoreResult<bool> {
        let file = self.disk().database_bytes().unwrap_or(0);
        if file < WORTH_COMPACTING_BYTES || self.estimate_used()?.saturating_mul(2) > file {
            return Ok(false);
        }
        Ok(self.size()?.free_bytes.saturating_mul(2) > file)
    }

    /// About how many bytes the rows take, by their number and the length of some.
    fn estimate_used(&self) -> StoreResult<u64> {
        let db = self.snapshot()?;
        let tables = &db.tables;
        let mut used = census(tables)?.iter().map(|(_, _, rows)| rows * SMALL_ROW_BYTES).sum::<u64>();
        used += tables.events().estimate_bytes(SAMPLED_ROWS)?;
        used += tables.timeline().estimate_bytes(SAMPLED_ROWS)?;
        used += tables.content_bytes().estimate_bytes(SAMPLED_ROWS)?;
        Ok(used)
    }

    /// Moves the pages of the database together in its file.
    pub fn compact(&mut self) -> Result<bool, OpenError> {
        self.database_mut()?.compact().map_err(|error| OpenError::Damaged(error.to_string()))
    }

    /// Compacts the database of a folder, and closes it. Nobody else may use it meanwhile.
    pub fn compact_folder(mut self, folder: &Path) -> Result<Compacted, OpenError> {
        let path = FolderDisk::database_path_in(folder);
        let size = || fs::metadata(&path).map(|file| file.len()).map_err(io_fault);
        let before = size()?;
        // The copy leaves others the room that a node leaves them.
        let needed = self.size()?.used_bytes.saturating_add(self.options().reserve_bytes);
        let part = compacting_path(&path);
        let copied = match self.disk().free_bytes() {
            Ok(free) if free < needed => Err(StoreError::Full),
            Ok(_) | Err(_) => self.copy_to_new_file(&part, before),
        };
        match copied {
            Ok(copied) => {
                drop(self);
                if let Some(copied) = copied {
                    let placed = fs::rename(copied, &path).and_then(|()| sync_dir(folder));
                    placed.map_err(io_fault)?;
                }
            }
            Err(StoreError::Full) => {
                self.compact()?;
            }
            Err(why) => return Err(why.into()),
        }
        Ok(Compacted { before, after: size()? })
    }

    /// Copies all rows into a new file. None if that is not smaller.
    fn copy_to_new_file<'p>(&self, path: &'p Path, before: u64) -> StoreResult<Option<&'p Path>> {
        let copied = self.copy_rows_to(path).and_then(|()| {
            let done = File::open(path).and_then(|file| file.sync_all()).and_then(|()| fs::metadata(path));
            done.map(|file| file.len() < before).map_err(io_fault)
        });
        if !matches!(copied, Ok(true)) {
            let _ = fs::remove_file(path);
        }
        copied.map(|is_smaller| is_smaller.then_some(path))
    }

    fn copy_rows_to(&self, path: &Path) -> StoreResult<()> {
        remove_if_there(path).map_err(io_fault)?;
        let mut builder = Builder::new();
        builder.set_cache_size(self.options().cache_bytes);
        let database = guarded_write(|| builder.create(path))?;
        let mut transaction = guarded_write(|| database.begin_write())?;
        transaction.set_quick_repair(true);
        let db = self.snapshot()?;
        let mut tables = Tables::open(&transaction)?;
        copy_rows(&db.tables, &mut tables)?;
        if census(&tables)? != census(&db.tables)? {
            return Err(StoreError::Broken("a copy of the database has other rows than the database".into()));
        }
        drop(tables);
        guarded_write(|| transaction.commit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::ContentKey;
    use crate::{MasterKey, StoreOptions};
    use model::{ContentHash, Nanos, SpaceNo};
    use std::sync::Arc;

    const MIB: usize = 1 << 20;

    fn open(folder: &Path) -> Store {
        open_with_reserve(folder, 0)
    }

    fn open_with_reserve(folder: &Path, reserve_bytes: u64) -> Store {
        let disk = Arc::new(FolderDisk::new(folder).expect("a folder"));
        let options = StoreOptions { cache_bytes: 16 << 20, reserve_bytes, ..StoreOptions::default() };
        Store::open(disk, MasterKey::new(&[1; 32]), options).expect("it opens")
    }

    fn key(number: u8) -> ContentKey {
        ContentKey::new(SpaceNo(1), ContentHash([number; 32]))
    }

    /// Rows of a mebibyte each, most of which are removed again.
    fn fill(store: &Store, rows: u8, kept: u8) {
        let change = |work: &dyn Fn(&mut Tables<'_>, u8) -> StoreResult<()>, rows: std::ops::Range<u8>| {
            let changed = store.write_raw(|transaction| {
                let mut tables = Tables::open(transaction)?;
                rows.clone().try_for_each(|row| work(&mut tables, row))
            });
            changed.expect("written");
        };
        change(&|tables, row| tables.content_bytes.insert(key(row), &[row; MIB]), 0..rows);
        change(&|tables, row| tables.content_bytes.remove(key(row)).map(drop), kept..rows);
    }

    #[test]
    fn unused_space_is_given_back_and_every_row_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(folder.path());
        fill(&store, 80, 2);
        assert!(store.is_mostly_free().expect("a size"));
        let done = store.compact_folder(folder.path()).expect("compacted");
        assert!(done.before > 80 * MIB as u64 && done.after < 16 * MIB as u64, "{done:?}");
        let store = open(folder.path());
        assert!(!store.is_mostly_free().expect("a size"), "a small file is left alone");
        let db = store.snapshot().expect("a snapshot");
        for row in 0..80 {
            let found = db.tables.content_bytes.get_row(key(row)).expect("read");
            let stored = found.map(|found| found.value().expect("sound").to_vec());
            assert_eq!(stored, (row < 2).then(|| vec![row; MIB]), "{row}");
        }
        drop(db);
        // It can be written, and compacted again, although there is nothing to be gained.
        let count = |batch: &mut crate::Batch<'_>| {
            batch.count("test", 1);
            Ok(())
        };
        store.write(Nanos(1), count).expect("written");
        let done = store.compact_folder(folder.path()).expect("compacted");
        assert!(done.after <= done.before, "{done:?}");
        open(folder.path());
    }

    #[test]
    fn without_room_for_a_copy_the_pages_are_moved_in_their_file() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let path = FolderDisk::database_path_in(folder.path());
        let store = open_with_reserve(folder.path(), u64::MAX);
        fill(&store, 20, 2);
        let inode = || fs::metadata(&path).expect("a file").ino();
        let before = inode();
        let done = store.compact_folder(folder.path()).expect("compacted");
        assert!(done.after < done.before, "{done:?}");
        assert_eq!(inode(), before, "no other file took its place");
        let db = open(folder.path()).snapshot().expect("a snapshot");
        assert_eq!(db.tables.content_bytes.len().expect("read"), 2);
    }

    #[test]
    fn a_file_in_use_is_left_alone_and_what_a_killed_compaction_left_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(folder.path());
        fill(&store, 80, 79);
        assert!(!store.is_mostly_free().expect("a size"));
        drop(store);
        let left = compacting_path(&FolderDisk::database_path_in(folder.path()));
        fs::write(&left, b"half of a database").expect("written");
        open(folder.path());
        assert!(!left.exists());
    }
}
