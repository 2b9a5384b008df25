//! The chains of the engine against an open transaction: STORE and POST for what arrives, and the work
//! that goes on by itself.

use engine::Change;
use engine::chains::{self, EventInPost, StepContext, StoreOutcome};
use engine::change::RowChange;
use engine::content::{self, EventDraft};
use engine::opened::Opening;
use engine::protocol;
use engine::protocol::Numbers;
use engine::reads::{Reads, StoreError, StoreResult};
use engine::receive::{self, Arrival};
use engine::release;
use engine::rows::{Outcome, Task};
use model::Seq;
use std::borrow::Cow;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use store::Batch;

/// How much waiting work one transaction does beside its requests.
pub(crate) const STEPS_PER_BATCH_MAX: usize = 1000;
const _: () = assert!(STEPS_PER_BATCH_MAX <= model::limits::RELEASES_PER_TRANSACTION_MAX);

/// How many needs are released together; each costs a look, whether anything of it is woken or not.
const RELEASES_TOGETHER_MAX: usize = 100;

/// A broken invariant stops a test run, unless the test is about that; a release leaves the one event alone and goes on.
pub(crate) fn stops_on_bugs() -> bool {
    cfg!(any(debug_assertions, feature = "simulation")) && !ISOLATES_BUGS.load(Ordering::Relaxed)
}

static ISOLATES_BUGS: AtomicBool = AtomicBool::new(false);

/// From now on a broken invariant is isolated as in a release, in this process.
pub fn isolate_bugs() {
    ISOLATES_BUGS.store(true, Ordering::Relaxed);
}

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
            let (space_no, is_new_space) = batch.number_space(&space)?;
            let (author_no, is_new_author) = batch.number_author(&author)?;
            new_space = is_new_space.then_some(space);
            new_author = is_new_author.then_some(author);
            Numbers { space: space_no, author: author_no }
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

/// What broke an invariant: the transaction is undone, and everything is done again without this.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Culprit {
    /// An event that was ready. It is parked.
    Event(Seq),
    /// A task. It is dropped.
    Task(Task),
    /// A release together with others. They are done one by one, to see which of them it was.
    ReleasesTogether,
    /// Work that the clock asks for, by its number. It is left out.
    Upkeep(usize),
}

/// What is left out of a transaction, because it broke an invariant, and how.
#[derive(Default, Debug)]
pub(crate) struct Avoided(pub(crate) Vec<(Culprit, String)>);

impl Avoided {
    /// How it broke one, if it is left out.
    pub(crate) fn why(&self, culprit: &Culprit) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == culprit).map(|(_, why)| why.as_str())
    }
}

/// Goes on with what waits, tasks and released events in turn, until nothing is left or the transaction has woken or
/// applied enough of them. Says whether anything is left. A released event re-enters POST at its first step.
pub(crate) fn go_on(
    batch: &mut Batch<'_>,
    most: usize,
    avoided: &Avoided,
    culprit: &Cell<Option<Culprit>>,
) -> StoreResult<bool> {
    let mut woken = 0;
    for step in 0..2 * most {
        match (batch.next_task()?, batch.has_ready()?) {
            (Some(_), _) if woken >= most => break,
            (Some(task), ready) if !ready || step % 2 == 0 => woken += run_task(batch, task, avoided, culprit)?,
            (_, true) => post_again(batch, avoided, culprit)?,
            (_, false) => return Ok(false),
        }
    }
    Ok(true)
}

/// Does a part of a task. Says how many events it changed, at least one. One that broke an invariant is dropped.
fn run_task(
    batch: &mut Batch<'_>,
    task: Task,
    avoided: &Avoided,
    culprit: &Cell<Option<Culprit>>,
) -> StoreResult<usize> {
    let this = Culprit::Task(task.clone());
    if let Some(why) = avoided.why(&this) {
        tracing::error!(
            ?task,
            why,
            "a task was dropped: it broke an invariant; run `anteroom verify`, then `anteroom salvage`"
        );
        batch.apply(vec![Change::Task(RowChange::Remove, task), Change::Count("task-dropped")])?;
        return Ok(1);
    }
    let is_alone = !matches!(task, Task::Release(_)) || avoided.why(&Culprit::ReleasesTogether).is_some();
    culprit.set(Some(if is_alone { this } else { Culprit::ReleasesTogether }));
    let also_met = if is_alone { Vec::new() } else { batch.db().releases(RELEASES_TOGETHER_MAX)? };
    let changes = chains::run_task(batch.db(), &policy(batch), task, also_met)?;
    let rows = changes.iter().filter(|change| matches!(change, Change::Row(..))).count();
    batch.apply(changes)?;
    culprit.set(None);
    Ok(rows.max(1))
}

/// Looks again at an event that is ready. One that broke an invariant is parked.
fn post_again(batch: &mut Batch<'_>, avoided: &Avoided, culprit: &Cell<Option<Culprit>>) -> StoreResult<()> {
    let Some(seq) = batch.next_ready()? else { return Ok(()) };
    let this = Culprit::Event(seq);
    if let Some(why) = avoided.why(&this) {
        let changes = release::park(batch.db(), seq, why.to_owned())?;
        return batch.apply(changes);
    }
    culprit.set(Some(this));
    post_ready(batch, seq)?;
    culprit.set(None);
    Ok(())
}

fn post_ready(batch: &mut Batch<'_>, seq: Seq) -> StoreResult<()> {
    let (Some(row), Some(kept)) = (batch.db().event(seq)?, batch.db().kept(seq)?) else {
        return Err(StoreError::Broken(format!("{seq} is ready but has no row")));
    };
    let was_opened = row.meta.is_some();
    let opening = if was_opened {
        match protocol::reopen(batch.db(), &kept.blob) {
            Some(opened) => Opening::Opened(opened),
            None => return Err(StoreError::Broken(format!("{seq} was opened once and cannot be opened again"))),
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
        draft.changes.push(Change::Inline(draft.seq, None));
    }
}
