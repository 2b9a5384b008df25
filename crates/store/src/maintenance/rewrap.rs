//! Moving a data folder to a new master key.
//!
//! The first commit makes the folder one of the new key and keeps the old one in it, wrapped under the new; so it opens
//! with the new key from then on, and every wrapped row is readable, since it names its master key. Rows are wrapped
//! anew a bounded number at a time. The last commit forgets the old key.

use crate::at_rest::master::MasterKey;
use crate::at_rest::{INDEX, PREVIOUS};
use crate::database::batch::Batch;
use crate::database::db::Db;
use crate::database::open::Store;
use crate::maintenance::sweep::{SweepCursor, SweepProgress, page_of};
use crate::shared::{Audit, Custodians, Sealing, SharedTable};
use crate::tables::{TableReads, Tables};
use engine::reads::StoreResult;
use model::planted::{PlantedBug, is_planted};

const CURSOR: &str = "rewrap";
impl Store {
    /// Makes this a data folder of another master key, with which it is to be opened next. Says whether it did: not
    /// while an earlier change is unfinished.
    pub fn begin_rewrap(self, new: &MasterKey) -> StoreResult<bool> {
        let old = &self.shared.master;
        self.write_raw(|transaction| {
            let mut tables = Tables::open(transaction)?;
            if tables.about.contains(PREVIOUS)? {
                return Ok(false);
            }
            let previous = new.wrap(PREVIOUS.as_bytes(), old.to_bytes().as_slice());
            let index = new.wrap(INDEX.as_bytes(), old.index_key());
            let rows = [("key check", new.check_value().to_vec()), (PREVIOUS, previous), (INDEX, index)];
            for (name, row) in rows {
                tables.about.insert(name, &row)?;
            }
            Ok(true)
        })
    }
}

/// Wraps a page of a table of secrets anew.
macro_rules! rewrap_table {
    ($batch:ident, $table:ident, $cursor:ident, $most:ident, $name:expr) => {{
        let rows = page_of(&$batch.db.tables.$table, &$cursor.after, $most)?;
        for (key, wrapped) in &rows {
            let name: &dyn Fn(&[u8]) -> Vec<u8> = &$name;
            if let Some(anew) = $batch.wrap_anew(&name(key.as_bytes()), wrapped)? {
                $batch.db.tables.$table.insert(key, &anew)?;
                $cursor.changed += 1;
            }
        }
        (rows.len(), rows.last().map(|(key, _)| key.as_bytes().to_vec()))
    }};
}

impl<V: TableReads> Db<V> {
    /// Whether rows may still be wrapped under an earlier master key.
    pub fn is_rewrapping(&self) -> StoreResult<bool> {
        Ok(self.about(PREVIOUS)?.is_some())
    }
}

impl Batch<'_> {
    /// Wraps secrets anew under the master key that the folder was opened with, about so many at a time. To be repeated
    /// until it is done.
    pub fn rewrap(&mut self, most: usize) -> StoreResult<SweepProgress> {
        if !self.db.is_rewrapping()? {
            return Ok(SweepProgress { is_done: true, ..SweepProgress::default() });
        }
        let mut cursor = self.cursor(CURSOR)?.unwrap_or_default();
        let mut left = most.max(1);
        while left > 0 {
            let (rows, last) = match cursor.phase {
                0 => rewrap_table!(self, keys, cursor, left, <[u8]>::to_vec),
                1 => rewrap_table!(self, prekeys, cursor, left, <[u8]>::to_vec),
                2 if is_planted(PlantedBug::RewrapSkipsTransits) => (0, None),
                2 => rewrap_table!(self, transits, cursor, left, <[u8]>::to_vec),
                3 => rewrap_table!(self, storage_keys, cursor, left, <[u8]>::to_vec),
                4 => self.rewrap_shared::<Custodians>(&mut cursor, left)?,
                5 => self.rewrap_shared::<Audit>(&mut cursor, left)?,
                _ => return self.end_rewrap(&cursor),
            };
            cursor.step(rows, left, last);
            left -= rows.min(left);
        }
        self.keep_cursor(CURSOR, &cursor)?;
        Ok(cursor.progress(false))
    }

    /// Wraps a page of a shared table whose rows rest under the master key.
    fn rewrap_shared<T: SharedTable>(
        &mut self,
        cursor: &mut SweepCursor,
        most: usize,
    ) -> StoreResult<(usize, Option<Vec<u8>>)> {
        let page = self.reseal_shared::<T>(&cursor.after, most, |batch, key, stored| match T::sealing(key) {
            Sealing::Master(name) => batch.wrap_anew(&name, stored),
            Sealing::Space(_) | Sealing::Plain => Ok(None),
        })?;
        cursor.changed += page.changed;
        Ok((page.rows, page.last))
    }

    fn end_rewrap(&mut self, cursor: &SweepCursor) -> StoreResult<SweepProgress> {
        self.touch();
        for name in [CURSOR, PREVIOUS] {
            self.db.tables.about.remove(name)?;
        }
        Ok(cursor.progress(true))
    }

    /// A secret under the current master key; none if it is so already, or is no secret.
    fn wrap_anew(&self, name: &[u8], wrapped: &[u8]) -> StoreResult<Option<Vec<u8>>> {
        let master = &self.shared.master;
        if !MasterKey::is_wrapped(wrapped) || master.is_current(wrapped) {
            return Ok(None);
        }
        let secret = master.unwrap(name, wrapped).map_err(|_| crate::errors::broken("a wrapped secret"))?;
        Ok(Some(master.wrap(name, &zeroize::Zeroizing::new(secret))))
    }
}
