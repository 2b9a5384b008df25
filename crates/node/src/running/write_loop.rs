//! The writer loop: gather, apply, commit, publish, answer.

use crate::locks;
use crate::running::object_loop::ObjectWake;
use crate::running::queue::{Queued, QueuedCommand};
use crate::running::{HuntWake, IDLE, NodeInner, WRITER_THREAD, yield_to_readers};
use crate::threads;
use crate::writer::Commit;
use crate::writer::node_commands::CountDropped;
use crate::writer_command::{BatchedCommand, RequestError};
use engine::reads::{StoreError, StoreResult};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often a full disk is looked at again.
const WAIT_FOR_ROOM: Duration = Duration::from_secs(1);
/// Runs the writer until it ends, in order or by a panic. Either way the node ends with it, and whoever waits for an
/// answer, in the batch under way or in the queue, is answered that the node has stopped.
pub(super) fn run_writer(inner: &NodeInner) {
    let mut jobs = VecDeque::new();
    threads::run_logged(WRITER_THREAD, || write_loop(inner, &mut jobs));
    inner.end();
    jobs.drain(..).for_each(|job| job.fail(RequestError::Stopped));
}

fn write_loop(inner: &NodeInner, jobs: &mut VecDeque<Box<dyn QueuedCommand>>) {
    // Readers never wait for the writer, not even for a core: under load their time slices come first.
    yield_to_readers();
    let mut has_more = true;
    loop {
        if !has_more || inner.is_full.load(Ordering::Relaxed) {
            inner.queue.wait(sleep_of(inner));
        }
        jobs.extend(inner.queue.waiting().take(inner.options.batch_max.saturating_sub(jobs.len())));
        match write_batch(inner, jobs) {
            Ok(more) => has_more = more,
            Err(()) => return,
        }
        if inner.is_stopping.load(Ordering::Acquire) && inner.queue.is_empty() && jobs.is_empty() {
            return;
        }
    }
}

/// Until the clock alone makes something happen.
fn sleep_of(inner: &NodeInner) -> Duration {
    if inner.is_full.load(Ordering::Relaxed) {
        return WAIT_FOR_ROOM;
    }
    let next = inner.core.store().snapshot().and_then(|db| db.next_by_clock(inner.core.idle_nanos()));
    match next {
        // What could not be done is due again at once, and cannot be done then either.
        Ok(Some(_)) if inner.core.is_hindered() => WAIT_FOR_ROOM,
        Ok(Some(at)) => Duration::from_nanos(at.0.saturating_sub(inner.clock.now().0)).min(IDLE),
        Ok(None) | Err(_) => IDLE,
    }
}

/// Runs a batch, commits, publishes, and only then answers. Says whether more work waits; fails if the writer must end.
/// What this transaction left out is put at the front of the next batch.
fn write_batch(inner: &NodeInner, jobs: &mut VecDeque<Box<dyn QueuedCommand>>) -> Result<bool, ()> {
    if let Err(fault) = check_room(inner) {
        return after_fault(inner, &fault, jobs);
    }
    let dropped = std::mem::take(&mut *locks::lock(&inner.dropped));
    jobs.extend(dropped.into_iter().map(|(word, times)| Queued::boxed(CountDropped(word, times), |_| ())));
    let began = inner.clock.now();
    let mut commands: Vec<&mut dyn BatchedCommand> = jobs.iter_mut().map(|job| &mut **job as _).collect();
    match inner.core.commit(&mut commands, began) {
        Ok(commit) => {
            if let Err(fault) = check_in_place(inner) {
                return after_fault(inner, &fault, jobs);
            }
            if inner.is_full.swap(false, Ordering::Relaxed) {
                tracing::info!("there is room again; the node writes");
            }
            inner.timers.notify(inner.clock.now().0.saturating_sub(began.0));
            publish(inner, &commit);
            // One at a time: should an answer panic, the others are still there to be answered.
            (0..commit.done).filter_map(|_| jobs.pop_front()).for_each(|job| job.answer());
            Ok(commit.has_more)
        }
        Err(fault) => {
            // A write that failed half way leaves the database unusable until it is opened again.
            inner.needs_reopening.store(true, Ordering::Relaxed);
            if fault == StoreError::Full {
                reopen(inner);
            }
            after_fault(inner, &fault, jobs)
        }
    }
}

/// A full disk is noticed before the database hits it; room is noticed the same way.
fn check_room(inner: &NodeInner) -> StoreResult<()> {
    let store = inner.core.store();
    if inner.is_full.load(Ordering::Relaxed) {
        check_in_place(inner)?;
    }
    let free = store.disk().free_bytes().unwrap_or(u64::MAX);
    if free < store.options().reserve_bytes {
        return Err(StoreError::Full);
    }
    if inner.needs_reopening.load(Ordering::Relaxed) && !reopen(inner) {
        return Err(StoreError::Full);
    }
    Ok(())
}

/// A folder that was removed or replaced takes nothing that anybody would find.
fn check_in_place(inner: &NodeInner) -> StoreResult<()> {
    let checked = inner.core.store().disk().check_in_place();
    checked.map_err(|why| StoreError::Store(format!("the data folder is not in its place: {why}")))
}

/// Opens the database again, at least for reading. Says whether it can be written.
fn reopen(inner: &NodeInner) -> bool {
    let opened = inner.core.store().reopen();
    match &opened {
        Ok(()) => inner.needs_reopening.store(false, Ordering::Relaxed),
        Err(why) => tracing::warn!(%why, "the database cannot be opened for writing yet"),
    }
    opened.is_ok()
}

/// A full disk means reading only, and trying again with the next request. Any other fault stops the writer in order:
/// nothing is acknowledged afterwards.
fn after_fault(inner: &NodeInner, fault: &StoreError, jobs: &mut VecDeque<Box<dyn QueuedCommand>>) -> Result<bool, ()> {
    let (not_done, verdict) = match fault {
        StoreError::Full => {
            if !inner.is_full.swap(true, Ordering::Relaxed) {
                tracing::warn!("the disk is full; the node only reads until there is room");
            }
            (RequestError::Full, Ok(true))
        }
        StoreError::Store(what) | StoreError::Broken(what) => {
            tracing::error!(what, "the store failed; the writer stops");
            inner.is_stopping.store(true, Ordering::Release);
            let _ = inner.wakes.try_send(HuntWake::Stop);
            (RequestError::Failed(what.clone()), Err(()))
        }
    };
    jobs.drain(..).for_each(|job| job.fail(not_done.clone()));
    verdict
}

fn publish(inner: &NodeInner, commit: &Commit) {
    inner.commits.fetch_add(1, Ordering::Relaxed);
    let (lock, condition) = &inner.position;
    *locks::lock(lock) = commit.position;
    condition.notify_all();
    inner.watchers.notify(commit.position);
    let _ = inner.wakes.try_send(HuntWake::Commit);
    if commit.has_forgotten {
        let _ = inner.object_wakes.try_send(ObjectWake::Forgotten);
    }
}
