//! What must hold between rows of the `space` protocol, beside what all protocols ask for.

use crate::database::db::Db;
use crate::tables::TableReads;
use engine::reads::StoreResult;

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
}
