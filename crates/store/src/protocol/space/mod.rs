//! Rows of the `space` protocol: memberships and their limits, edits, tombstones, and contributions to the views.

mod check;
mod dump;

use crate::database::batch::{Batch, put_or_remove};
use crate::database::db::{Db, stamped};
use crate::encode::RoleCap;
use crate::keys::*;
use crate::tables::TableReads;
use engine::change::SpaceChange;
use engine::reads::{SpaceReads, StoreResult};
use engine::rows::{Membership, MembershipLimit, RegisterKey, SpaceTask, Task};
use model::{AuthorNo, EventId, Identity, Seq, SpaceNo, Stamp};

impl Batch<'_> {
    pub(crate) fn apply_space(&mut self, change: SpaceChange) -> StoreResult<()> {
        match change {
            SpaceChange::View(row_change, row, stamp, seq) => self.change_view(row_change, row, stamp, seq),
            SpaceChange::Membership(space, stamp, seq, membership) => {
                self.db.tables.members.insert(MemberKey::new(space, membership.member, stamp), seq)?;
                self.db.tables.memberships.insert(EventNo::new(seq), membership)
            }
            SpaceChange::Limit(row_change, membership, limit) => {
                let key = EventStamp::new(membership, limit.from);
                put_or_remove(row_change, &mut self.db.tables.limits, key, RoleCap(limit.cap))
            }
            SpaceChange::Edit(target, stamp, seq) => self.db.tables.edits.insert(EventStamp::new(target, stamp), seq),
            SpaceChange::Tombstone(target, stamp, seq) => {
                self.db.tables.tombstones.insert(TargetStamp::new(target, stamp), seq)
            }
        }
    }
}

impl<V: TableReads> SpaceReads for Db<V> {
    fn membership(&self, seq: Seq) -> StoreResult<Option<Membership>> {
        self.tables.memberships().get(EventNo::new(seq))
    }

    fn memberships_of(&self, space: SpaceNo, member: &Identity) -> StoreResult<Vec<(Stamp, Seq)>> {
        stamped(self.tables.members().range(MemberKey::of_member(space, *member))?)
    }

    fn limits(&self, membership: Seq, before: Stamp) -> StoreResult<Vec<MembershipLimit>> {
        self.limits_before(membership, before, |limit| limit.cap.is_none())
    }

    fn tombstones(&self, target: &EventId, after: Stamp, most: usize) -> StoreResult<Vec<(Stamp, Seq)>> {
        let (from, to) = (TargetStamp::new(*target, after), TargetStamp::new(*target, Stamp::LAST));
        Self::after(self.tables.tombstones(), from, to, most)
    }

    fn edits(&self, target: Seq, after: Stamp, most: usize) -> StoreResult<Vec<(Stamp, Seq)>> {
        let (from, to) = (EventStamp::new(target, after), EventStamp::new(target, Stamp::LAST));
        Self::after(self.tables.edits(), from, to, most)
    }

    fn next_rederive(&self, but: (Seq, Stamp)) -> StoreResult<Option<Stamp>> {
        for row in self.tables.tasks().range(TaskKey::of_rederive())?.take(2) {
            if let Task::Space(SpaceTask::Rederive(membership, after)) = row?.key().task()?
                && (membership, after) != but
            {
                return Ok(Some(after));
            }
        }
        Ok(None)
    }

    fn versions(&self, target: Seq, after: Stamp, most: usize) -> StoreResult<Vec<(Stamp, Seq)>> {
        let (from, to) = (EventStamp::new(target, after), EventStamp::new(target, Stamp::LAST));
        Self::after(self.tables.versions(), from, to, most)
    }

    fn register_winner(&self, key: &RegisterKey) -> StoreResult<Option<(Stamp, Seq)>> {
        let Some(row) = self.tables.registers().range(RegisterStamp::of_register(key))?.next_back().transpose()? else {
            return Ok(None);
        };
        Ok(Some((row.key().stamp()?, row.value()?)))
    }

    fn last_version(&self, target: Seq) -> StoreResult<Option<(Stamp, Seq)>> {
        Self::last(self.tables.versions().range(EventStamp::of_event(target))?)
    }

    fn reaction_winner(&self, target: Seq, author: AuthorNo) -> StoreResult<Option<(Stamp, Seq)>> {
        Self::last(self.tables.reactions().range(ReactionKey::of_author(target, author))?)
    }
}
