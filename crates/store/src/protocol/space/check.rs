//! What must hold between rows of the `space` protocol, beside what all protocols ask for.

use crate::database::db::Db;
use crate::tables::TableReads;
use engine::protocol::space::deletion::delete_reaches;
use engine::reads::{Reads as _, StoreResult};

impl<V: TableReads> Db<V> {
    /// Names every row of the timeline that is no faithful copy of its message.
    pub(crate) fn check_space(&self, wrong: &mut impl FnMut(String)) -> StoreResult<()> {
        for entry in self.tables.timeline().iter()? {
            let row = entry?;
            if !self.is_faithful(row.key(), row.value()?)? {
                wrong(format!("a timeline row of {} is no copy of it", row.key().stamp().id));
            }
        }
        Ok(())
    }

    /// How many of these deletes reach their target and have no row in another view of the same events. One that does not
    /// reach leaves a row or none, depending on what came when.
    pub(crate) fn deletes_missing_in<W: TableReads>(&self, other: &Db<W>) -> StoreResult<u64> {
        let mut missing = 0;
        for row in self.tables.tombstones().iter()? {
            let row = row?;
            let (key, delete) = (row.key(), row.value()?);
            let target = self.seq(&key.target())?.map(|seq| self.event(seq)).transpose()?.flatten();
            let reaches = match target.and_then(|target| target.meta) {
                Some(meta) => delete_reaches(self, delete, key.stamp(), &meta)?,
                None => false,
            };
            missing += u64::from(reaches && other.tables.tombstones().get(key)? != Some(delete));
        }
        Ok(missing)
    }
}
