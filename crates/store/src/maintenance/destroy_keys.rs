//! Removing keys: older ones after a rotation, and all of a space's when nobody shall read it again.

use crate::database::batch::Batch;
use crate::database::db::Db;
use crate::database::keyring::Retired;
use crate::keys::*;
use crate::tables::TableReads;
use engine::reads::StoreResult;
use model::SpaceId;

impl<V: TableReads> Db<V> {
    /// Whether keys of that space were destroyed here, so that what rested under them reads as absent.
    pub fn is_destroyed(&self, space: &SpaceId) -> StoreResult<bool> {
        self.tables.destroyed_keys().contains(SpaceIdKey::new(*space))
    }

    /// The number that the next storage key of a space gets. None is given twice, even after all were destroyed.
    pub(crate) fn next_storage_number(&self, space: &SpaceId) -> StoreResult<u32> {
        let newest = self.newest_storage_key(space)?.unwrap_or(0);
        let destroyed = self.tables.destroyed_keys().get(SpaceIdKey::new(*space))?.unwrap_or(0);
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
        self.db.tables.destroyed_keys.insert(SpaceIdKey::new(*space), last)?;
        gone += self.db.tables.keys.remove_range(SpaceKeyName::of_space(*space), usize::MAX)?;
        self.db.tables.current_keys.remove(SpaceIdKey::new(*space))?;
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
        let first = *StorageKeyName::of_space(*space).start();
        self.db.tables.storage_keys.remove_range(first..=StorageKeyName::new(*space, upto), usize::MAX)
    }
}
