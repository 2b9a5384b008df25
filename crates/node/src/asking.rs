//! Asking again: what a person or the end of a hunt changes in the schedule.

use crate::core::WriterReply;
use engine::content::EventDraft;
use engine::fetch::{self, ScheduleRow};
use engine::reads::{Reads, StoreError, StoreResult};
use engine::receive::Keyring as _;
use engine::release;
use model::stage::StageInput;
use model::{EventId, Group, Nanos, Need, Seq, SpaceId, Stage};
use store::Batch;
use store::schedule::rhythm;

/// Looks again at an event, and hunts now for what it waits for.
pub(crate) fn retry_event(batch: &mut Batch<'_>, id: &EventId) -> StoreResult<WriterReply> {
    let Some(seq) = batch.db().seq(id)? else {
        return Ok(WriterReply::Done);
    };
    let Some(row) = batch.db().event(seq)? else {
        return Ok(WriterReply::Done);
    };
    let space = batch.db().space_of(seq)?;
    if let Stage::Held { unmet, .. } = &row.stage {
        for group in unmet.iter().filter_map(|need| Group::of(need, space?)) {
            hunt_now(batch, &group)?;
        }
    }
    // Every commit that meets a need wakes who waits for it, so looking again finds nothing new unless a row is wrong;
    // an event that really waits keeps its place in the line.
    if let Stage::Held { unmet, since } = row.stage.clone() {
        if !any_met(batch, &unmet, space)? {
            return Ok(WriterReply::Done);
        }
        let mut work = EventDraft::new(seq, row);
        let owner = release::owner_of(&work.row);
        work.row.stage = work.row.stage.next(StageInput::Wake).map_err(|edge| StoreError::Broken(edge.to_string()))?;
        let put = |need: &Need| engine::Change::Waiting(engine::change::RowChange::Remove, need.clone(), seq, space);
        work.changes.extend(unmet.iter().map(put));
        work.changes.push(engine::Change::Held(engine::change::RowChange::Remove, owner, seq, since));
        work.changes.push(engine::Change::Ready(engine::change::RowChange::Put, seq));
        batch.apply(work.finish())?;
    } else if let (Some(meta), Some(space)) = (row.meta, space)
        && row.content == model::ContentState::Missing
    {
        hunt_now(batch, &Group::Content(space, meta.content_hash))?;
    }
    Ok(WriterReply::Done)
}

fn any_met(batch: &Batch<'_>, unmet: &[Need], space: Option<SpaceId>) -> StoreResult<bool> {
    for need in unmet {
        let met = match need {
            Need::Event(id) => match batch.db().seq(id)? {
                Some(other) => batch.db().event(other)?.is_some_and(|row| row.is_applied()),
                None => batch.db().refused(id)?.is_some(),
            },
            Need::Key(key) => space.is_some_and(|space| batch.db().space_key(&space, key).is_some()),
            Need::Time(at) => *at <= batch.now(),
            Need::Address { .. } | Need::GitObject { .. } | Need::GitData(_) | Need::Content(..) => false,
        };
        if met {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Hunts now for a need.
pub(crate) fn retry_need(batch: &mut Batch<'_>, need: &Need) -> StoreResult<WriterReply> {
    let waiting = batch.db().waiting(need, Seq(0), 1)?;
    let space = match (need, waiting.first()) {
        (Need::Content(space, _), _) => Some(*space),
        (_, Some(seq)) => batch.db().space_of(*seq)?,
        (_, None) => None,
    };
    if let Some(group) = space.and_then(|space| Group::of(need, space)) {
        hunt_now(batch, &group)?;
    }
    Ok(WriterReply::Done)
}

fn hunt_now(batch: &mut Batch<'_>, group: &Group) -> StoreResult<()> {
    if batch.db().needs_of(group, 1)?.is_empty() {
        return Ok(());
    }
    let now = batch.now().0;
    let row = batch.db().schedule_row(group)?.unwrap_or(ScheduleRow { attempts: 0, last: None, next: now });
    batch.put_schedule(group, Some(fetch::on_retry(row, now)))
}

/// A hunt ended: its group is hunted again later, or leaves the schedule.
pub(crate) fn hunt_ended(
    batch: &mut Batch<'_>,
    group: &Group,
    expected_next: Nanos,
    started_at: Nanos,
    jitter_permille: u16,
) -> StoreResult<WriterReply> {
    let Some(row) = batch.db().schedule_row(group)? else {
        return Ok(WriterReply::Done);
    };
    let pending = !batch.db().needs_of(group, 1)?.is_empty();
    let now = batch.now().0;
    let (next, started) = (expected_next.0, started_at.0);
    let row = fetch::on_hunt_ended(&row, next, pending, rhythm(group), started, now, jitter_permille);
    batch.put_schedule(group, row)?;
    Ok(WriterReply::Done)
}
