//! The chains of the engine against an open transaction: STORE and POST for what arrives, and the work
//! that goes on by itself.

use engine::chains::{self, EventInPost, StepContext, StoreOutcome};
use engine::content::{self, EventDraft};
use engine::opened::Opening;
use engine::protocol;
use engine::protocol::Numbers;
use engine::reads::{Reads, StoreError, StoreResult};
use engine::receive::{self, Arrival};
use engine::rows::{Outcome, Task};
use std::borrow::Cow;
use store::Batch;

/// How much waiting work one transaction does beside its requests.
pub(crate) const STEPS_PER_BATCH_MAX: usize = 1000;
const _: () = assert!(STEPS_PER_BATCH_MAX <= model::limits::RELEASES_PER_TRANSACTION_MAX);

/// A broken invariant stops a test run; a release leaves the one event alone and goes on.
pub(crate) const STOPS_ON_BUGS: bool = cfg!(any(debug_assertions, feature = "simulation"));

pub(crate) fn policy(batch: &Batch<'_>) -> engine::Policy {
    *batch.db().policy()
}

pub(crate) fn step_context(batch: &Batch<'_>) -> StepContext {
    StepContext { now: batch.now(), policy: policy(batch) }
}

/// STORE, then POST.
pub(crate) fn arrive(batch: &mut Batch<'_>, arrival: &Arrival) -> StoreResult<Outcome> {
    let context = step_context(batch);
    match chains::store(batch.db(), &context, arrival)? {
        StoreOutcome::Away(outcome) => Ok(outcome),
        StoreOutcome::Known(seq, changes) => {
            batch.note_received_again(seq, arrival.origin);
            batch.apply(changes)?;
            Ok(Outcome::Known(seq))
        }
        StoreOutcome::New => {
            let arrival = open_again(batch, arrival);
            let row = chains::new_row(&arrival, context.now);
            let (opening, verdict) = (arrival.opening.clone(), arrival.verdict);
            let seq = batch.store(&arrival, row.clone())?;
            post(batch, EventDraft::new(seq, row), opening, false, verdict)
        }
    }
}

/// The key may have come since the arrival was opened: only what this transaction sees decides whether to wait for it.
fn open_again<'a>(batch: &Batch<'_>, arrival: &'a Arrival) -> Cow<'a, Arrival> {
    if !matches!(arrival.opening, Opening::NoKey(..) | Opening::NotOurs(_)) {
        return Cow::Borrowed(arrival);
    }
    let opening = protocol::open(batch.db(), &arrival.blob);
    Cow::Owned(receive::complete(batch.db(), &policy(batch), Arrival { opening, ..arrival.clone() }))
}

fn post(
    batch: &mut Batch<'_>,
    draft: EventDraft,
    opening: Opening,
    was_opened: bool,
    verdict: Option<content::ContentCheck>,
) -> StoreResult<Outcome> {
    let (mut new_space, mut new_author) = (None, None);
    let numbers = match &opening {
        Opening::Opened(opened) => {
            let (space, author) = (opened.space(), opened.author());
            new_space = batch.db().space_no(&space)?.is_none().then_some(space);
            new_author = batch.db().number_of(&author)?.is_none().then_some(author);
            Numbers { space: batch.number_space(&space)?, author: batch.number_author(&author)? }
        }
        Opening::NoKey(..) | Opening::NotOurs(_) | Opening::Bad(_) => Default::default(),
    };
    let context = step_context(batch);
    let in_post = EventInPost { context, draft, was_opened, verdict, numbers };
    let (outcome, changes) = chains::post(batch.db(), in_post, opening)?;
    batch.apply(changes)?;
    if matches!(outcome, Outcome::Refused(_) | Outcome::TurnedAway(_)) {
        batch.take_back_numbers(new_space, new_author)?;
    }
    Ok(outcome)
}

/// Goes on with what waits, tasks and released events in turn, until nothing is left or the transaction has woken or
/// applied enough of them. Says whether anything is left. A released event re-enters POST at its first step.
pub(crate) fn go_on(batch: &mut Batch<'_>, most: usize) -> StoreResult<bool> {
    let mut woken = 0;
    for step in 0..2 * most {
        let done = match (batch.next_task()?, batch.has_ready()?) {
            (Some(_), _) if woken >= most => break,
            (Some(task), ready) if !ready || step % 2 == 0 => run_task(batch, task).map(|rows| woken += rows),
            (_, true) => post_again(batch),
            (_, false) => return Ok(false),
        };
        match done {
            Err(StoreError::Broken(what)) if !STOPS_ON_BUGS => tracing::error!(what, "a waiting event was parked"),
            other => other?,
        }
    }
    Ok(true)
}

/// Does a part of a task. Says how many events it changed, at least one.
fn run_task(batch: &mut Batch<'_>, task: Task) -> StoreResult<usize> {
    match chains::run_task(batch.db(), &policy(batch), task.clone()) {
        Ok(changes) => {
            let rows = changes.iter().filter(|change| matches!(change, engine::Change::Row(..))).count();
            batch.apply(changes)?;
            Ok(rows.max(1))
        }
        Err(fault) => {
            batch.apply(vec![engine::Change::Task(engine::change::RowChange::Remove, task)])?;
            Err(fault)
        }
    }
}

fn post_again(batch: &mut Batch<'_>) -> StoreResult<()> {
    let Some(seq) = batch.next_ready()? else { return Ok(()) };
    let (Some(row), Some(kept)) = (batch.db().event(seq)?, batch.db().kept(seq)?) else {
        return Err(StoreError::Broken(format!("{seq} is ready but has no row")));
    };
    let was_opened = row.meta.is_some();
    let opening = if was_opened {
        match batch.db().open_event(seq)? {
            Some(opened) => Opening::Opened(opened),
            None => {
                return Err(StoreError::Broken(format!("{seq} was opened once and cannot be opened again")));
            }
        }
    } else {
        protocol::open(batch.db(), &kept.blob)
    };
    let mut draft = EventDraft::new(seq, row);
    drop_foreign_inline(&mut draft, &opening, kept.inline.as_deref(), was_opened);
    post(batch, draft, opening, was_opened, None).map(drop)
}

/// Inline bytes that came with a blob nobody could open may turn out not to be those that were signed for.
fn drop_foreign_inline(draft: &mut EventDraft, opening: &Opening, inline: Option<&[u8]>, was_opened: bool) {
    let (Opening::Opened(opened), Some(wire), false) = (opening, inline, was_opened) else { return };
    if !opened.is_content(wire) {
        draft.row.has_inline = false;
        draft.changes.push(engine::Change::Inline(draft.seq, None));
    }
}
