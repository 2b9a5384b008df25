//! Writing many rows: those that come together fill their pages, where rows that are written one by one leave them half
//! empty.

use super::Rows;
use crate::errors::{guarded, guarded_write};
use crate::keys::TableKey;
use crate::row_value::{RowValue, Stored};
use engine::reads::{StoreError, StoreResult};
use model::EventId;
use redb::{ReadableTable, Table};
use std::ops::{Bound, RangeInclusive};

/// The size of a page of the database.
const PAGE_BYTES: usize = 4096;
/// On average once for so many bytes of rows they are written again.
const BYTES_BETWEEN: usize = 2 * PAGE_BYTES;
/// How many bytes of rows are written again at once.
const REPACKED_BYTES: usize = 5 * PAGE_BYTES;

/// Whether the rows that end with that of this event are to be written again. Ids are hashes, so that they draw lots.
pub(crate) fn is_repack_due(id: &EventId, row_bytes: usize) -> bool {
    usize::from(u16::from_be_bytes([id.0[0], id.0[1]])) * BYTES_BETWEEN < row_bytes << u16::BITS
}

impl<K: TableKey, V: RowValue> Rows<Table<'_, K, Stored<V>>, K, V> {
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
        let name = self.name;
        self.insert_runs(rows.into_iter().map(move |(key, value)| {
            let mut stored = Vec::new();
            name.encode::<K, V>(key, &value, &mut stored);
            (key, stored)
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

    /// Writes the rows of a range again, as they are, so that they fill their pages: rows that come few at a time leave
    /// them half empty.
    pub fn repack(&mut self, range: RangeInclusive<K>) -> StoreResult<()>
    where
        K: for<'a> redb::Value<SelfType<'a> = K> + Copy,
    {
        self.repack_last(range, usize::MAX)
    }

    /// Does so with the last rows of a range: those since about the last time, and the page before them.
    pub fn repack_end(&mut self, range: RangeInclusive<K>) -> StoreResult<()>
    where
        K: for<'a> redb::Value<SelfType<'a> = K> + Copy,
    {
        self.repack_last(range, REPACKED_BYTES)
    }

    fn repack_last(&mut self, range: RangeInclusive<K>, bytes_max: usize) -> StoreResult<()>
    where
        K: for<'a> redb::Value<SelfType<'a> = K> + Copy,
    {
        let read = || -> StoreResult<Vec<(K, Vec<u8>)>> {
            let (mut rows, mut bytes) = (Vec::new(), 0);
            for row in guarded(|| self.inner.range(range))?.rev() {
                let (key, stored) = guarded(|| row)?;
                bytes += K::as_bytes(&key.value()).as_ref().len() + stored.value().len();
                rows.push((key.value(), stored.value().to_vec()));
                if bytes >= bytes_max {
                    break;
                }
            }
            Ok(rows)
        };
        let rows = match read() {
            // Damage there concerns whoever reads it, not whoever writes beside it.
            Err(StoreError::Broken(_)) => return Ok(()),
            read => read?,
        };
        for (key, _) in &rows {
            guarded_write(|| self.inner.remove(key).map(drop))?;
        }
        self.insert_runs(rows.into_iter().rev())
    }

    /// Copies the rows of a table into this one, which has none, as they are: damaged ones stay so.
    pub(in crate::tables) fn copy_from<T: ReadableTable<K, Stored<V>>>(
        &mut self,
        from: &Rows<T, K, V>,
    ) -> StoreResult<()> {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_written_again_once_for_so_many_bytes() {
        for row_bytes in [1, 850, BYTES_BETWEEN] {
            let due = (0..=u16::MAX).filter(|lot| {
                let mut id = EventId::ZERO;
                id.0[..2].copy_from_slice(&lot.to_be_bytes());
                is_repack_due(&id, row_bytes)
            });
            assert_eq!(due.count() * BYTES_BETWEEN, row_bytes << u16::BITS, "{row_bytes} bytes");
        }
    }
}
