//! Rows of the `probe` protocol: values and clears by author and name.

mod check;
mod dump;

use crate::database::batch::Batch;
use crate::database::db::{Db, stamped};
use crate::keys::{ProbeClearKey, ProbeValueKey};
use crate::tables::TableReads;
use engine::change::ProbeChange;
use engine::reads::{ProbeReads, StoreResult};
use model::probe::ProbeName;
use model::{AuthorNo, Seq, Stamp};
use std::ops::Bound;

impl Batch<'_> {
    pub(crate) fn apply_probe(&mut self, change: ProbeChange) -> StoreResult<()> {
        match change {
            ProbeChange::Value(author, name, place, seq) => {
                self.db.tables.probe_values.insert(ProbeValueKey::new(author, name, place), seq)
            }
            ProbeChange::Clear(author, name, stamp, seq) => {
                self.db.tables.probe_clears.insert(ProbeClearKey::new(author, name, stamp), seq)
            }
        }
    }
}

impl<V: TableReads> ProbeReads for Db<V> {
    fn probe_values(
        &self,
        author: AuthorNo,
        name: &ProbeName,
        after: Stamp,
        most: usize,
    ) -> StoreResult<Vec<(Stamp, Seq)>> {
        let key = |stamp| ProbeValueKey::new(author, *name, stamp);
        let range = (Bound::Excluded(key(after)), Bound::Included(key(Stamp::LAST)));
        stamped(self.tables.probe_values().range(range)?.take(most))
    }

    fn least_clear(&self, author: AuthorNo, name: &ProbeName, after: Stamp) -> StoreResult<Option<Stamp>> {
        let key = |stamp| ProbeClearKey::new(author, *name, stamp);
        let range = (Bound::Excluded(key(after)), Bound::Included(key(Stamp::LAST)));
        let first = self.tables.probe_clears().range(range)?.next().transpose()?;
        Ok(first.map(|row| row.key().stamp()))
    }
}
