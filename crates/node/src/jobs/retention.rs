//! Retention: which messages have been kept long enough. One plan serves the dry run, which only reads, and the job. Files
//! that were deleted go by the same rule as messages that were.

use super::purging::purge_once;
use super::{JobStep, PURGES_PER_PART, ROWS_PER_PART, stamp_at};
use crate::commands::is_deleted_version;
use engine::reads::{Reads as _, StoreError, StoreResult};
use model::stage::ContentState;
use model::{EventId, FileId, Nanos, Seq, SpaceId, Stamp};
use store::shared::jobs::{Job, JobReceipt};
use store::shared::retention::Retention;
use store::tables::TableReads;
use store::views::timeline::TimelineLine;
use store::{Batch, Db};

/// Why a message goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PurgeReason {
    /// It is too old.
    Age,
    /// There are enough that are newer.
    Count,
    /// It was deleted softly long ago.
    Deleted,
}

impl PurgeReason {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            PurgeReason::Age => "age",
            PurgeReason::Count => "count",
            PurgeReason::Deleted => "deleted",
        }
    }
}

/// A message that goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExpiringMessage {
    pub space: SpaceId,
    pub thread: EventId,
    pub message: EventId,
    pub why: PurgeReason,
    /// Where a plan goes on after it.
    after: PlanCursor,
    /// How many rows the plan had looked at then.
    seen: u64,
}

/// Where a plan goes on: in a space, after a thread and, in the next one, after a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlanCursor {
    space: SpaceId,
    thread: Stamp,
    message: Stamp,
    /// The oldest message of that next thread that is kept by number. Counted once, when the thread is begun.
    counted: Stamp,
}

impl PlanCursor {
    /// The very first.
    pub const FIRST: PlanCursor =
        PlanCursor { space: SpaceId([0; 16]), thread: Stamp::FIRST, message: Stamp::FIRST, counted: Stamp::FIRST };

    fn from_bytes(bytes: &[u8]) -> PlanCursor {
        let space = bytes.first_chunk::<16>().map_or(SpaceId::ZERO, |space| SpaceId(*space));
        let stamp = |number: usize| stamp_at(bytes, 16 + number * Stamp::LEN);
        PlanCursor { space, thread: stamp(0), message: stamp(1), counted: stamp(2) }
    }

    fn to_bytes(self) -> Vec<u8> {
        let stamps = [self.thread, self.message, self.counted].map(Stamp::to_bytes);
        [self.space.0.as_slice(), stamps.as_flattened()].concat()
    }
}

/// A part of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RetentionPlan {
    /// What goes.
    pub going: Vec<ExpiringMessage>,
    /// How many threads and messages were looked at.
    pub seen: u64,
    /// Where it goes on; none at the end.
    pub next: Option<PlanCursor>,
}

impl Default for PlanCursor {
    fn default() -> PlanCursor {
        PlanCursor::FIRST
    }
}

/// What goes by the rules of one space or of all, from a place on, looking at about so many messages.
pub fn plan<V: TableReads>(
    db: &Db<V>,
    only: Option<SpaceId>,
    now: Nanos,
    from: PlanCursor,
    most: usize,
) -> StoreResult<RetentionPlan> {
    let mut spaces: Vec<SpaceId> = db.retentions()?.into_iter().map(|(space, ..)| space).collect();
    spaces.dedup();
    spaces.retain(|space| *space >= from.space && only.is_none_or(|only| only == *space));
    let mut plan = RetentionPlan::default();
    for space in spaces {
        let Some(no) = db.space_no(&space)? else { continue };
        let mut place = if space == from.space { from } else { PlanCursor { space, ..PlanCursor::FIRST } };
        loop {
            if plan.seen >= most as u64 {
                plan.next = Some(place);
                return Ok(plan);
            }
            // A thread that is not finished is met again, since its own stamp is not yet behind.
            let Some((stamp, seq)) = db.threads(no, place.thread, 1)?.first().copied() else { break };
            let left = most.saturating_sub(plan.seen as usize).max(1);
            let next = PlanCursor { thread: stamp, message: Stamp::FIRST, counted: Stamp::FIRST, ..place };
            place = thread_part(db, place, (stamp, seq), now, left, &mut plan)?.unwrap_or(next);
        }
    }
    Ok(plan)
}

/// Plans for a thread. Says where it goes on, unless it is finished.
fn thread_part<V: TableReads>(
    db: &Db<V>,
    mut place: PlanCursor,
    (stamp, seq): (Stamp, Seq),
    now: Nanos,
    most: usize,
    plan: &mut RetentionPlan,
) -> StoreResult<Option<PlanCursor>> {
    plan.seen += 1;
    let Some(rule) = db.retention(&place.space, &stamp.id)? else { return Ok(None) };
    if let Some(count) = rule.count.filter(|_| place.message == Stamp::FIRST) {
        place.counted = db.oldest_kept(seq, count)?;
    }
    let judge = Judge::new(rule, place.counted, now);
    let mut going = Vec::new();
    let (mut last, mut seen) = (place.message, plan.seen);
    let looked_at = db.lines_after(seq, place.message, most, |line| {
        (last, seen) = (line.stamp(), seen + 1);
        if let Some(why) = judge.why(db, &line.read()?)? {
            let after = PlanCursor { message: last, ..place };
            going.push(ExpiringMessage { space: place.space, thread: stamp.id, message: last.id, why, after, seen });
        }
        Ok::<_, StoreError>(())
    })?;
    plan.seen += looked_at.len() as u64;
    plan.going.extend(going);
    let is_finished = looked_at.len() < most || (last >= judge.cut() && judge.deleted_before.is_none());
    Ok((!is_finished).then_some(PlanCursor { message: last, ..place }))
}

/// A rule as of a moment.
struct Judge {
    /// Older ones go.
    aged: Stamp,
    /// Those before the oldest that is kept by number go.
    counted: Stamp,
    /// Deleted softly before then: they go.
    deleted_before: Option<Nanos>,
}

impl Judge {
    fn new(rule: Retention, counted: Stamp, now: Nanos) -> Judge {
        let ago = |seconds: u64| now.minus(seconds.saturating_mul(Nanos::SECOND));
        let aged = rule.age_seconds.map_or(Stamp::FIRST, |age| Stamp { at: ago(age), id: EventId([0; 16]) });
        Judge { aged, counted, deleted_before: rule.deleted_seconds.map(ago) }
    }

    fn cut(&self) -> Stamp {
        self.aged.max(self.counted)
    }

    fn why<V: TableReads>(&self, db: &Db<V>, line: &TimelineLine<'_, V>) -> StoreResult<Option<PurgeReason>> {
        let (stamp, is_copied) = (line.stamp(), line.is_copied());
        let is_here = || -> StoreResult<bool> {
            let row = db.event(line.seq())?;
            Ok(row.is_some_and(|row| matches!(row.content, ContentState::Processed | ContentState::Missing)))
        };
        if stamp < self.cut() {
            let why = if stamp < self.aged { PurgeReason::Age } else { PurgeReason::Count };
            return Ok((is_copied || is_here()?).then_some(why));
        }
        let Some(before) = self.deleted_before.filter(|_| line.is_edited()) else { return Ok(None) };
        let message = line.message()?;
        let is_deleted = is_deleted_version(&message.content);
        Ok((is_deleted && message.version.at < before && is_here()?).then_some(PurgeReason::Deleted))
    }
}

/// Does a part of the job.
pub(super) fn part(batch: &mut Batch<'_>, only: Option<SpaceId>, job: &mut Job) -> StoreResult<JobStep> {
    let from = PlanCursor::from_bytes(&job.cursor);
    let plan = plan(batch.db(), only, batch.now(), from, ROWS_PER_PART)?;
    for going in plan.going.iter().take(PURGES_PER_PART) {
        // A part of another job may have purged it in this very transaction.
        if let Some(seq) = batch.db().seq(&going.message)? {
            purge_once(batch, &going.space, (seq, going.message), &mut job.receipt)?;
        }
    }
    // The rest of a part that was too large is planned anew.
    if let Some(last) = plan.going.get(PURGES_PER_PART - 1).filter(|_| plan.going.len() > PURGES_PER_PART) {
        job.receipt.seen += last.seen;
        job.cursor = last.after.to_bytes();
        return Ok(JobStep::More);
    }
    job.receipt.seen += plan.seen;
    match plan.next {
        Some(next) => {
            job.cursor = next.to_bytes();
            Ok(JobStep::More)
        }
        None => purge_hidden_files(batch, only, job),
    }
}

/// Files that were deleted long enough ago go for ever, by the rule of their space for what was deleted.
fn purge_hidden_files(batch: &mut Batch<'_>, only: Option<SpaceId>, job: &mut Job) -> StoreResult<JobStep> {
    let rules = batch.db().retentions()?;
    let of_spaces =
        rules.into_iter().filter(|(space, thread, _)| thread.is_none() && only.is_none_or(|only| only == *space));
    for (space, _, rule) in of_spaces {
        let Some(seconds) = rule.deleted_seconds else { continue };
        let before = batch.now().minus(seconds.saturating_mul(Nanos::SECOND));
        let hidden = batch.db().hidden_files(&space, before, PURGES_PER_PART)?;
        for file in &hidden {
            purge_file(batch, &space, *file, &mut job.receipt)?;
        }
        if hidden.len() == PURGES_PER_PART {
            return Ok(JobStep::More);
        }
    }
    Ok(JobStep::Done)
}

/// Deletes the bytes of a file, of all of its versions and of what was derived from it.
fn purge_file(batch: &mut Batch<'_>, space: &SpaceId, file: FileId, receipt: &mut JobReceipt) -> StoreResult<()> {
    receipt.seen += 1;
    for (_, version) in batch.db().file_versions(space, file)? {
        let Some(event) = version.event else { continue };
        if let Some(seq) = batch.db().seq(&event)? {
            purge_once(batch, space, (seq, event), receipt)?;
        }
    }
    batch.forget_file(space, file)?;
    batch.audit(Some(*space), "retention", "purge file", &file.to_name())
}
