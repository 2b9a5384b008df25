//! How much there is of what, read at the cost of a few rows: for metrics, which are asked for every few seconds.

use crate::database::db::Db;
use crate::tables::TableReads;
use engine::reads::{Reads as _, StoreResult};
use model::stage::Stage;
use model::{Nanos, Need};

/// How many held events are looked at, oldest first.
const HELD_LOOKED_AT_MAX: usize = 1000;

/// What waits for one kind of need, as far as it was looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitCount {
    /// The word for the kind.
    pub kind: &'static str,
    /// How many of the held events that were looked at lack at least one of it.
    pub events: u64,
    /// Since when the oldest of them waits.
    pub since: Nanos,
}

impl<V: TableReads> Db<V> {
    /// How many events stand in each stage. The lengths of tables are kept by the database, so nothing is counted here.
    /// Refused and expired are the ids that are still remembered.
    pub fn stages(&self) -> StoreResult<[(&'static str, u64); 7]> {
        let ready = self.tables.ready().len()?;
        let (held, carried) = (self.held_total()?, self.carried_total()?);
        let all = self.tables.events().len()?;
        let parked = self.tables.parked().len()?;
        let applied = all.saturating_sub(held).saturating_sub(carried).saturating_sub(ready).saturating_sub(parked);
        let refused = self.tables.refused().len()?;
        let expired = self.tables.expired().len()?;
        Ok([
            ("applied", applied),
            ("held", held),
            ("ready", ready),
            ("carried", carried),
            ("refused", refused),
            ("expired", expired),
            ("parked", parked),
        ])
    }

    /// What the oldest held events wait for, by kind of need, at most a thousand events.
    pub fn waits(&self) -> StoreResult<Vec<WaitCount>> {
        let mut waits: Vec<WaitCount> = Vec::new();
        for row in self.tables.held().iter()?.take(HELD_LOOKED_AT_MAX) {
            let seq = row?.key().seq();
            let Some(Stage::Held { unmet, since, .. }) = self.event(seq)?.map(|row| row.stage) else { continue };
            let mut kinds: Vec<&'static str> = unmet.iter().map(Need::word).collect();
            kinds.sort_unstable();
            kinds.dedup();
            for kind in kinds {
                match waits.iter_mut().find(|waits| waits.kind == kind) {
                    Some(known) => known.events += 1,
                    None => waits.push(WaitCount { kind, events: 1, since }),
                }
            }
        }
        Ok(waits)
    }
}
