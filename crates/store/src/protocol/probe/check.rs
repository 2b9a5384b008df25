//! What must hold between rows of the `probe` protocol, beside what all protocols ask for.

use crate::database::db::Db;
use crate::tables::TableReads;
use engine::reads::{Reads as _, StoreResult};
use model::AuthorKey;
use model::probe::ProbeName;

impl<V: TableReads> Db<V> {
    /// Names every value that stands under another author or name than its event says.
    pub(crate) fn check_probe(&self, wrong: &mut impl FnMut(String)) -> StoreResult<()> {
        for entry in self.tables.probe_values().iter()? {
            let row = entry?;
            let (line, event) = self.probe_line(row.value()?)?;
            let is_own = self.number_of(&AuthorKey::Probe(event.author))? == Some(row.key().author());
            if !is_own || row.key().name() != ProbeName::of(&event.name) {
                wrong(format!("the value {line} stands elsewhere"));
            }
        }
        Ok(())
    }
}
