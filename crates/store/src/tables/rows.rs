//! A table as the rest of the crate sees it: typed keys and values in, typed keys and values out, and one place where
//! values become bytes and bytes become values.
//!
//! Every value ends in a checksum over table, key and value. It is looked at whenever a value is read, and for rows that
//! say all in their key whenever they are iterated over. Reading only the keys of other rows does not look at it.

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
        match guarded(|| self.inner.next().transpose()) {
            Ok(entry) => entry.map(|entry| self.row(entry)),
            Err(fault) => self.end(fault),
        }
    }
}

impl<K: TableKey, V: RowValue> DoubleEndedIterator for RowRange<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match guarded(|| self.inner.next_back().transpose()) {
            Ok(entry) => entry.map(|entry| self.row(entry)),
            Err(fault) => self.end(fault),
        }
    }
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
        let Some(stored) = guarded(|| self.inner.get(key.borrow()))? else { return Ok(None) };
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
            let (key, stored) = match guarded(|| rows.next().transpose()) {
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

    /// Writes rows that sort after all that are there, in their order. They fill their pages, where rows that are written
    /// one by one leave them half empty.
    pub fn append<'v>(&mut self, rows: impl IntoIterator<Item = (K, V::Data<'v>)>) -> StoreResult<()>
    where
        K: for<'a> redb::Value<SelfType<'a> = K> + Copy,
    {
        guarded_write(|| -> Result<(), redb::Error> {
            let mut end = self.inner.upper_bound_mut(Bound::<K>::Unbounded)?;
            for (key, value) in rows {
                self.name.encode::<K, V>(key, &value, &mut self.scratch);
                end.insert_before(key, self.scratch.as_slice())?;
            }
            Ok(end.close()?)
        })
    }

    /// Writes rows in their order, in place of any that were there. Those that follow each other without another between
    /// them go into their pages together, which they fill.
    pub fn insert_sorted<'v>(&mut self, rows: impl IntoIterator<Item = (K, V::Data<'v>)>) -> StoreResult<()>
    where
        K: for<'a> redb::Value<SelfType<'a> = K> + Copy,
    {
        let (name, mut stored) = (self.name, Vec::new());
        self.insert_runs(rows.into_iter().map(move |(key, value)| {
            name.encode::<K, V>(key, &value, &mut stored);
            (key, stored.clone())
        }))
    }

    fn insert_runs(&mut self, rows: impl Iterator<Item = (K, Vec<u8>)>) -> StoreResult<()>
    where
        K: for<'a> redb::Value<SelfType<'a> = K> + Copy,
    {
        let mut rows = rows.peekable();
        guarded_write(|| -> Result<(), redb::Error> {
            while let Some((first, _)) = rows.peek() {
                let mut run = self.inner.lower_bound_mut(Bound::Included(*first))?;
                let mut is_there = true;
                while let Some((key, stored)) = rows.peek() {
                    match run.insert_before(*key, stored.as_slice()) {
                        Ok(()) => is_there = false,
                        // Another row comes before it, or it is there itself.
                        Err(redb::CursorError::UnorderedKey) => break,
                        Err(why) => return Err(why.into()),
                    }
                    rows.next();
                }
                run.close()?;
                if is_there && let Some((key, stored)) = rows.next() {
                    self.inner.insert(key, stored.as_slice())?;
                }
            }
            Ok(())
        })
    }

    /// Writes the last so many rows of a range again, as they are, so that they fill their pages: rows that come one by
    /// one leave them half empty.
    pub fn repack_last(&mut self, range: RangeInclusive<K>, most: usize) -> StoreResult<()>
    where
        K: for<'a> redb::Value<SelfType<'a> = K> + Copy,
    {
        let mut rows = Vec::new();
        for row in guarded(|| self.inner.range(range))?.rev().take(most) {
            let (key, stored) = guarded(|| row)?;
            rows.push((key.value(), stored.value().to_vec()));
        }
        for (key, _) in &rows {
            guarded_write(|| self.inner.remove(key).map(drop))?;
        }
        self.insert_runs(rows.into_iter().rev())
    }

    /// Copies the rows of a table into this one, which has none, as they are: damaged ones stay so.
    pub(super) fn copy_from<T: ReadableTable<K, Stored<V>>>(&mut self, from: &Rows<T, K, V>) -> StoreResult<()> {
        let rows = guarded(|| from.inner.iter())?;
        guarded_write(|| -> Result<(), redb::Error> {
            let mut end = self.inner.upper_bound_mut(Bound::<K::SelfType<'_>>::Unbounded)?;
            for row in rows {
                let (key, stored) = row?;
                end.insert_before(key.value(), stored.value())?;
            }
            Ok(end.close()?)
        })
    }

    /// Removes a row. Says whether there was one.
    pub fn remove<'k>(&mut self, key: impl Borrow<K::SelfType<'k>>) -> StoreResult<bool> {
        guarded_write(|| self.inner.remove(key).map(|row| row.is_some()))
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
}

#[cfg(test)]
mod damage {
    use super::*;

    impl<K: TableKey, V: RowValue> Rows<Table<'_, K, Stored<V>>, K, V> {
        fn damaged_rows(&self) -> usize {
            let mut damaged = 0;
            let count = &mut |_: &'static str, _: &[u8], stored: Option<&[u8]>| {
                damaged += usize::from(stored.is_none());
                Ok::<_, StoreError>(())
            };
            self.export(count).expect("read");
            damaged
        }

        /// Writes a row of ones, changes every byte of what is stored, one after another, and requires that reading, looking
        /// and exporting name the table each time.
        pub(in crate::tables) fn check_that_damage_is_noticed(&mut self) {
            let ones = [1; 128];
            let key = (0..128).find(|length| {
                K::fixed_width().is_none_or(|width| width == *length) && K::parse(&ones[..*length]).is_some()
            });
            let key = &ones[..key.expect("a key of ones")];
            let value = (0..128)
                .find(|length| V::WIDTH.is_none_or(|width| width == *length) && V::get(&ones[..*length]).is_some());
            let value = &ones[..value.expect("a value of ones")];
            let typed = || K::parse(key).expect("a key");
            self.insert(typed(), V::get(value).expect("a value")).expect("written");
            let stored = self.inner.get(typed()).expect("read").expect("a row").value().to_vec();
            assert_eq!(stored.len(), value.len() + CHECKSUM_BYTES);
            for at in 0..stored.len() {
                let mut changed = stored.clone();
                changed[at] ^= 0x10;
                self.inner.insert(typed(), changed.as_slice()).expect("written");
                let named = |found: StoreResult<()>| match found {
                    Err(StoreError::Broken(text)) => text.contains(self.name.name),
                    Ok(()) | Err(_) => false,
                };
                assert!(named(self.get_row(typed()).map(drop)), "{}: byte {at}, found by its key", self.name.name);
                let first = self.iter().expect("read").next().expect("a row").and_then(|row| row.value().map(drop));
                assert!(named(first), "{}: byte {at}, found in order", self.name.name);
                assert_eq!(self.damaged_rows(), 1, "{}: byte {at}, exported", self.name.name);
                assert!(self.import(key, &changed).is_err(), "{}: byte {at}, imported", self.name.name);
            }
            self.remove(typed()).expect("removed");
            // The same value under another key, as if the key had changed.
            for at in 0..key.len() {
                let mut other = key.to_vec();
                other[at] ^= 0x10;
                self.inner.insert(K::from_bytes(&other), stored.as_slice()).expect("written");
                assert_eq!(self.damaged_rows(), 1, "{}: byte {at} of the key", self.name.name);
                self.remove(K::from_bytes(&other)).expect("removed");
            }
        }
    }
}
