//! A table as the rest of the crate sees it: typed keys and values in, typed keys and values out, and one place where
//! values become bytes and bytes become values.

use super::values::{OwnedValue, RowValue, Stored};
use crate::database::db::fault;
use crate::keys::TableKey;
use engine::reads::{StoreError, StoreResult};
use redb::{AccessGuard, ReadableTable, ReadableTableMetadata, Table};
use std::borrow::Borrow;
use std::marker::PhantomData;
use std::ops::{RangeBounds, RangeInclusive};

/// A table of the database, open for writing or as of one moment.
pub struct Rows<T, K, V> {
    inner: T,
    name: &'static str,
    scratch: Vec<u8>,
    types: PhantomData<fn() -> (K, V)>,
}

/// A row that was found.
pub struct Row<'a, K: TableKey, V: RowValue> {
    key: AccessGuard<'a, K>,
    value: AccessGuard<'a, Stored<V>>,
    table: &'static str,
}

/// The value of a row that was found by its key.
pub struct RowData<'a, V: RowValue> {
    value: AccessGuard<'a, Stored<V>>,
    table: &'static str,
}

/// The rows of a range, in order.
pub struct RowRange<'a, K: TableKey, V: RowValue> {
    inner: redb::Range<'a, K, Stored<V>>,
    table: &'static str,
}

fn damaged(table: &str, key: &[u8]) -> StoreError {
    let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    StoreError::Broken(format!("the row {key} of the table {table} is damaged; run `anteroom verify`"))
}

impl<K: TableKey, V: RowValue> Row<'_, K, V> {
    /// The key.
    pub fn key(&self) -> K::SelfType<'_> {
        self.key.value()
    }

    /// The value.
    pub fn value(&self) -> StoreResult<V::Data<'_>> {
        let wrong = || damaged(self.table, K::as_bytes(&self.key.value()).as_ref());
        V::get(self.value.value()).ok_or_else(wrong)
    }
}

impl<V: RowValue> RowData<'_, V> {
    /// The value.
    pub fn value(&self) -> StoreResult<V::Data<'_>> {
        V::get(self.value.value()).ok_or_else(|| damaged(self.table, &[]))
    }
}

impl<'a, K: TableKey, V: RowValue> Iterator for RowRange<'a, K, V> {
    type Item = StoreResult<Row<'a, K, V>>;

    fn next(&mut self) -> Option<Self::Item> {
        let table = self.table;
        self.inner.next().map(|entry| entry.map(|(key, value)| Row { key, value, table }).map_err(fault))
    }
}

impl<K: TableKey, V: RowValue> DoubleEndedIterator for RowRange<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let table = self.table;
        self.inner.next_back().map(|entry| entry.map(|(key, value)| Row { key, value, table }).map_err(fault))
    }
}

impl<T, K, V> Rows<T, K, V> {
    pub(super) fn new(inner: T, name: &'static str) -> Rows<T, K, V> {
        Rows { inner, name, scratch: Vec::new(), types: PhantomData }
    }
}

impl<T: ReadableTable<K, Stored<V>>, K: TableKey, V: RowValue> Rows<T, K, V> {
    /// The value under a key.
    pub fn get<'k>(&self, key: impl Borrow<K::SelfType<'k>>) -> StoreResult<Option<V>>
    where
        V: OwnedValue,
    {
        let Some(found) = self.get_row(key)? else { return Ok(None) };
        let value = found.value()?;
        Ok(Some(value))
    }

    /// The value under a key, borrowed from the database.
    pub fn get_row<'k>(&self, key: impl Borrow<K::SelfType<'k>>) -> StoreResult<Option<RowData<'_, V>>> {
        let found = self.inner.get(key).map_err(fault)?;
        Ok(found.map(|value| RowData { value, table: self.name }))
    }

    /// Whether there is a row under a key.
    pub fn contains<'k>(&self, key: impl Borrow<K::SelfType<'k>>) -> StoreResult<bool> {
        Ok(self.get_row(key)?.is_some())
    }

    /// The rows of a range.
    pub fn range<'k, B>(&self, range: impl RangeBounds<B> + 'k) -> StoreResult<RowRange<'_, K, V>>
    where
        B: Borrow<K::SelfType<'k>> + 'k,
    {
        Ok(RowRange { inner: self.inner.range(range).map_err(fault)?, table: self.name })
    }

    /// All rows.
    pub fn iter(&self) -> StoreResult<RowRange<'_, K, V>> {
        Ok(RowRange { inner: self.inner.iter().map_err(fault)?, table: self.name })
    }

    /// The first row.
    pub fn first(&self) -> StoreResult<Option<Row<'_, K, V>>> {
        self.iter()?.next().transpose()
    }

    /// The last row.
    pub fn last(&self) -> StoreResult<Option<Row<'_, K, V>>> {
        self.iter()?.next_back().transpose()
    }

    /// How many rows there are, which the database knows without counting.
    pub fn len(&self) -> StoreResult<u64> {
        ReadableTableMetadata::len(&self.inner).map_err(fault)
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> StoreResult<bool> {
        Ok(self.len()? == 0)
    }

    /// Hands every row to a function: the bytes of the key and of the value.
    pub(super) fn export<E: From<StoreError>>(
        &self,
        out: &mut dyn FnMut(&'static str, &[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for row in self.iter()? {
            let Row { key, value, .. } = row?;
            out(self.name, K::as_bytes(&key.value()).as_ref(), value.value())?;
        }
        Ok(())
    }
}

impl<K: TableKey, V: RowValue> Rows<Table<'_, K, Stored<V>>, K, V> {
    /// Writes a row, in place of any that was there.
    pub fn insert<'k>(&mut self, key: impl Borrow<K::SelfType<'k>>, value: V::Data<'_>) -> StoreResult<()> {
        self.scratch.clear();
        V::put(&value, &mut self.scratch);
        self.inner.insert(key, self.scratch.as_slice()).map_err(fault)?;
        Ok(())
    }

    /// Removes a row. Says whether there was one.
    pub fn remove<'k>(&mut self, key: impl Borrow<K::SelfType<'k>>) -> StoreResult<bool> {
        Ok(self.inner.remove(key).map_err(fault)?.is_some())
    }

    /// Removes at most so many rows of a range. Says how many.
    pub fn remove_range(&mut self, range: RangeInclusive<K>, most: usize) -> StoreResult<usize>
    where
        K: for<'a> redb::Value<SelfType<'a> = K> + Copy,
    {
        let keys = self.range(range)?.take(most).map(|row| Ok(row?.key())).collect::<StoreResult<Vec<K>>>()?;
        for key in &keys {
            self.inner.remove(key).map_err(fault)?;
        }
        Ok(keys.len())
    }

    /// Takes out the first row.
    pub fn pop_first(&mut self) -> StoreResult<Option<(K, V)>>
    where
        K: for<'a> redb::Value<SelfType<'a> = K> + Copy,
        V: OwnedValue,
    {
        let Some(first) = self.first()? else { return Ok(None) };
        let (key, value) = (first.key(), first.value()?);
        drop(first);
        self.inner.remove(key).map_err(fault)?;
        Ok(Some((key, value)))
    }

    /// Puts back a row that [`Rows::export`] handed out. Says whether it can be one of this table.
    pub(super) fn import(&mut self, key: &[u8], value: &[u8]) -> StoreResult<bool> {
        let Some(key) = K::parse(key).filter(|_| V::get(value).is_some()) else { return Ok(false) };
        self.inner.insert(key, value).map_err(fault)?;
        Ok(true)
    }
}
