//! Dropping the views and building them again from source, in one transaction.
//!
//! Events go back tier by tier: what a kind needs is always of a lower tier, or, among foundings, grants and removals,
//! earlier. So each finds in place what it stands on, and whether it counts comes out the same.

use crate::database::batch::Batch;
use crate::database::open::{Store, StoreShared};
use crate::keys::EventNo;
use crate::tables::drop_views;
use engine::chains::rebuild_one;
use engine::reads::{Reads, StoreResult};
use engine::rows::{EventRow, Tier};
use model::{Nanos, Seq, Stamp};
use redb::WriteTransaction;
use std::sync::Arc;

impl Store {
    /// Builds all views again. Nothing else changes, journal positions included.
    pub fn rebuild_views(&self, now: Nanos, progress: &mut dyn FnMut(u64)) -> StoreResult<u64> {
        self.write_raw(|transaction| {
            let rebuilt = rebuild(self.shared.clone(), transaction, now, progress)?;
            rebuilt.batch.finish()?;
            Ok(rebuilt.count)
        })
    }
}

/// What a rebuild came to, before it is committed.
pub(crate) struct Rebuilt<'t> {
    pub(crate) batch: Batch<'t>,
    /// Applied events that were looked at.
    pub(crate) count: u64,
    /// Those among them that nobody can open any more, since their keys were destroyed.
    pub(crate) unreadable: u64,
}

pub(crate) fn rebuild<'t>(
    shared: Arc<StoreShared>,
    transaction: &'t WriteTransaction,
    now: Nanos,
    progress: &mut dyn FnMut(u64),
) -> StoreResult<Rebuilt<'t>> {
    drop_views(transaction)?;
    let mut batch = Batch::begin(shared, transaction, now)?;
    let (mut count, mut unreadable) = (0, 0);
    for tier in Tier::all() {
        let mut from = 0;
        let mut ordered: Vec<(Stamp, Seq)> = Vec::new();
        loop {
            let chunk = applied_of_tier(&batch, tier, from)?;
            let Some(last) = chunk.0 else { break };
            from = last + 1;
            for (stamp, seq) in chunk.1 {
                count += 1;
                if tier.is_ordered() { ordered.push((stamp, seq)) } else { unreadable += put_back(&mut batch, seq)? }
            }
            progress(count);
        }
        ordered.sort();
        for (_, seq) in ordered {
            unreadable += put_back(&mut batch, seq)?;
        }
    }
    batch.settle_threads()?;
    batch.write_timeline()?;
    Ok(Rebuilt { batch, count, unreadable })
}

/// The last number that was looked at, and the events that were found.
type Chunk = (Option<u64>, Vec<(Stamp, Seq)>);

/// The applied events of a tier among the next thousand, and the last number looked at.
fn applied_of_tier(batch: &Batch<'_>, tier: Tier, from: u64) -> StoreResult<Chunk> {
    let mut last = None;
    let mut found = Vec::new();
    for entry in batch.db.tables.events.range(EventNo::new(Seq(from))..)?.take(1000) {
        let entry = entry?;
        let seq = entry.key().seq();
        last = Some(seq.0);
        let row = crate::encode::decode_event(entry.value()?)?.row;
        let is_of_tier = row.meta.as_ref().is_some_and(|meta| meta.kind.tier() == tier);
        if let (true, true, Some(stamp)) = (row.is_applied(), is_of_tier, row.stamp()) {
            found.push((stamp, seq));
        }
    }
    Ok((last, found))
}

/// Puts one event back. Says how many could not be opened because their keys were destroyed.
fn put_back(batch: &mut Batch<'_>, seq: Seq) -> StoreResult<u64> {
    let (Some(row), Some(opened)) = (batch.db.event(seq)?, batch.db.open_event(seq)?) else {
        if let Some(space) = batch.db.space_of(seq)?
            && batch.db.is_destroyed(&space)?
        {
            return Ok(1);
        }
        return Err(engine::StoreError::Broken(format!("{seq} is applied but cannot be opened")));
    };
    let (counts, changes) = rebuild_one(&batch.db, seq, &row, &opened)?;
    batch.apply(changes)?;
    if let Some(mut meta) = row.meta.clone().filter(|meta| meta.counts != counts) {
        meta.counts = counts;
        let row = EventRow { meta: Some(meta), ..row };
        batch.apply(vec![engine::Change::Row(seq, Box::new(row))])?;
    }
    Ok(0)
}
