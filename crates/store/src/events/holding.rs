//! The anteroom itself: who waits for what, on whose account, what is carried, and which ids were sent away.

use crate::database::batch::{Batch, put_or_remove, turned};
use crate::database::db::fault;
use crate::encode;
use engine::change::RowChange;
use engine::reads::{Reads, StoreResult};
use engine::rows::Owner;
use model::stage::RefusalReason;
use model::{EventId, Group, Nanos, Need, Seq, SpaceId};
use redb::ReadableTable as _;

impl Batch<'_> {
    pub(crate) fn remember_refused(&mut self, id: EventId, why: RefusalReason) -> StoreResult<()> {
        let order = self.next_refused;
        self.next_refused += 1;
        let value = crate::keys::key(&[&[why.code()], &order.to_be_bytes()]);
        self.db.tables.refused.insert(id.0, value).map_err(fault)?;
        self.db.tables.refused_order.insert(order, id.0).map_err(fault)?;
        while redb::ReadableTableMetadata::len(&self.db.tables.refused_order).map_err(fault)?
            > self.db.policy.refused_max
        {
            let Some(oldest) = pop_first(&mut self.db.tables.refused_order)? else {
                break;
            };
            self.db.tables.refused.remove(oldest).map_err(fault)?;
        }
        Ok(())
    }

    pub(crate) fn remember_expired(&mut self, id: EventId, at: Nanos) -> StoreResult<()> {
        let order = self.next_expired;
        self.next_expired += 1;
        if let Some(old) = self.db.tables.expired.get(id.0).map_err(fault)?.map(|guard| guard.value()) {
            let old = crate::database::db::seq_at_end(&old).0;
            self.db.tables.expired_order.remove(old).map_err(fault)?;
        }
        let value = crate::keys::key(&[&at.0.to_be_bytes(), &order.to_be_bytes()]);
        self.db.tables.expired.insert(id.0, value).map_err(fault)?;
        self.db.tables.expired_order.insert(order, id.0).map_err(fault)?;
        while redb::ReadableTableMetadata::len(&self.db.tables.expired_order).map_err(fault)?
            > self.db.policy.expired_max
        {
            let Some(oldest) = pop_first(&mut self.db.tables.expired_order)? else {
                break;
            };
            self.db.tables.expired.remove(oldest).map_err(fault)?;
        }
        Ok(())
    }

    pub(crate) fn held(&mut self, row_change: RowChange, owner: Owner, seq: Seq, until: Nanos) -> StoreResult<()> {
        let by_deadline: [u8; 16] = crate::keys::key(&[&until.0.to_be_bytes(), &seq.0.to_be_bytes()]);
        let owner_key = encode::owner_key(owner);
        let by_owner: [u8; 13] = crate::keys::key(&[&owner_key, &seq.0.to_be_bytes()]);
        let count = self.db.held_count(owner)?;
        turned(row_change, &mut self.db.tables.held, by_deadline)?;
        turned(row_change, &mut self.db.tables.held_by_owner, by_owner)?;
        let (count, total) = match row_change {
            RowChange::Put => (count + 1, self.db.held_total + 1),
            RowChange::Remove => (count.saturating_sub(1), self.db.held_total.saturating_sub(1)),
        };
        self.db.pending.held_counts.insert(owner_key, count);
        self.db.held_total = total;
        Ok(())
    }

    /// The reverse row of a need, and how many of the space wait for it: what hunts of that space ask for.
    pub(crate) fn waiting(
        &mut self,
        row_change: RowChange,
        need: &Need,
        seq: Seq,
        space: Option<SpaceId>,
    ) -> StoreResult<()> {
        let key = need.to_key();
        let row = [key.as_slice(), &seq.0.to_be_bytes()].concat();
        turned(row_change, &mut self.db.tables.waiting, row.as_slice())?;
        let (Some(space), Need::Event(_) | Need::Key(_)) = (space, need) else { return Ok(()) };
        if row_change == RowChange::Remove {
            self.perhaps_met.insert(Group::Space(space));
        }
        let hunted = [space.0.as_slice(), &key].concat();
        let count = self.db.tables.hunted.get(hunted.as_slice()).map_err(fault)?.map_or(0, |guard| guard.value());
        let count = match row_change {
            RowChange::Put => count + 1,
            RowChange::Remove => count.saturating_sub(1),
        };
        if count > 0 {
            self.db.tables.hunted.insert(hunted.as_slice(), count).map_err(fault)?;
        } else {
            self.db.tables.hunted.remove(hunted.as_slice()).map_err(fault)?;
        }
        Ok(())
    }

    pub(crate) fn carried(&mut self, row_change: RowChange, space: SpaceId, seq: Seq) -> StoreResult<()> {
        let key: [u8; 24] = crate::keys::key(&[&space.0, &seq.0.to_be_bytes()]);
        turned(row_change, &mut self.db.tables.carried, key)?;
        put_or_remove(row_change, &mut self.db.tables.carried_order, seq.0, space.0)?;
        let count = self.db.carried_count(&space)?;
        let count = match row_change {
            RowChange::Put => count + 1,
            RowChange::Remove => count.saturating_sub(1),
        };
        let row_change = if count > 0 { RowChange::Put } else { RowChange::Remove };
        put_or_remove(row_change, &mut self.db.tables.carried_counts, space.0, count)
    }
}

fn pop_first(table: &mut redb::Table<'_, u64, [u8; 16]>) -> StoreResult<Option<[u8; 16]>> {
    Ok(table.pop_first().map_err(fault)?.map(|(_, value)| value.value()))
}
