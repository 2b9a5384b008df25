//! A table as the rest of the crate sees it: typed keys and values in, typed keys and values out, and one place where
//! values become bytes and bytes become values.
//!
//! Every value ends in a checksum over table, key and value. It is looked at whenever a value is read, and for rows that
//! say all in their key whenever they are iterated over. Reading only the keys of other rows does not look at it.

mod bulk;
pub(crate) use bulk::is_repack_due;
#[cfg(test)]
mod tests;

use crate::checksum::{CHECKSUM_BYTES, checksum, seed_of};
use crate::errors::{guarded, guarded_write};
use crate::keys::TableKey;
use crate::row_value::{OwnedValue, RowValue, Stored};
use engine::reads::{StoreError, StoreResult};
use redb::{AccessGuard, ReadableTable, ReadableTableMetadata, Table};
use std::borrow::Borrow;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds, RangeInclusive};

/// A table of the database, open for writing or as of one moment.
pub struct Rows<T, K, V> {
    inner: T,
    name: TableName,
    scratch: Vec<u8>,
    types: PhantomData<fn() -> (K, V)>,
}

/// What a table is called, and what its checksums begin with.
#[derive(Clone, Copy)]
pub(super) struct TableName {
    name: &'static str,
    seed: u32,
}

impl TableName {
    pub(super) const fn new(name: &'static str) -> TableName {
        TableName { name, seed: seed_of(name) }
    }

    fn checksum<K: TableKey>(self, key: &[u8], value: &[u8]) -> [u8; CHECKSUM_BYTES] {
        checksum(self.seed, K::fixed_width().is_some(), key, value)
    }

    /// What is stored of a row: its value, then its checksum.
    fn encode<'k, K: TableKey, V: RowValue>(
        self,
        key: impl Borrow<K::SelfType<'k>>,
        value: &V::Data<'_>,
        out: &mut Vec<u8>,
    ) {
        out.clear();
        V::put(value, out);
        let sum = self.checksum::<K>(K::as_bytes(key.borrow()).as_ref(), out);
        out.extend(sum);
    }

    /// The value of a stored row, if its checksum fits.
    fn checked<'a, K: TableKey>(self, key: &[u8], stored: &'a [u8]) -> StoreResult<&'a [u8]> {
        match stored.split_last_chunk::<CHECKSUM_BYTES>() {
            Some((value, sum)) if *sum == self.checksum::<K>(key, value) => Ok(value),
            Some(_) | None => Err(self.damaged(key)),
        }
    }

    #[cold]
    fn damaged(self, key: &[u8]) -> StoreError {
        let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = self.name;
        StoreError::Broken(format!(
            "the row {key} of the table {name} is damaged; run `anteroom verify` to see what else is, then restore a \
             backup"
        ))
    }
}

/// A row that was found.
pub struct Row<'a, K: TableKey, V: RowValue> {
    key: AccessGuard<'a, K>,
    stored: AccessGuard<'a, Stored<V>>,
    table: TableName,
}

/// The value of a row that was found by its key, and whose checksum fits.
pub struct RowData<'a, V: RowValue> {
    stored: AccessGuard<'a, Stored<V>>,
    table: TableName,
}

/// The rows of a range, in order.
pub struct RowRange<'a, K: TableKey, V: RowValue> {
    inner: redb::Range<'a, K, Stored<V>>,
    table: TableName,
    has_ended: bool,
}

/// Takes a row that is exported: the name of its table, the bytes of the key, and of the value with its checksum; none if
/// it is damaged.
pub(super) type TakeRow<'a, E> = dyn FnMut(&'static str, &[u8], Option<&[u8]>) -> Result<(), E> + 'a;

impl<K: TableKey, V: RowValue> Row<'_, K, V> {
    /// The key.
    pub fn key(&self) -> K::SelfType<'_> {
        self.key.value()
    }

    /// What is stored, with its checksum, which is not looked at. Who has seen the same bytes before knows that it fits.
    pub(crate) fn stored(&self) -> &[u8] {
        self.stored.value()
    }

    /// The value, if its checksum fits.
    pub fn value(&self) -> StoreResult<V::Data<'_>> {
        let key = self.key.value();
        let key = K::as_bytes(&key);
        let value = self.table.checked::<K>(key.as_ref(), self.stored.value())?;
        V::get(value).ok_or_else(|| self.table.damaged(key.as_ref()))
    }
}

impl<V: RowValue> RowData<'_, V> {
    /// The value.
    pub fn value(&self) -> StoreResult<V::Data<'_>> {
        let value = self.stored.value().split_last_chunk::<CHECKSUM_BYTES>().and_then(|(value, _)| V::get(value));
        value.ok_or_else(|| self.table.damaged(&[]))
    }
}

impl<'a, K: TableKey, V: RowValue> RowRange<'a, K, V> {
    /// Where the database cannot go on, it is not asked again.
    fn end(&mut self, fault: StoreError) -> Option<StoreResult<Row<'a, K, V>>> {
        (!std::mem::replace(&mut self.has_ended, true)).then_some(Err(fault))
    }

    fn row(&self, (key, stored): (AccessGuard<'a, K>, AccessGuard<'a, Stored<V>>)) -> StoreResult<Row<'a, K, V>> {
        let row = Row { key, stored, table: self.table };
        if V::WIDTH == Some(0) {
            row.value()?;
        }
        Ok(row)
    }
}

impl<'a, K: TableKey, V: RowValue> Iterator for RowRange<'a, K, V> {
    type Item = StoreResult<Row<'a, K, V>>;

    fn next(&mut self) -> Option<Self::Item> {
        match guarded(|| self.inner.next().map(touched).transpose()) {
            Ok(entry) => entry.map(|entry| self.row(entry)),
            Err(fault) => self.end(fault),
        }
    }
}

impl<K: TableKey, V: RowValue> DoubleEndedIterator for RowRange<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match guarded(|| self.inner.next_back().map(touched).transpose()) {
            Ok(entry) => entry.map(|entry| self.row(entry)),
            Err(fault) => self.end(fault),
        }
    }
}

/// An entry of the database.
type Entry<'a, K, V> = Result<(AccessGuard<'a, K>, AccessGuard<'a, Stored<V>>), redb::StorageError>;

/// The same entry, whose key and value were looked at: on a damaged page the database panics when that is done, not when
/// the entry is found.
fn touched<K: TableKey, V: RowValue>(entry: Entry<'_, K, V>) -> Entry<'_, K, V> {
    entry.inspect(|(key, stored)| drop((key.value(), stored.value().len())))
}

impl<T, K, V> Rows<T, K, V> {
    pub(super) fn new(inner: T, name: TableName) -> Rows<T, K, V> {
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
        let get = || {
            self.inner.get(key.borrow()).inspect(|found| {
                let _ = found.as_ref().map(AccessGuard::value);
            })
        };
        let Some(stored) = guarded(get)? else { return Ok(None) };
        self.name.checked::<K>(K::as_bytes(key.borrow()).as_ref(), stored.value())?;
        Ok(Some(RowData { stored, table: self.name }))
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
        Ok(RowRange { inner: guarded(|| self.inner.range(range))?, table: self.name, has_ended: false })
    }

    /// All rows.
    pub fn iter(&self) -> StoreResult<RowRange<'_, K, V>> {
        Ok(RowRange { inner: guarded(|| self.inner.iter())?, table: self.name, has_ended: false })
    }

    /// The first row.
    pub fn first(&self) -> StoreResult<Option<Row<'_, K, V>>> {
        self.iter()?.next().transpose()
    }

    /// The bytes of the first key, and whether its row is sound. For queues, which go on past a damaged row.
    pub fn first_key(&self) -> StoreResult<Option<(Vec<u8>, bool)>> {
        let Some((key, stored)) = guarded(|| self.inner.iter()?.next().transpose())? else { return Ok(None) };
        let key = K::as_bytes(&key.value()).as_ref().to_vec();
        let is_sound = self.name.checked::<K>(&key, stored.value()).is_ok();
        Ok(Some((key, is_sound)))
    }

    /// The last row.
    pub fn last(&self) -> StoreResult<Option<Row<'_, K, V>>> {
        self.iter()?.next_back().transpose()
    }

    /// About how many bytes the rows take, by the length of some at either end.
    pub fn estimate_bytes(&self, most: usize) -> StoreResult<u64> {
        let (mut rows, mut bytes) = (0, 0);
        let (first, last) = (self.iter()?.take(most), self.iter()?.rev().take(most));
        for row in first.chain(last) {
            let row = row?;
            rows += 1;
            bytes += (K::as_bytes(&row.key()).as_ref().len() + row.stored.value().len()) as u64;
        }
        Ok(bytes.saturating_mul(self.len()?).checked_div(rows).unwrap_or(0))
    }

    /// How many rows there are, which the database knows without counting.
    pub fn len(&self) -> StoreResult<u64> {
        guarded(|| ReadableTableMetadata::len(&self.inner))
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> StoreResult<bool> {
        Ok(self.len()? == 0)
    }

    /// Hands every row to a function: the bytes of the key, and of the value with its checksum, or none if the row is
    /// damaged; an empty key stands for all rows from there on.
    pub(super) fn export<E: From<StoreError>>(&self, out: &mut TakeRow<'_, E>) -> Result<(), E> {
        let table = self.name;
        let mut rows = guarded(|| self.inner.iter())?;
        loop {
            let (key, stored) = match guarded(|| rows.next().map(touched).transpose()) {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(()),
                // A page is damaged, and what comes after it in this table cannot be reached.
                Err(StoreError::Broken(_)) => return out(table.name, &[], None),
                Err(fault) => return Err(fault.into()),
            };
            let key = key.value();
            let key = K::as_bytes(&key);
            let value = table.checked::<K>(key.as_ref(), stored.value());
            let is_sound = value.is_ok_and(|value| K::parse(key.as_ref()).is_some() && V::get(value).is_some());
            out(table.name, key.as_ref(), is_sound.then_some(stored.value()))?;
        }
    }
}

impl<K: TableKey, V: RowValue> Rows<Table<'_, K, Stored<V>>, K, V> {
    /// Writes a row, in place of any that was there.
    pub fn insert<'k>(&mut self, key: impl Borrow<K::SelfType<'k>>, value: V::Data<'_>) -> StoreResult<()> {
        self.name.encode::<K, V>(key.borrow(), &value, &mut self.scratch);
        guarded_write(|| self.inner.insert(key, self.scratch.as_slice()).map(drop))
    }

    /// Writes a row, in place of any that was there. Says whether there was one.
    pub fn replace<'k>(&mut self, key: impl Borrow<K::SelfType<'k>>, value: V::Data<'_>) -> StoreResult<bool> {
        self.name.encode::<K, V>(key.borrow(), &value, &mut self.scratch);
        guarded_write(|| self.inner.insert(key, self.scratch.as_slice()).map(|old| old.is_some()))
    }

    /// Removes a row. Says whether there was one.
    pub fn remove<'k>(&mut self, key: impl Borrow<K::SelfType<'k>>) -> StoreResult<bool> {
        guarded_write(|| self.inner.remove(key).map(|row| row.is_some()))
    }

    /// Removes the row under a key that was read from it.
    pub fn remove_key(&mut self, key: &[u8]) -> StoreResult<()> {
        guarded_write(|| self.inner.remove(K::from_bytes(key)).map(drop))
    }

    /// Removes at most so many rows of a range. Says how many.
    pub fn remove_range(&mut self, range: RangeInclusive<K>, most: usize) -> StoreResult<usize>
    where
        K: for<'a> redb::Value<SelfType<'a> = K> + Copy,
    {
        let keys = self.range(range)?.take(most).map(|row| Ok(row?.key())).collect::<StoreResult<Vec<K>>>()?;
        for key in &keys {
            guarded_write(|| self.inner.remove(key).map(drop))?;
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
        guarded_write(|| self.inner.remove(key).map(drop))?;
        Ok(Some((key, value)))
    }

    /// Puts back a row that [`Rows::export`] handed out. Says whether it can be one of this table.
    pub(super) fn import(&mut self, key: &[u8], stored: &[u8]) -> StoreResult<bool> {
        let Some(typed) = K::parse(key) else { return Ok(false) };
        if V::get(self.name.checked::<K>(key, stored)?).is_none() {
            return Ok(false);
        }
        guarded_write(|| self.inner.insert(typed, stored).map(drop))?;
        Ok(true)
    }

    /// Sets the value of a row, or removes it, without a look at what it says. Says whether it can be one of this table.
    #[cfg(feature = "simulation")]
    pub(super) fn tamper(&mut self, key: &[u8], value: Option<&[u8]>) -> StoreResult<bool> {
        let Some(typed) = K::parse(key) else { return Ok(false) };
        match value {
            Some(value) => {
                let stored = [value, self.name.checksum::<K>(key, value).as_slice()].concat();
                guarded_write(|| self.inner.insert(typed, stored.as_slice()).map(drop))?;
            }
            None => guarded_write(|| self.inner.remove(typed).map(drop))?,
        }
        Ok(true)
    }
}

/// Where a walk over a table goes on: at its beginning, or after a key that it kept.
pub(crate) fn after_bound<K: TableKey + for<'a> redb::Value<SelfType<'a> = K>>(after: &[u8]) -> StoreResult<Bound<K>> {
    match after {
        [] => Ok(Bound::Unbounded),
        _ => K::parse(after).map(Bound::Excluded).ok_or_else(|| crate::errors::broken("a cursor")),
    }
}

impl std::fmt::Debug for super::Tables<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tables")
    }
}

impl std::fmt::Debug for super::Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Snapshot")
    }
}
