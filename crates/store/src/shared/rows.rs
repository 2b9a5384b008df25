//! The one way to write shared tables: a compare-and-set of one row with a version.
//!
//! What all nodes that serve a space must agree on and no event says stands in tables of the class
//! [`Shared`](crate::tables::TableClass::Shared). A write names the version of the row that it was decided on, and is
//! refused by name if another is there. No version is given twice, so that a row which was deleted and made again is
//! not mistaken for the one before it. A replicated key-value store offers the same two operations, `put` and `delete`
//! with an expected version, and can carry these writes later.
//!
//! A replicated store changes one row at a time. So whoever writes several rows does it in an order in which every
//! prefix is sound: **what is referred to is written before what refers to it, and deleted after it**. Each function
//! that writes several rows says its order. Rows of other tables that follow from a shared row (`open_jobs`,
//! `idempotency_order`) are indexes of this node, written in the same transaction.
//!
//! Within one batch the version that a write expects is the one that the batch reads, and there is one writer, so that
//! nothing is stale there; [`Batch::set_shared`] and [`Batch::clear_shared`] do both.

use crate::database::batch::Batch;
use crate::database::db::Db;
pub use crate::encode::RowVersion;
use crate::encode::{SharedBytes, SharedValue, from_row, to_row};
use crate::errors::broken;
use crate::shared::tables::{Sealing, SharedTable};
use crate::tables::{Row, TableReads};
use engine::reads::{StoreError, StoreResult};
use std::ops::RangeBounds;

/// A shared row as it was read, with the version to expect when it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Versioned<T> {
    /// Which version it is.
    pub version: RowVersion,
    /// What it says.
    pub value: T,
}

/// Why a shared row was not written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SharedWriteError {
    /// Another version is there than the one that the write was decided on.
    #[error(
        "{what} was changed meanwhile (version {expected:?} was expected, {found:?} is there); read it again and decide \
         anew"
    )]
    Stale {
        /// What the row is.
        what: &'static str,
        /// The version that was expected; none for no row.
        expected: Option<RowVersion>,
        /// The version that is there; none for no row.
        found: Option<RowVersion>,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SharedWriteError {
    /// For a write whose version was read in the same batch: with one writer nothing is stale there, so that whoever
    /// meets it has found a fault of ours.
    pub(crate) fn within_batch(self) -> StoreError {
        match self {
            SharedWriteError::Stale { .. } => StoreError::Broken(self.to_string()),
            SharedWriteError::Store(error) => error,
        }
    }
}

/// A shared row: its key, and what it says unless the key that it rests under is gone.
type SharedEntry<T> = (<T as SharedTable>::Key, Option<<T as SharedTable>::Value>);

impl<V: TableReads> Db<V> {
    /// The version of a shared row, readable or not.
    pub(crate) fn shared_version<T: SharedTable>(&self, key: &T::Key) -> StoreResult<Option<RowVersion>> {
        match T::rows(&self.tables).get_row(key)? {
            Some(row) => Ok(Some(row.value()?.version)),
            None => Ok(None),
        }
    }

    /// A shared row with its version; none also if its key was destroyed.
    pub(crate) fn shared_row<T: SharedTable>(&self, key: &T::Key) -> StoreResult<Option<Versioned<T::Value>>> {
        match T::rows(&self.tables).get_row(key)? {
            Some(row) => self.open_shared::<T>(key, row.value()?),
            None => Ok(None),
        }
    }

    /// What a shared row says.
    pub(crate) fn shared<T: SharedTable>(&self, key: &T::Key) -> StoreResult<Option<T::Value>> {
        Ok(self.shared_row::<T>(key)?.map(|row| row.value))
    }

    /// The shared rows of a range, in order; without a value where the key is gone.
    pub(crate) fn shared_rows<'a, T: SharedTable + 'a>(
        &'a self,
        range: impl RangeBounds<T::Key> + 'a,
    ) -> StoreResult<impl DoubleEndedIterator<Item = StoreResult<SharedEntry<T>>> + 'a> {
        let open = |row: StoreResult<Row<'a, T::Key, SharedValue>>| {
            let row = row?;
            let opened = self.open_shared::<T>(&row.key(), row.value()?)?;
            Ok((row.key(), opened.map(|opened| opened.value)))
        };
        Ok(T::rows(&self.tables).range(range)?.map(open))
    }

    /// The shared rows of a range that can be read, in order.
    pub(crate) fn shared_range<'a, T: SharedTable + 'a>(
        &'a self,
        range: impl RangeBounds<T::Key> + 'a,
    ) -> StoreResult<impl DoubleEndedIterator<Item = StoreResult<(T::Key, T::Value)>> + 'a> {
        let readable = |row: StoreResult<SharedEntry<T>>| match row {
            Ok((key, value)) => value.map(|value| Ok((key, value))),
            Err(fault) => Some(Err(fault)),
        };
        Ok(self.shared_rows::<T>(range)?.filter_map(readable))
    }

    fn open_shared<T: SharedTable>(
        &self,
        key: &T::Key,
        row: SharedBytes<'_>,
    ) -> StoreResult<Option<Versioned<T::Value>>> {
        let plain = match T::sealing(key) {
            Sealing::Plain => {
                return Ok(Some(Versioned { version: row.version, value: from_row(row.stored, T::WHAT)? }));
            }
            Sealing::Space(space) => {
                self.open_at_rest(&space, <T::Key as redb::Value>::as_bytes(key).as_ref(), row.stored)?
            }
            Sealing::Master(name) => Some(self.shared.master.unwrap(&name, row.stored).map_err(|_| broken(T::WHAT))?),
        };
        let plain = plain.map(zeroize::Zeroizing::new);
        plain.map(|plain| Ok(Versioned { version: row.version, value: from_row(&plain, T::WHAT)? })).transpose()
    }
}

impl Batch<'_> {
    /// Writes a shared row, if it still has the version that the write was decided on; none expects no row. Says the
    /// new version.
    pub(crate) fn put_shared<T: SharedTable>(
        &mut self,
        key: &T::Key,
        expected: Option<RowVersion>,
        value: &T::Value,
    ) -> Result<RowVersion, SharedWriteError> {
        self.expect_version::<T>(key, expected)?;
        let plain = zeroize::Zeroizing::new(to_row(value)?);
        let stored = match T::sealing(key) {
            Sealing::Plain => plain.to_vec(),
            Sealing::Space(space) => self.protect(&space, <T::Key as redb::Value>::as_bytes(key).as_ref(), &plain)?,
            Sealing::Master(name) => self.shared.master.wrap(&name, &plain),
        };
        let version = RowVersion(self.next_version);
        if self.begin_shared_write() {
            T::rows_mut(&mut self.db.tables).insert(key, SharedBytes { version, stored: &stored })?;
        }
        Ok(version)
    }

    /// Deletes a shared row, if it still has the version that this was decided on.
    pub(crate) fn delete_shared<T: SharedTable>(
        &mut self,
        key: &T::Key,
        expected: RowVersion,
    ) -> Result<(), SharedWriteError> {
        self.expect_version::<T>(key, Some(expected))?;
        if self.begin_shared_write() {
            T::rows_mut(&mut self.db.tables).remove(key)?;
        }
        Ok(())
    }

    /// Writes a shared row in place of the one that this batch reads, or of none.
    pub(crate) fn set_shared<T: SharedTable>(&mut self, key: &T::Key, value: &T::Value) -> StoreResult<()> {
        let expected = self.db.shared_version::<T>(key)?;
        self.put_shared::<T>(key, expected, value).map_err(SharedWriteError::within_batch)?;
        Ok(())
    }

    /// Deletes the shared row that this batch reads. Says whether there was one.
    pub(crate) fn clear_shared<T: SharedTable>(&mut self, key: &T::Key) -> StoreResult<bool> {
        let Some(version) = self.db.shared_version::<T>(key)? else { return Ok(false) };
        self.delete_shared::<T>(key, version).map_err(SharedWriteError::within_batch)?;
        Ok(true)
    }

    /// Deletes at most so many shared rows of a range. Says how many.
    pub(crate) fn clear_shared_range<T: SharedTable>(
        &mut self,
        range: impl RangeBounds<T::Key>,
        most: usize,
    ) -> StoreResult<usize> {
        let range = (range.start_bound().cloned(), range.end_bound().cloned());
        let rows = T::rows(&self.db.tables).range(range)?.take(most);
        let keys = rows.map(|row| Ok(row?.key())).collect::<StoreResult<Vec<T::Key>>>()?;
        for key in &keys {
            self.clear_shared::<T>(key)?;
        }
        Ok(keys.len())
    }

    /// Puts a page of shared rows to rest anew, where a function gives other bytes for the stored ones. What the rows
    /// say does not change, so neither do their versions.
    pub(crate) fn reseal_shared<T: SharedTable>(
        &mut self,
        after: &[u8],
        most: usize,
        mut anew: impl FnMut(&mut Self, &T::Key, &[u8]) -> StoreResult<Option<Vec<u8>>>,
    ) -> StoreResult<ResealedPage> {
        let from = crate::tables::after_bound::<T::Key>(after)?;
        let mut rows = Vec::new();
        for row in T::rows(&self.db.tables).range((from, std::ops::Bound::Unbounded))?.take(most) {
            let row = row?;
            let SharedBytes { version, stored } = row.value()?;
            rows.push((row.key(), version, stored.to_vec()));
        }
        let last = rows.last().map(|(key, ..)| <T::Key as redb::Value>::as_bytes(key).as_ref().to_vec());
        let mut page = ResealedPage { rows: rows.len(), changed: 0, last };
        for (key, version, stored) in rows {
            if let Some(stored) = anew(self, &key, &stored)? {
                self.touch();
                T::rows_mut(&mut self.db.tables).insert(key, SharedBytes { version, stored: &stored })?;
                page.changed += 1;
            }
        }
        Ok(page)
    }

    fn expect_version<T: SharedTable>(
        &self,
        key: &T::Key,
        expected: Option<RowVersion>,
    ) -> Result<(), SharedWriteError> {
        let found = self.db.shared_version::<T>(key)?;
        if found == expected { Ok(()) } else { Err(SharedWriteError::Stale { what: T::WHAT, expected, found }) }
    }

    /// Takes the next version. Says whether the write goes on: tests cut a write of several rows after any of them.
    fn begin_shared_write(&mut self) -> bool {
        self.touch();
        self.next_version += 1;
        #[cfg(test)]
        if let Some(left) = &mut self.shared_writes_left {
            let goes_on = *left > 0;
            *left = left.saturating_sub(1);
            return goes_on;
        }
        true
    }
}

/// What a page of rows that were put to rest anew came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ResealedPage {
    pub(crate) rows: usize,
    pub(crate) changed: u64,
    /// The key of the last row.
    pub(crate) last: Option<Vec<u8>>,
}
