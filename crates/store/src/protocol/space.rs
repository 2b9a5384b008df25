//! Rows of the `space` protocol: memberships and their limits, edits, tombstones, and contributions to the views.

use crate::database::batch::{Batch, put_or_remove};
use crate::database::db::{Db, fault};
use crate::encode;
use crate::tables::TableReads;
use engine::change::SpaceChange;
use engine::reads::{SpaceReads, StoreResult};
use engine::receive;
use engine::rows::{Membership, MembershipLimit, RegisterKey, SpaceTask, Task};
use model::{AuthorNo, Envelope, EventId, Seq, Stamp};
use redb::ReadableTable as _;

impl Batch<'_> {
    pub(crate) fn apply_space(&mut self, change: SpaceChange) -> StoreResult<()> {
        match change {
            SpaceChange::View(row_change, row, stamp, seq) => self.view(row_change, row, stamp, seq),
            SpaceChange::Membership(seq, membership) => {
                let bytes = encode::encode_membership(&membership);
                self.db.tables.memberships.insert(seq.0, bytes.as_slice()).map_err(fault).map(drop)
            }
            SpaceChange::Limit(row_change, membership, limit) => {
                let key = encode::number_stamp(membership, limit.from);
                let cap = limit.cap.map_or(0, model::payload::MemberRole::code);
                put_or_remove(row_change, &mut self.db.tables.limits, key, cap)
            }
            SpaceChange::Edit(target, stamp, seq) => {
                let key = encode::number_stamp(target, stamp);
                self.db.tables.edits.insert(key, seq.0).map_err(fault).map(drop)
            }
            SpaceChange::Tombstone(target, stamp, seq) => {
                let key = encode::id_stamp(&target, stamp);
                self.db.tables.tombstones.insert(key, seq.0).map_err(fault).map(drop)
            }
        }
    }
}

impl<V: TableReads> SpaceReads for Db<V> {
    fn membership(&self, seq: Seq) -> StoreResult<Option<Membership>> {
        let found = self.tables.memberships().get(seq.0).map_err(fault)?;
        found.map(|guard| encode::decode_membership(guard.value())).transpose()
    }

    fn limits(&self, membership: Seq, before: Stamp) -> StoreResult<Vec<MembershipLimit>> {
        self.limits_before(membership, before, |limit| limit.cap.is_none())
    }

    fn tombstones(&self, target: &EventId) -> StoreResult<Vec<(Stamp, Seq)>> {
        let (from, to) = (encode::id_stamp(target, Stamp::FIRST), encode::id_stamp(target, Stamp::LAST));
        Self::after(self.tables.tombstones(), from, to, usize::MAX)
    }

    fn open_content(&self, envelope: &Envelope, wire: &[u8]) -> StoreResult<Option<Vec<u8>>> {
        Ok(receive::plain_content(self, self.policy.inline_bytes_max, envelope, wire))
    }

    fn edits(&self, target: Seq, after: Stamp, most: usize) -> StoreResult<Vec<(Stamp, Seq)>> {
        let (from, to) = (encode::number_stamp(target, after), encode::number_stamp(target, Stamp::LAST));
        Self::after(self.tables.edits(), from, to, most)
    }

    fn next_rederive(&self, but: (Seq, Stamp)) -> StoreResult<Option<Stamp>> {
        let (from, to) = encode::rederive_range();
        for entry in self.tables.tasks().range(from.as_slice()..to.as_slice()).map_err(fault)?.take(2) {
            if let Task::Space(SpaceTask::Rederive(membership, after)) =
                encode::decode_task(entry.map_err(fault)?.0.value())?
                && (membership, after) != but
            {
                return Ok(Some(after));
            }
        }
        Ok(None)
    }

    fn versions(&self, target: Seq, after: Stamp, most: usize) -> StoreResult<Vec<(Stamp, Seq)>> {
        let (from, to) = (encode::number_stamp(target, after), encode::number_stamp(target, Stamp::LAST));
        Self::after(self.tables.versions(), from, to, most)
    }

    fn register_winner(&self, key: &RegisterKey) -> StoreResult<Option<(Stamp, Seq)>> {
        let (from, to) = (encode::register_key(key, Stamp::FIRST), encode::register_key(key, Stamp::LAST));
        Self::last(self.tables.registers(), from, to)
    }

    fn last_version(&self, target: Seq) -> StoreResult<Option<(Stamp, Seq)>> {
        let (from, to) = (encode::number_stamp(target, Stamp::FIRST), encode::number_stamp(target, Stamp::LAST));
        Self::last(self.tables.versions(), from, to)
    }

    fn reaction_winner(&self, target: Seq, author: AuthorNo) -> StoreResult<Option<(Stamp, Seq)>> {
        let (from, to) =
            (encode::reaction_key(target, author, Stamp::FIRST), encode::reaction_key(target, author, Stamp::LAST));
        Self::last(self.tables.reactions(), from, to)
    }
}
