//! The node as it runs: a writer loop, a hunting loop, and a handle that anyone may clone.
//!
//! Requests gather while a commit is under way; the next batch takes all of them. Gather, apply, commit, publish, in
//! that order. Nothing is answered before its commit.

mod hunt_loop;
mod hunt_reports;
mod object_loop;
pub(crate) mod queue;
mod watchers;
mod write_loop;

use crate::clock::{CLOCK_STEP_MIN, Clock, ClockJump, WatchedClock};
use crate::fetch::answers::SourceAnswers;
use crate::fetch::hunter::SourceClient;
use crate::fetch::reports::{DomainRequests, DomainState};
use crate::locks;
use crate::options::NodeOptions;
use crate::running::object_loop::ObjectWake;
use crate::running::queue::{CommandQueue, Lane, Queued, QueuedCommand};
use crate::running::watchers::CommitWatchers;
use crate::threads;
use crate::writer::WriterCore;
use crate::writer::node_commands::{Collect, Tick};
use crate::writer_command::{Answered, RequestError, WriterCommand};
use crossbeam_channel::{Sender, bounded};
use engine::fetch::RequestId;
use engine::reads::StoreResult;
use engine::receive::DropReason;
use model::{Group, Nanos};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use store::tables::Snapshot;
use store::{Db, Store};

/// What wakes the hunting loop.
pub(crate) enum HuntWake {
    /// A commit: there may be new needs.
    Commit,
    /// A request to a source ended.
    Ended(RequestId),
    /// The node stops.
    Stop,
}

/// The end of a hunt, and whether it is in the schedule.
pub(crate) struct HuntEnd {
    pub(crate) group: Group,
    pub(crate) is_written: bool,
}

/// What the handle and the loops share.
pub(crate) struct NodeInner {
    pub(crate) core: WriterCore,
    pub(crate) clock: WatchedClock,
    pub(crate) options: NodeOptions,
    pub(crate) queue: CommandQueue,
    pub(crate) wakes: Sender<HuntWake>,
    pub(crate) object_wakes: Sender<ObjectWake>,
    pub(crate) ended_hunts: Mutex<Vec<HuntEnd>>,
    /// Groups that rest for want of a source are to be looked at.
    pub(crate) sources_changed: AtomicBool,
    pub(crate) waking_failed: AtomicBool,
    pub(crate) is_stopping: AtomicBool,
    pub(crate) has_ended: AtomicBool,
    pub(crate) needs_reopening: AtomicBool,
    pub(crate) is_full: AtomicBool,
    pub(crate) commits: AtomicU64,
    pub(crate) dropped: Mutex<BTreeMap<&'static str, u64>>,
    pub(crate) position: (Mutex<u64>, Condvar),
    pub(crate) watchers: CommitWatchers,
    pub(crate) timers: CommitWatchers,
    pub(crate) source: Arc<dyn SourceClient>,
    pub(crate) answers: SourceAnswers,
    pub(crate) domain_states: Mutex<Vec<DomainState>>,
    pub(crate) domain_requests: Mutex<DomainRequests>,
}

impl NodeInner {
    /// Puts a command into the queue, waiting for room.
    pub(crate) fn send(&self, lane: Lane, mut job: Box<dyn QueuedCommand>) -> Result<(), RequestError> {
        loop {
            let sent = self.queue.send(lane, job, LOOK_FOR_THE_END);
            self.answer_if_ended();
            match sent? {
                None => return Ok(()),
                Some(back) => job = back,
            }
        }
    }

    /// Hands a command over and waits for its answer.
    pub(crate) fn ask<C: WriterCommand>(&self, command: C) -> Answered<C> {
        let (sender, receiver) = bounded(1);
        let on_answer = move |answer| {
            let _ = sender.send(answer);
        };
        self.send(Lane::Prompt, Queued::boxed(command, on_answer))?;
        receiver.recv().map_err(|_| RequestError::Stopped)?
    }

    /// Ends the node: nothing is accepted any more, the hunting loop stops, and whoever waits is answered.
    pub(crate) fn end(&self) {
        self.is_stopping.store(true, Ordering::Release);
        let _ = self.wakes.try_send(HuntWake::Stop);
        let _ = self.object_wakes.try_send(ObjectWake::Stop);
        self.has_ended.store(true, Ordering::SeqCst);
        self.answer_if_ended();
    }

    /// Once the writer has ended, whoever hands something over answers what is left, so that nobody waits for ever:
    /// either the writer's last look saw it, or this one does.
    fn answer_if_ended(&self) {
        if self.has_ended.load(Ordering::SeqCst) {
            for job in self.queue.waiting() {
                job.fail(RequestError::Stopped);
            }
        }
    }

    /// Counts by reason what is dropped before it reaches the writer; the count is written with whatever commits next. The
    /// first, the second, the fourth and so on are logged, so that a flood does not fill the log.
    pub(crate) fn count_dropped<T>(&self, received: Result<T, DropReason>) -> Result<T, DropReason> {
        if let Err(why) = &received {
            let mut dropped = locks::lock(&self.dropped);
            let count = dropped.entry(why.word()).or_default();
            *count += 1;
            if count.is_power_of_two() {
                tracing::debug!(reason = why.word(), count, %why, "something that arrived was dropped");
            }
        }
        received
    }
}

/// A handle to a running node.
#[derive(Clone)]
pub struct Node {
    pub(crate) inner: Arc<NodeInner>,
    pub(crate) threads: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node({:?})", self.inner.core)
    }
}

/// Says what the clock has done since the last run.
fn say_what_the_clock_did(now: Nanos, greatest_before: Nanos) {
    const DAY: u64 = 24 * 3600 * Nanos::SECOND;
    if greatest_before == Nanos(0) {
        return;
    }
    let (behind, ahead) = (greatest_before.0.saturating_sub(now.0), now.0.saturating_sub(greatest_before.0));
    if behind >= CLOCK_STEP_MIN {
        tracing::error!(
            seconds = behind / Nanos::SECOND,
            "the system clock is behind the time at which this node has written last: what was written in between \
             has a time in the future; check the clock, then see `anteroom clock list`"
        );
    }
    if ahead > DAY {
        tracing::warn!(
            hours = ahead / (3600 * Nanos::SECOND),
            "by the system clock nothing was written for long; for what is held, only a day of it counts"
        );
    }
}

impl Node {
    /// Starts the writer and the hunting loop over a store.
    pub fn start(store: Store, clock: Arc<dyn Clock>, source: Arc<dyn SourceClient>, options: NodeOptions) -> Node {
        let (wakes, woken) = bounded(1024);
        let (object_wakes, objects_woken) = bounded(1);
        let clock = WatchedClock::new(clock);
        let greatest_before = store.snapshot().and_then(|db| db.greatest_time()).unwrap_or_default();
        let now = clock.now();
        say_what_the_clock_did(now, greatest_before);
        let inner = Arc::new(NodeInner {
            core: WriterCore::resume(store, now),
            clock,
            options,
            queue: CommandQueue::new(options.queue_max),
            wakes,
            object_wakes,
            is_stopping: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            needs_reopening: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            commits: AtomicU64::new(0),
            dropped: Mutex::default(),
            ended_hunts: Mutex::default(),
            sources_changed: AtomicBool::new(false),
            waking_failed: AtomicBool::new(false),
            position: (Mutex::new(0), Condvar::new()),
            watchers: CommitWatchers::default(),
            timers: CommitWatchers::default(),
            source: source.clone(),
            answers: SourceAnswers::default(),
            domain_states: Mutex::default(),
            domain_requests: Mutex::default(),
        });
        if let Err(why) = object_loop::forget_interrupted(&inner.core, now) {
            tracing::error!(%why, "uploads that were interrupted stay as they are until the next start");
        }
        if let Err(why) = object_loop::release_leases(&inner.core, now) {
            tracing::error!(%why, "work that was under way when the node stopped is taken again when its leases end");
        }
        let _ = inner.queue.try_send(Queued::boxed(Collect, |_| ()));
        let (writer, hunter, remover) = (inner.clone(), inner.clone(), inner.clone());
        let started = [
            threads::spawn(WRITER_THREAD, move || write_loop::run_writer(&writer)),
            threads::spawn("anteroom-hunter", move || hunt_loop::hunt_loop(&hunter, &source, &woken)),
            threads::spawn("anteroom-objects", move || object_loop::remove_objects(&remover, &objects_woken)),
        ];
        let mut running = Vec::new();
        for thread in started {
            match thread {
                Ok(thread) => running.push(thread),
                Err(why) => {
                    tracing::error!(%why, "the node cannot run: the system gives it no thread");
                    inner.end();
                }
            }
        }
        Node { inner, threads: Arc::new(Mutex::new(running)) }
    }

    /// The store, for reading.
    pub fn store(&self) -> &Store {
        self.inner.core.store()
    }

    /// A snapshot of now.
    pub fn snapshot(&self) -> StoreResult<Arc<Db<Snapshot>>> {
        self.store().snapshot()
    }

    pub fn now(&self) -> Nanos {
        self.inner.clock.now()
    }

    /// The time since some moment, which nobody can set; none if there is no such clock.
    pub fn uptime(&self) -> Option<Nanos> {
        self.inner.clock.uptime()
    }

    /// By how much the system clock was set, while that is not believed.
    pub fn clock_jump(&self) -> Option<ClockJump> {
        self.inner.clock.jump()
    }

    /// How far the clock is behind the greatest time that was given. What was stamped in between is
    /// ahead of the clock.
    pub fn clock_behind(&self) -> Nanos {
        let greatest = self.snapshot().and_then(|db| db.greatest_time()).unwrap_or_default();
        let behind = greatest.minus(self.now().0);
        if behind.0 < CLOCK_STEP_MIN { Nanos(0) } else { behind }
    }

    /// Whether the disk is full, so that the node only reads.
    pub fn is_full(&self) -> bool {
        self.inner.is_full.load(Ordering::Relaxed)
    }

    /// How many batches were committed since the start.
    pub fn commits(&self) -> u64 {
        self.inner.commits.load(Ordering::Relaxed)
    }

    /// Whether the writer has ended.
    pub fn has_stopped(&self) -> bool {
        self.inner.has_ended.load(Ordering::SeqCst)
    }

    /// Hands a command to the writer; the answer comes after its commit. Turned away if too much waits.
    pub fn submit<C: WriterCommand>(
        &self,
        command: C,
        on_answer: impl FnOnce(Answered<C>) + Send + 'static,
    ) -> Result<(), RequestError> {
        self.check_running()?;
        let sent = self.inner.queue.try_send(Queued::boxed(command, on_answer));
        self.inner.answer_if_ended();
        sent
    }

    /// As [`Node::submit`], but waits for room instead of being turned away, and stands behind whoever is not patient:
    /// for bulk work that sets its own pace.
    pub fn submit_patiently<C: WriterCommand>(
        &self,
        command: C,
        on_answer: impl FnOnce(Answered<C>) + Send + 'static,
    ) -> Result<(), RequestError> {
        self.check_running()?;
        self.inner.send(Lane::Bulk, Queued::boxed(command, on_answer))
    }

    fn check_running(&self) -> Result<(), RequestError> {
        if self.inner.is_stopping.load(Ordering::Acquire) { Err(RequestError::Stopped) } else { Ok(()) }
    }

    /// Hands a command over and waits for its answer.
    pub fn ask<C: WriterCommand>(&self, command: C) -> Answered<C> {
        self.check_running()?;
        self.inner.ask(command)
    }

    /// Stops in order: what was handed over is finished, then the threads end.
    pub fn stop(&self) {
        self.inner.is_stopping.store(true, Ordering::Release);
        let threads = std::mem::take(&mut *locks::lock(&self.threads));
        if threads.is_empty() {
            return;
        }
        let _ = self.inner.wakes.send(HuntWake::Stop);
        let _ = self.inner.object_wakes.try_send(ObjectWake::Stop);
        let _ = self.inner.send(Lane::Prompt, Queued::boxed(Tick, |_| ()));
        self.inner.position.1.notify_all();
        for thread in threads {
            let _ = thread.join();
        }
    }
}

/// The thread of the writer.
const WRITER_THREAD: &str = "anteroom-writer";
/// How often someone who waits for room looks whether the writer still runs.
const LOOK_FOR_THE_END: Duration = Duration::from_millis(200);
/// How long the writer sleeps when nothing is asked and nothing is due.
pub(crate) const IDLE: Duration = Duration::from_secs(3600);

/// Lowers the priority of this thread below those that answer somebody: for the writer. Where the system does not allow
/// it, nothing changes.
pub fn yield_to_readers() {
    set_niceness(10);
}

/// Lowers the priority of this thread below the writer's: for bulk work such as an import, which would only fill the
/// writer's queue while the writer waits for a core.
pub fn yield_to_writer() {
    set_niceness(15);
}

fn set_niceness(niceness: i32) {
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), niceness);
}
