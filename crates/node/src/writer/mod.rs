//! The writer's work without the loop around it: a batch of commands, one durable transaction, then the answers.

pub mod node_commands;

use crate::commands::files::followed::follow_events;
use crate::jobs;
use crate::pipeline::{Avoided, Culprit, STEPS_PER_BATCH_MAX, go_on, stops_on_bugs};
use crate::writer_command::{Answered, AskError, BatchedCommand, CommandEnd, RequestError, Slot, WriterCommand};
use engine::reads::{Reads as _, StoreError, StoreResult};
use model::Nanos;
use model::planted::{PlantedBug, is_planted};
use node_commands::Tick;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use store::{Batch, Store};

/// A store and the work of its one writer.
#[derive(Debug)]
pub struct WriterCore {
    store: Store,
    /// How much of the time before the start does not count for what is held.
    idle_nanos: u64,
    /// Whether the last commit left out work of the clock, which would be due at once again.
    is_hindered: AtomicBool,
}

/// What a batch of commands of one type came to.
#[derive(Debug)]
pub struct BatchResult<C: WriterCommand> {
    /// An answer for each command, in their order.
    pub answers: Vec<Answered<C>>,
    /// Whether more work waits that needs no command.
    pub has_more: bool,
}

/// What one transaction came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commit {
    /// How many of the commands have an answer. The rest is for the next transaction.
    pub(crate) done: usize,
    /// Whether more work waits that needs no command.
    pub(crate) has_more: bool,
    /// The number of the latest journal entry.
    pub(crate) position: u64,
    /// Whether objects are to be removed.
    pub(crate) has_forgotten: bool,
}

impl WriterCore {
    /// The writer of that store.
    pub fn new(store: Store) -> WriterCore {
        WriterCore { store, idle_nanos: 0, is_hindered: AtomicBool::new(false) }
    }

    /// The writer of a store that may not have run for long: of the time since then, only a day counts for what is held,
    /// because it may be the clock that is wrong, and what it would end cannot be brought back.
    pub fn resume(store: Store, now: Nanos) -> WriterCore {
        const DAY: u64 = 24 * 3600 * Nanos::SECOND;
        let before = store.snapshot().and_then(|db| db.held_time()).unwrap_or_default();
        let idle_nanos = if before == Nanos(0) { 0 } else { now.0.saturating_sub(before.0).saturating_sub(DAY) };
        WriterCore { idle_nanos, ..WriterCore::new(store) }
    }

    pub(crate) fn is_hindered(&self) -> bool {
        self.is_hindered.load(Ordering::Relaxed)
    }

    pub(crate) fn idle_nanos(&self) -> u64 {
        self.idle_nanos
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The store, for work that needs it alone.
    pub fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    /// Runs one command in a transaction of its own and answers after its commit.
    pub fn ask<C: WriterCommand>(&self, command: C, now: Nanos) -> Answered<C> {
        let mut slot = Slot::new(command);
        self.commit(&mut [&mut slot], now).map_err(|fault| AskError::NotRun(RequestError::from(fault)))?;
        slot.take_answer()
    }

    /// Runs the commands in one transaction and answers after its commit; in several, if a command has to be undone. On an
    /// error the transaction under way changed nothing.
    pub fn run<C: WriterCommand>(&self, commands: Vec<C>, now: Nanos) -> StoreResult<BatchResult<C>> {
        let mut slots: Vec<Slot<C>> = commands.into_iter().map(Slot::new).collect();
        let mut batched: Vec<&mut dyn BatchedCommand> = slots.iter_mut().map(|slot| slot as _).collect();
        let mut commit = self.commit(&mut batched, now)?;
        let mut done = commit.done;
        while done < batched.len() {
            commit = self.commit(&mut batched[done..], now)?;
            done += commit.done;
        }
        let answers = slots.iter_mut().map(Slot::take_answer).collect();
        Ok(BatchResult { answers, has_more: commit.has_more })
    }

    /// Runs until nothing waits that could go on by itself.
    pub fn settle(&self, now: Nanos) -> StoreResult<()> {
        while self.run(vec![Tick], now)?.has_more {}
        Ok(())
    }

    /// Runs commands in one transaction and commits it; they keep their answers. On an error nothing happened.
    ///
    /// A command that is refused changes nothing. If it had changed something before it was refused, the transaction is
    /// thrown away, the commands before it are run again and committed, and those after it are left for the next
    /// transaction. That costs each command at most one more run, however many are refused.
    pub(crate) fn commit(&self, commands: &mut [&mut dyn BatchedCommand], now: Nanos) -> StoreResult<Commit> {
        let (mut upto, mut avoided) = (commands.len(), Avoided::default());
        loop {
            let culprit = Cell::new(None);
            match self.try_commit(&mut commands[..upto], now, &avoided, &culprit) {
                // The one that was undone has its answer, too.
                Ok(ControlFlow::Continue(commit)) if upto < commands.len() => {
                    return Ok(Commit { done: upto + 1, has_more: true, ..commit });
                }
                Ok(ControlFlow::Continue(commit)) => {
                    let is_hindered = avoided.0.iter().any(|(culprit, _)| matches!(culprit, Culprit::Upkeep(_)));
                    self.is_hindered.store(is_hindered, Ordering::Relaxed);
                    return Ok(commit);
                }
                Ok(ControlFlow::Break(refused)) => upto = refused,
                // The same again, without what broke it. Nothing is avoided twice.
                Err(StoreError::Broken(why)) if !stops_on_bugs() => match culprit.take() {
                    Some(culprit) if avoided.why(&culprit).is_none() => {
                        self.store.note_damage(&why);
                        avoided.0.push((culprit, why));
                    }
                    Some(_) | None => return Err(StoreError::Broken(why)),
                },
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Runs commands and commits, or breaks off at the first one that has to be undone.
    fn try_commit(
        &self,
        commands: &mut [&mut dyn BatchedCommand],
        now: Nanos,
        avoided: &Avoided,
        culprit: &Cell<Option<Culprit>>,
    ) -> StoreResult<ControlFlow<usize, Commit>> {
        let (count, mut has_answered) = (commands.len(), false);
        let committed = self.store.write_unless(now, |batch| {
            for (number, command) in commands.iter_mut().enumerate() {
                let (end, has_changed) = batch.watch_changes(|batch| run_or_park(batch, *command));
                if end? == CommandEnd::Refused && has_changed {
                    return Ok(ControlFlow::Break(number));
                }
            }
            has_answered = true;
            for step in (0..UPKEEP_STEPS).filter(|step| avoided.why(&Culprit::Upkeep(*step)).is_none()) {
                culprit.set(Some(Culprit::Upkeep(step)));
                keep_up(batch, step, now.minus(self.idle_nanos))?;
                culprit.set(None);
            }
            let mut has_more = go_on(batch, STEPS_PER_BATCH_MAX, avoided, culprit)?;
            for (step, work) in (UPKEEP_STEPS..).zip(WORK_OF_ITS_OWN) {
                if avoided.why(&Culprit::Upkeep(step)).is_none() {
                    culprit.set(Some(Culprit::Upkeep(step)));
                    has_more |= work(batch)?;
                    culprit.set(None);
                }
            }
            let position = batch.db().next_position()?.saturating_sub(1);
            let has_forgotten = !batch.db().forgotten_objects(1)?.is_empty();
            Ok(ControlFlow::Continue(Commit { done: count, has_more, position, has_forgotten }))
        });
        match committed {
            Err(_) if has_answered && is_planted(PlantedBug::AnswerBeforeCommit) => {
                Ok(ControlFlow::Continue(Commit { done: count, has_more: false, position: 0, has_forgotten: false }))
            }
            other => other,
        }
    }
}

/// A command that breaks an invariant is parked, which counts as refused; the others commit. Tests stop.
fn run_or_park(batch: &mut Batch<'_>, command: &mut dyn BatchedCommand) -> StoreResult<CommandEnd> {
    match command.run(batch) {
        Err(StoreError::Broken(what)) if !stops_on_bugs() => {
            tracing::error!(what, "a command was parked: it broke an invariant");
            command.park(what);
            Ok(CommandEnd::Refused)
        }
        other => other,
    }
}

/// What goes on by itself from commit to commit, a part in each, and says whether there is more.
const WORK_OF_ITS_OWN: [fn(&mut Batch<'_>) -> StoreResult<bool>; 2] =
    [|batch| follow_events(batch, STEPS_PER_BATCH_MAX), jobs::step];

/// How many things time alone asks for; what goes on by itself comes after them.
const UPKEEP_STEPS: usize = 5;

/// What time alone asks for: needs for a time are met, waits end, objects that nobody writes any more and content whose
/// grace is over are forgotten, and the journal's oldest entries are trimmed.
fn keep_up(batch: &mut Batch<'_>, step: usize, held_until: Nanos) -> StoreResult<usize> {
    match step {
        0 => batch.wake_by_clock(STEPS_PER_BATCH_MAX),
        1 => batch.expire_old(held_until, STEPS_PER_BATCH_MAX),
        2 => batch.forget_unfinished(STEPS_PER_BATCH_MAX),
        3 => batch.forget_unused(STEPS_PER_BATCH_MAX),
        _ => batch.trim_journal(STEPS_PER_BATCH_MAX),
    }
}
