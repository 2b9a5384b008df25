//! Asking again: what a person or the end of a hunt changes in the schedule.

use engine::fetch::{self, HuntMark, ScheduleRow};
use engine::reads::{Reads, StoreResult};
use engine::release;
use model::{EventId, Group, Nanos, Need, Seq};
use store::Batch;
use store::local::schedule::rhythm;

/// Looks again at an event, and hunts now for what it waits for.
pub(crate) fn retry_event(batch: &mut Batch<'_>, id: &EventId) -> StoreResult<()> {
    let Some(seq) = batch.db().seq(id)? else { return Ok(()) };
    let retry = release::retry(batch.db(), seq, batch.now())?;
    for group in &retry.hunts {
        hunt_now(batch, group)?;
    }
    batch.apply(retry.changes)
}

/// Hunts now for a need.
pub(crate) fn retry_need(batch: &mut Batch<'_>, need: &Need) -> StoreResult<()> {
    let waiting = batch.db().waiting(need, Seq(0), 1)?;
    let space = match (need, waiting.first()) {
        (Need::Content(space, _), _) => Some(*space),
        (_, Some(seq)) => batch.db().space_of(*seq)?,
        (_, None) => None,
    };
    if let Some(group) = space.and_then(|space| Group::of(need, space)) {
        hunt_now(batch, &group)?;
    }
    Ok(())
}

/// Hunts now for everything that is missing of a group.
pub(crate) fn hunt_now(batch: &mut Batch<'_>, group: &Group) -> StoreResult<()> {
    if batch.db().needs_of(group, 1)?.is_empty() {
        return Ok(());
    }
    let now = batch.now().0;
    let row = batch.db().schedule_row(group)?.unwrap_or(ScheduleRow::first(now));
    batch.put_schedule(group, Some(fetch::on_retry(row, now)))
}

/// A hunt ended: its group is hunted again later, or leaves the schedule.
pub(crate) fn end_hunt(
    batch: &mut Batch<'_>,
    group: &Group,
    mark: HuntMark,
    started_at: Nanos,
    jitter_permille: u16,
) -> StoreResult<()> {
    batch.forget_settled_parents(group)?;
    let Some(row) = batch.db().schedule_row(group)? else {
        return Ok(());
    };
    let pending = !batch.db().needs_of(group, 1)?.is_empty();
    let now = batch.now().0;
    let row = fetch::on_hunt_ended(&row, mark, pending, rhythm(group), started_at.0, now, jitter_permille);
    batch.put_schedule(group, row)
}

/// Nobody can be asked for a group: it rests until somebody can, or leaves the schedule.
pub(crate) fn rest_group(batch: &mut Batch<'_>, group: &Group, mark: HuntMark) -> StoreResult<()> {
    let Some(row) = batch.db().schedule_row(group)? else { return Ok(()) };
    batch.forget_settled_parents(group)?;
    let pending = !batch.db().needs_of(group, 1)?.is_empty();
    batch.put_schedule(group, pending.then(|| fetch::on_no_source(row, mark)))
}

/// Somebody can be asked for groups that rested.
pub(crate) fn wake_groups(batch: &mut Batch<'_>, groups: &[Group]) -> StoreResult<()> {
    groups.iter().try_for_each(|group| batch.wake_group(group))
}
