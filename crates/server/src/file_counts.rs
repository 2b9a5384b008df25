//! How many rows of files have each status, for monitoring. Every row is read for it, so what is known is good for a while.

use engine::reads::StoreResult;
use model::Nanos;
use node::files::report::{StatusCount, files_report};
use std::sync::{Mutex, PoisonError};
use store::Db;
use store::tables::Snapshot;

/// How long counts are good for.
const GOOD_FOR_NANOS: u64 = 60 * Nanos::SECOND;

/// Counts, and when they were made.
#[derive(Debug, Default)]
pub(crate) struct FileCounts(Mutex<(Nanos, Vec<StatusCount>)>);

impl FileCounts {
    /// The counts, and zero for what there is none of any more.
    pub(crate) fn read(&self, db: &Db<Snapshot>, now: Nanos) -> StoreResult<Vec<StatusCount>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != Nanos(0) && now.0.saturating_sub(known.0.0) < GOOD_FOR_NANOS {
            return Ok(known.1.clone());
        }
        let mut counts = files_report(db, None, now)?.counts;
        let is_gone = |old: &&StatusCount| {
            !counts
                .iter()
                .any(|new| (new.tier, &new.derivation_type, new.status) == (old.tier, &old.derivation_type, old.status))
        };
        let gone: Vec<StatusCount> =
            known.1.iter().filter(is_gone).map(|old| StatusCount { count: 0, ..old.clone() }).collect();
        counts.extend(gone);
        *known = (now, counts.clone());
        Ok(counts)
    }
}
