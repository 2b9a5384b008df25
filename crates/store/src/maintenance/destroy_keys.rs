//! Removing keys: older ones after a rotation, and all of a space's when nobody shall read it again.

use crate::at_rest::{number_of, storage_row};
use crate::database::batch::Batch;
use crate::database::db::{Db, fault};

use crate::database::keyring::Retired;
use crate::tables::TableReads;
use engine::reads::StoreResult;
use model::SpaceId;
use redb::ReadableTable as _;

impl<V: TableReads> Db<V> {
    /// Whether keys of that space were destroyed here, so that what rested under them reads as absent.
    pub fn is_destroyed(&self, space: &SpaceId) -> StoreResult<bool> {
        Ok(self.tables.storage_keys().get(storage_row(space, 0)).map_err(fault)?.is_some())
    }

    /// The number that the next storage key of a space gets. None is given twice, even after all were destroyed.
    pub(crate) fn next_storage_number(&self, space: &SpaceId) -> StoreResult<u32> {
        let newest = self.newest_storage_key(space)?.unwrap_or(0);
        let destroyed = match self.tables.storage_keys().get(storage_row(space, 0)).map_err(fault)? {
            Some(row) => row.value().last_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes)),
            None => 0,
        };
        Ok(newest.max(destroyed).saturating_add(1))
    }
}

impl Batch<'_> {
    /// Destroys all keys of a space: its content, and what is kept of its users, reads as absent from now on. Whoever
    /// has a backup and the master key of then can still read it there. Says how many keys are gone.
    pub fn destroy_keys(&mut self, space: &SpaceId) -> StoreResult<usize> {
        self.touch();
        let last = self.db.next_storage_number(space)?.saturating_sub(1);
        let mut gone = self.remove_storage_keys(space, u32::MAX)?;
        let mark = crate::database::writing_at_rest::plain(&last.to_be_bytes());
        self.db.tables.storage_keys.insert(storage_row(space, 0), mark.as_slice()).map_err(fault)?;
        let bound = |byte: u8| crate::keys::key::<32>(&[&space.0, &[byte; 16]]);
        let mut keys = Vec::new();
        for entry in self.db.tables.keys.range(bound(0)..=bound(u8::MAX)).map_err(fault)? {
            keys.push(entry.map_err(fault)?.0.value());
        }
        for key in keys {
            self.db.tables.keys.remove(key).map_err(fault)?;
            gone += 1;
        }
        self.db.tables.current_keys.remove(space.0).map_err(fault)?;
        self.db.pending.keys.retire(Retired::All(*space));
        self.writing.remove(space);
        Ok(gone)
    }

    /// Removes the storage keys that a finished rotation left behind.
    pub(crate) fn retire_older_keys(&mut self, space: &SpaceId) -> StoreResult<()> {
        if let Some(newest) = self.db.newest_storage_key(space)? {
            self.remove_storage_keys(space, newest.saturating_sub(1))?;
            self.db.pending.keys.retire(Retired::StorageBelow(*space, newest));
        }
        Ok(())
    }

    fn remove_storage_keys(&mut self, space: &SpaceId, upto: u32) -> StoreResult<usize> {
        let mut numbers = Vec::new();
        if upto > 0 {
            let range = storage_row(space, 1)..=storage_row(space, upto);
            for entry in self.db.tables.storage_keys.range(range).map_err(fault)? {
                numbers.push(number_of(&entry.map_err(fault)?.0.value()));
            }
        }
        for number in &numbers {
            self.db.tables.storage_keys.remove(storage_row(space, *number)).map_err(fault)?;
        }
        Ok(numbers.len())
    }
}
