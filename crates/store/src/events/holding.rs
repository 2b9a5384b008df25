//! The anteroom itself: who waits for what, on whose account, what is carried, and which ids were sent away.

use crate::database::batch::{Batch, put_or_remove};
use crate::database::db::Db;
use crate::encode::{ExpiredRow, RefusedRow};
use crate::keys::*;
use crate::tables::{Rows, Stored, TableReads};
use engine::change::RowChange;
use engine::fetch::NeedOrigin;
use engine::reads::{Reads, StoreResult};
use engine::rows::{Owner, Task};
use model::stage::RefusalReason;
use model::{EventId, Group, Nanos, Need, Seq, SpaceId};
use std::collections::BTreeSet;

impl<V: TableReads> Db<V> {
    /// Needs that are met and whose events are still to be woken, at most so many.
    pub fn releases(&self, most: usize) -> StoreResult<Vec<Need>> {
        let mut needs = Vec::new();
        for row in self.tables.tasks().range(TaskKey::of_release())?.take(most) {
            if let Task::Release(need) = row?.key().task()? {
                needs.push(need);
            }
        }
        Ok(needs)
    }
}

impl Batch<'_> {
    pub(crate) fn remember_refused(&mut self, id: EventId, why: RefusalReason) -> StoreResult<()> {
        let order = self.next_refused;
        self.next_refused += 1;
        self.db.tables.refused.insert(EventIdKey::new(id), RefusedRow { why, order })?;
        self.db.tables.refused_order.insert(OrderNo::new(order), id)?;
        while self.db.tables.refused_order.len()? > self.db.policy.refused_max {
            let Some((_, oldest)) = self.db.tables.refused_order.pop_first()? else { break };
            self.db.tables.refused.remove(EventIdKey::new(oldest))?;
        }
        Ok(())
    }

    pub(crate) fn remember_expired(&mut self, id: EventId, at: Nanos) -> StoreResult<()> {
        let order = self.next_expired;
        self.next_expired += 1;
        if let Some(old) = self.db.tables.expired.get(EventIdKey::new(id))? {
            self.db.tables.expired_order.remove(OrderNo::new(old.order))?;
        }
        self.db.tables.expired.insert(EventIdKey::new(id), ExpiredRow { at, order })?;
        self.db.tables.expired_order.insert(OrderNo::new(order), id)?;
        while self.db.tables.expired_order.len()? > self.db.policy.expired_max {
            let Some((_, oldest)) = self.db.tables.expired_order.pop_first()? else { break };
            self.db.tables.expired.remove(EventIdKey::new(oldest))?;
        }
        Ok(())
    }

    pub(crate) fn change_held(
        &mut self,
        row_change: RowChange,
        owner: Owner,
        seq: Seq,
        until: Nanos,
    ) -> StoreResult<()> {
        let count = self.db.held_count(owner)?;
        put_or_remove(row_change, &mut self.db.tables.held, HeldKey::new(until, seq), ())?;
        put_or_remove(row_change, &mut self.db.tables.held_by_owner, HeldByOwnerKey::new(owner, seq), ())?;
        let (count, total) = match row_change {
            RowChange::Put => (count + 1, self.db.held_total + 1),
            RowChange::Remove => (count.saturating_sub(1), self.db.held_total.saturating_sub(1)),
        };
        self.db.pending.held_counts.insert(OwnerKey::new(owner), count);
        self.db.held_total = total;
        Ok(())
    }

    /// The reverse row of a need, how many of the space wait for it, and whether hunts of the space ask for it.
    pub(crate) fn change_waiting(
        &mut self,
        row_change: RowChange,
        need: &Need,
        seq: Seq,
        space: Option<SpaceId>,
    ) -> StoreResult<()> {
        put_or_remove(row_change, &mut self.db.tables.waiting, WaitingKey::new(need, seq), ())?;
        if let (RowChange::Remove, Some(group @ Group::Repository(_))) = (row_change, Group::of(need, SpaceId::COMMONS))
        {
            self.perhaps_met.insert(group);
        }
        let Some(space) = space.filter(|_| need.is_hunted_by_space()) else { return Ok(()) };
        if row_change == RowChange::Remove {
            self.perhaps_met.insert(Group::Space(space));
        }
        let before = self.hunters_of(need, space)?;
        let count = match row_change {
            RowChange::Put => before + 1,
            RowChange::Remove => before.saturating_sub(1),
        };
        self.db.pending.hunters.insert((need.clone(), space), count);
        match (before, count) {
            (0, 1..) if self.db.is_absent(need)? => self.db.tables.hunted.insert(HuntedKey::new(&space, need), ()),
            (1.., 0) => self.db.tables.hunted.remove(HuntedKey::new(&space, need)).map(drop),
            _ => Ok(()),
        }
    }

    fn hunters_of(&self, need: &Need, space: SpaceId) -> StoreResult<u64> {
        if let Some(count) = self.db.pending.hunters.get(&(need.clone(), space)) {
            return Ok(*count);
        }
        Ok(self.db.tables.hunters.get(HunterKey::new(need, &space))?.unwrap_or(0))
    }

    /// An event came, or is gone: nobody hunts for it any more, or everybody does who waits for it.
    pub(crate) fn change_absence(&mut self, row_change: RowChange, id: EventId) -> StoreResult<()> {
        // Most of the time nothing waits, and whatever comes in passes here.
        if self.db.tables.hunters.is_empty()? && self.db.pending.hunters.is_empty() {
            return Ok(());
        }
        let need = Need::Event(id);
        let mut spaces = BTreeSet::new();
        for row in self.db.tables.hunters.range(HunterKey::of_need(&need))? {
            spaces.insert(row?.key().parts()?.1);
        }
        let every_space = (need.clone(), SpaceId([0; 16]))..=(need.clone(), SpaceId([u8::MAX; 16]));
        for ((_, space), count) in self.db.pending.hunters.range(every_space) {
            if *count > 0 {
                spaces.insert(*space)
            } else {
                spaces.remove(space)
            };
        }
        for space in spaces {
            put_or_remove(row_change, &mut self.db.tables.hunted, HuntedKey::new(&space, &need), ())?;
            match row_change {
                RowChange::Put => _ = self.wanted.entry(Group::Space(space)).or_insert(NeedOrigin::PeerOrRelay),
                RowChange::Remove => _ = self.perhaps_met.insert(Group::Space(space)),
            }
        }
        Ok(())
    }

    pub(crate) fn change_ready(&mut self, row_change: RowChange, seq: Seq) -> StoreResult<()> {
        match row_change {
            RowChange::Put => _ = self.db.pending.ready.insert(seq),
            RowChange::Remove if self.db.pending.ready.remove(&seq) => {}
            RowChange::Remove => _ = self.db.tables.ready.remove(EventNo::new(seq))?,
        }
        Ok(())
    }

    pub(crate) fn change_parked(&mut self, row_change: RowChange, seq: Seq, why: &str) -> StoreResult<()> {
        if row_change == RowChange::Put {
            tracing::error!(event = seq.0, why, "an event is parked: a step broke an invariant on it");
        }
        put_or_remove(row_change, &mut self.db.tables.parked, EventNo::new(seq), why.as_bytes())
    }

    /// The next event that POST should look at, taken from the queue.
    pub fn next_ready(&mut self) -> StoreResult<Option<Seq>> {
        let stored = self.first_ready()?;
        let next = self.db.pending.ready.first().copied().into_iter().chain(stored).min();
        if let Some(seq) = next {
            self.change_ready(RowChange::Remove, seq)?;
            self.is_changed = true;
        }
        Ok(next)
    }

    /// The first in the table. A damaged row stands for an event only if that is ready.
    fn first_ready(&mut self) -> StoreResult<Option<Seq>> {
        while let Some((key, is_sound)) = self.db.tables.ready.first_key()? {
            let seq = EventNo::parse(&key).map(|key| key.seq());
            let is_ready = |row: engine::rows::EventRow| row.stage == model::stage::Stage::Ready;
            match seq {
                Some(seq) if is_sound || self.db.event(seq)?.is_some_and(is_ready) => return Ok(Some(seq)),
                Some(_) | None => {
                    self.note_dropped("ready", is_sound);
                    self.db.tables.ready.remove_key(&key)?;
                }
            }
        }
        Ok(None)
    }

    /// A row of a queue that says nothing is dropped.
    pub(crate) fn note_dropped(&mut self, queue: &'static str, is_sound: bool) {
        tracing::error!(queue, is_sound, "a row of a queue was dropped: it cannot be read; run `anteroom verify`");
        self.is_changed = true;
    }

    /// Whether any event is ready.
    pub fn has_ready(&self) -> StoreResult<bool> {
        Ok(!self.db.pending.ready.is_empty() || !self.db.tables.ready.is_empty()?)
    }

    /// Writes who waits, as this batch leaves it.
    pub(crate) fn write_waiting(&mut self) -> StoreResult<()> {
        for (key, count) in std::mem::take(&mut self.db.pending.held_counts) {
            put_count(&mut self.db.tables.held_counts, key, count)?;
        }
        for ((need, space), count) in std::mem::take(&mut self.db.pending.hunters) {
            put_count(&mut self.db.tables.hunters, HunterKey::new(&need, &space), count)?;
        }
        for seq in std::mem::take(&mut self.db.pending.ready) {
            self.db.tables.ready.insert(EventNo::new(seq), ())?;
        }
        Ok(())
    }

    pub(crate) fn change_carried(&mut self, row_change: RowChange, space: SpaceId, seq: Seq) -> StoreResult<()> {
        put_or_remove(row_change, &mut self.db.tables.carried, CarriedKey::new(space, seq), ())?;
        put_or_remove(row_change, &mut self.db.tables.carried_order, EventNo::new(seq), space)?;
        let count = self.db.carried_count(&space)?;
        let count = match row_change {
            RowChange::Put => count + 1,
            RowChange::Remove => count.saturating_sub(1),
        };
        put_count(&mut self.db.tables.carried_counts, SpaceIdKey::new(space), count)
    }
}

/// A count of nothing has no row.
fn put_count<'k, K: TableKey>(
    table: &mut Rows<redb::Table<'_, K, Stored<u64>>, K, u64>,
    key: impl std::borrow::Borrow<K::SelfType<'k>>,
    count: u64,
) -> StoreResult<()> {
    put_or_remove(if count > 0 { RowChange::Put } else { RowChange::Remove }, table, key, count)
}
