//! The schedule of groups to hunt for: rows that mirror what is pending.

use crate::database::batch::Batch;
use crate::database::db::Db;
use crate::keys::*;
use crate::tables::TableReads;
use engine::change::{Change, RowChange};
use engine::fetch::{self, BackoffPolicy, ScheduleRow};
use engine::reads::{Reads, StoreResult};
use model::{EventId, Group, Nanos, Need, Seq};
use std::ops::Bound;

/// How many parents of an author are looked at in one go.
const GAPS_PER_LOOK_MAX: usize = 1000;

/// How a kind of group is hunted.
pub fn rhythm(group: &Group) -> BackoffPolicy {
    match group {
        Group::Content(..) => BackoffPolicy::Content,
        Group::Repository(_) => BackoffPolicy::Git,
        Group::Space(_) | Group::Author(..) => BackoffPolicy::Space,
    }
}

impl Batch<'_> {
    pub(crate) fn schedule_hunt(&mut self, group: &Group, origin: fetch::NeedOrigin) -> StoreResult<()> {
        let old = self.db.schedule_row(group)?;
        let new = fetch::on_new_need(old, rhythm(group), origin, self.db.policy.hunt_delays, self.now.0);
        self.put_schedule(group, Some(new))
    }

    /// Somebody can be asked for a group: it is hunted now, if it rested because nobody could.
    pub fn wake_group(&mut self, group: &Group) -> StoreResult<()> {
        match self.db.schedule_row(group)? {
            Some(row) => self.put_schedule(group, Some(fetch::on_source(row, self.now.0))),
            None => Ok(()),
        }
    }

    /// Forgets the parents of an author that need not be asked for. They stand where a look begins: what is left behind
    /// them would never be seen.
    pub fn forget_settled_parents(&mut self, group: &Group) -> StoreResult<()> {
        let Group::Author(space, author) = group else { return Ok(()) };
        let (Some(space), Some(author)) = (self.db.space_no(space)?, self.db.author_no(author)?) else {
            return Ok(());
        };
        let mut settled = Vec::new();
        for row in self.db.tables.gaps.range(GapKey::of_author(space, author))?.take(GAPS_PER_LOOK_MAX) {
            let parent = row?.key().parent();
            if self.db.is_settled_parent(&parent)? {
                settled.push(Change::Gap(RowChange::Remove, space, author, parent));
            }
        }
        self.apply(settled)
    }

    /// Writes or removes the row of a group, keeping the order by time beside it.
    pub fn put_schedule(&mut self, group: &Group, new: Option<ScheduleRow>) -> StoreResult<()> {
        let old = self.db.schedule_row(group)?;
        if old == new {
            return Ok(());
        }
        self.touch();
        if let Some(old) = old {
            self.db.tables.schedule_due.remove(DueKey::new(Nanos(old.next), group))?;
        }
        match new {
            Some(row) => {
                self.db.tables.schedule.insert(GroupKey::new(group), row)?;
                self.db.tables.schedule_due.insert(DueKey::new(Nanos(row.next), group), ())?;
            }
            None => {
                self.db.tables.schedule.remove(GroupKey::new(group))?;
            }
        }
        Ok(())
    }
}

impl<V: TableReads> Db<V> {
    /// The schedule row of a group; one that is damaged counts as none, and is written again by the next need.
    pub fn schedule_row(&self, group: &Group) -> StoreResult<Option<ScheduleRow>> {
        Ok(self.unless_damaged(self.tables.schedule().get(GroupKey::new(group)))?.flatten())
    }

    /// Groups that are due, earliest first.
    pub fn due_groups(&self, now: Nanos, most: usize) -> StoreResult<Vec<(Group, ScheduleRow)>> {
        let mut due = Vec::new();
        for entry in self.tables.schedule_due().iter()?.take(most) {
            let (next, group) = entry?.key().parts()?;
            if next > now {
                break;
            }
            if let Some(row) = self.schedule_row(&group)? {
                due.push((group, row));
            }
        }
        Ok(due)
    }

    /// Groups that rest because nobody can be asked for them, after one of them, in an order of their own.
    pub fn sourceless_groups(&self, after: Option<&Group>, most: usize) -> StoreResult<Vec<Group>> {
        let never = Nanos(fetch::NEVER);
        let from = match after {
            Some(group) => Bound::Excluded(DueKey::new(never, group)),
            None => Bound::Included(DueKey::from_time(never).start),
        };
        let rows = self.tables.schedule_due().range((from, Bound::Unbounded))?;
        rows.take(most).map(|row| Ok(row?.key().parts()?.1)).collect()
    }

    /// When the first group that is not due yet will be.
    pub fn next_due(&self, after: Nanos) -> StoreResult<Option<Nanos>> {
        let first = self.tables.schedule_due().range(DueKey::from_time(after.plus(1)))?.next().transpose()?;
        first.map(|row| Ok(row.key().parts()?.0)).transpose()
    }

    /// How many groups are in the schedule.
    pub fn schedule_len(&self) -> StoreResult<u64> {
        self.tables.schedule().len()
    }

    /// Every row of the schedule.
    pub fn schedule(&self) -> StoreResult<Vec<(Group, ScheduleRow)>> {
        let mut rows = Vec::new();
        for entry in self.tables.schedule().iter()? {
            let row = entry?;
            rows.push((row.key().group()?, row.value()?));
        }
        Ok(rows)
    }

    /// The unmet needs of a group, collected anew, at most so many.
    pub fn needs_of(&self, group: &Group, most: usize) -> StoreResult<Vec<Need>> {
        match group {
            Group::Content(space, hash) => self.content_need(*space, hash),
            Group::Author(space, author) => {
                let (Some(space), Some(author)) = (self.space_no(space)?, self.author_no(author)?) else {
                    return Ok(Vec::new());
                };
                let mut needs = Vec::new();
                for row in self.tables.gaps().range(GapKey::of_author(space, author))?.take(GAPS_PER_LOOK_MAX) {
                    let parent = row?.key().parent();
                    if needs.len() < most && !self.is_settled_parent(&parent)? {
                        needs.push(Need::Event(parent));
                    }
                }
                Ok(needs)
            }
            Group::Space(space) => self.space_needs(space, most),
            Group::Repository(identifier) => self.repository_needs(identifier, most),
        }
    }

    /// Whether there is no use in asking for a parent: it is here, if by another author than was said, or was refused.
    fn is_settled_parent(&self, parent: &EventId) -> StoreResult<bool> {
        Ok(self.seq(parent)?.is_some() || self.refused(parent)?.is_some())
    }

    fn content_need(&self, space: model::SpaceId, hash: &model::ContentHash) -> StoreResult<Vec<Need>> {
        let Some(no) = self.space_no(&space)? else {
            return Ok(Vec::new());
        };
        let waits = !self.waiting_for_content(no, hash, Seq(0), 1)?.is_empty();
        Ok(if waits { vec![Need::Content(space, *hash)] } else { Vec::new() })
    }

    /// What events of this space wait for and is not here. Where there is more than one request can ask for, each attempt
    /// begins at another place, so that nobody can crowd the others out.
    fn space_needs(&self, space: &model::SpaceId, most: usize) -> StoreResult<Vec<Need>> {
        let attempts = self.schedule_row(&Group::Space(*space))?.map_or(0, |row| row.attempts);
        let all = HuntedKey::of_space(space);
        let begin = HuntedKey::at_byte(space, (attempts.wrapping_mul(97) % 256) as u8);
        let mut needs = Vec::new();
        for range in [begin.clone()..all.end, all.start..begin] {
            for row in self.tables.hunted().range(range)?.take(most.saturating_sub(needs.len())) {
                needs.push(row?.key().need()?);
            }
        }
        Ok(needs)
    }

    /// Whether what is needed is not here, not even waiting itself.
    pub(crate) fn is_absent(&self, need: &Need) -> StoreResult<bool> {
        Ok(match need {
            Need::Event(id) => self.seq(id)?.is_none(),
            _ => true,
        })
    }

    /// The space of a known event, opened or not.
    pub fn space_of(&self, seq: Seq) -> StoreResult<Option<model::SpaceId>> {
        let Some(row) = self.event(seq)? else { return Ok(None) };
        engine::release::space_of(self, seq, &row)
    }
}
