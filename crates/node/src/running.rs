//! The node as it runs: a writer loop, a hunting loop, and a handle that anyone may clone.
//!
//! Requests gather while a commit is under way; the next batch takes all of them. Gather, apply, commit, publish, in
//! that order. Nothing is answered before its commit.

use crate::answers::Answers;
use crate::clock::Clock;
use crate::core::{Core, Reply, Request};
use crate::hunter::Source;
use crate::hunting;
use crate::options::NodeOptions;
use crate::watching::Watchers;
use crossbeam_channel::{Receiver, SendTimeoutError, Sender, TrySendError, bounded};
use engine::fetch::Ticket;
use engine::reads::{Answer, Fault};
use engine::receive::Dropped;
use model::{Group, Nanos};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use store::tables::Snapshot;
use store::{Db, Store};

/// Why a request was not carried out. Nothing of it happened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotDone {
    /// Too much waits already.
    #[error("the node has too much to do right now; try again in a moment")]
    Busy,
    /// The disk is full; the node goes on reading.
    #[error("the disk is full, so the node only reads; free some space and try again")]
    Full,
    /// The node has stopped, or is stopping.
    #[error("the node has stopped")]
    Stopped,
    /// It was dropped at the door.
    #[error(transparent)]
    Dropped(#[from] Dropped),
    /// The store failed, and the writer has stopped in order.
    #[error("the store failed, and the node has stopped writing: {0}")]
    Failed(String),
}

pub(crate) type Answerer = Box<dyn FnOnce(Result<Reply, NotDone>) + Send>;

pub(crate) struct Job {
    pub(crate) request: Request,
    pub(crate) answer: Answerer,
}

/// What wakes the hunting loop.
pub(crate) enum Wake {
    /// A commit: there may be new needs.
    Commit,
    /// A request to a source ended.
    Ended(Ticket),
    /// The end of a hunt was written.
    Settled(Group),
    /// The node stops.
    Stop,
}

/// What the handle and the loops share.
pub(crate) struct Inner {
    pub(crate) core: Core,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: NodeOptions,
    pub(crate) jobs: Sender<Job>,
    pub(crate) queue: Receiver<Job>,
    pub(crate) wakes: Sender<Wake>,
    pub(crate) is_stopping: AtomicBool,
    pub(crate) has_ended: AtomicBool,
    pub(crate) needs_reopening: AtomicBool,
    pub(crate) is_full: AtomicBool,
    pub(crate) commits: AtomicU64,
    pub(crate) dropped: Mutex<BTreeMap<&'static str, u64>>,
    pub(crate) position: (Mutex<u64>, Condvar),
    pub(crate) watchers: Watchers,
    pub(crate) timers: Watchers,
    pub(crate) source: Arc<dyn Source>,
    pub(crate) answers: Answers,
}

impl Inner {
    /// Hands a job over, waiting for room.
    pub(crate) fn send(&self, mut job: Job) -> Result<(), NotDone> {
        loop {
            let sent = self.jobs.send_timeout(job, LOOK_FOR_THE_END);
            self.answer_if_ended();
            match sent {
                Ok(()) => return Ok(()),
                Err(SendTimeoutError::Timeout(back)) => job = back,
                Err(SendTimeoutError::Disconnected(_)) => return Err(NotDone::Stopped),
            }
        }
    }

    /// Once the writer has ended, whoever hands something over answers what is left, so that nobody waits for ever:
    /// either the writer's last look saw it, or this one does.
    fn answer_if_ended(&self) {
        if self.has_ended.load(Ordering::SeqCst) {
            for job in self.queue.try_iter() {
                (job.answer)(Err(NotDone::Stopped));
            }
        }
    }

    /// What a door drops is counted by reason; the count is written with whatever commits next. The log hears of the
    /// first, the second, the fourth and so on, so that a flood does not fill it.
    pub(crate) fn count_dropped<T>(&self, received: Result<T, Dropped>) -> Result<T, Dropped> {
        if let Err(why) = &received {
            let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
            let count = dropped.entry(why.word()).or_default();
            *count += 1;
            if count.is_power_of_two() {
                tracing::debug!(reason = why.word(), count, %why, "dropped at the door");
            }
        }
        received
    }
}

/// A handle to a running node.
#[derive(Clone)]
pub struct Node {
    pub(crate) inner: Arc<Inner>,
    threads: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node({:?})", self.inner.core)
    }
}

impl Node {
    /// Starts the writer and the hunting loop over a store.
    pub fn start(store: Store, clock: Arc<dyn Clock>, source: Arc<dyn Source>, options: NodeOptions) -> Node {
        let (jobs, queue) = bounded(options.queue_max);
        let (wakes, woken) = bounded(1024);
        let inner = Arc::new(Inner {
            core: Core::new(store),
            clock,
            options,
            jobs,
            queue: queue.clone(),
            wakes,
            is_stopping: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            needs_reopening: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            commits: AtomicU64::new(0),
            dropped: Mutex::default(),
            position: (Mutex::new(0), Condvar::new()),
            watchers: Watchers::default(),
            timers: Watchers::default(),
            source: source.clone(),
            answers: Answers::default(),
        });
        // What a crash left between a file and its row is cleared away first.
        let _ = inner.jobs.try_send(Job { request: Request::Collect, answer: Box::new(|_| ()) });
        let (writer, hunter) = (inner.clone(), inner.clone());
        let threads = vec![
            std::thread::spawn(move || {
                write_loop(&writer, &queue);
                writer.has_ended.store(true, Ordering::SeqCst);
                writer.answer_if_ended();
            }),
            std::thread::spawn(move || hunting::hunt_loop(&hunter, &source, &woken)),
        ];
        Node { inner, threads: Arc::new(Mutex::new(threads)) }
    }

    /// The store, for reading.
    pub fn store(&self) -> &Store {
        self.inner.core.store()
    }

    /// A snapshot of now.
    pub fn snapshot(&self) -> Answer<Arc<Db<Snapshot>>> {
        self.store().snapshot()
    }

    /// The time.
    pub fn now(&self) -> Nanos {
        self.inner.clock.now()
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

    /// Hands a request to the writer; the answer comes after its commit. Turned away if too much waits.
    pub fn submit(
        &self,
        request: Request,
        answer: impl FnOnce(Result<Reply, NotDone>) + Send + 'static,
    ) -> Result<(), NotDone> {
        self.check_running()?;
        let sent = self.inner.jobs.try_send(Job { request, answer: Box::new(answer) });
        self.inner.answer_if_ended();
        match sent {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err(NotDone::Busy),
            Err(TrySendError::Disconnected(_)) => Err(NotDone::Stopped),
        }
    }

    /// As [`Node::submit`], but waits for room instead of being turned away: for bulk work that sets its own pace.
    pub fn submit_patiently(
        &self,
        request: Request,
        answer: impl FnOnce(Result<Reply, NotDone>) + Send + 'static,
    ) -> Result<(), NotDone> {
        self.check_running()?;
        self.inner.send(Job { request, answer: Box::new(answer) })
    }

    fn check_running(&self) -> Result<(), NotDone> {
        if self.inner.is_stopping.load(Ordering::Acquire) { Err(NotDone::Stopped) } else { Ok(()) }
    }

    /// Hands a request over and waits for its answer.
    pub fn ask(&self, request: Request) -> Result<Reply, NotDone> {
        let (sender, receiver) = bounded(1);
        self.submit_patiently(request, move |answer| {
            let _ = sender.send(answer);
        })?;
        receiver.recv().map_err(|_| NotDone::Stopped)?
    }

    /// Stops in order: what was handed over is finished, then the threads end.
    pub fn stop(&self) {
        self.inner.is_stopping.store(true, Ordering::Release);
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        if threads.is_empty() {
            return;
        }
        let _ = self.inner.wakes.send(Wake::Stop);
        let _ = self.inner.send(Job { request: Request::Tick, answer: Box::new(|_| ()) });
        for thread in threads {
            let _ = thread.join();
        }
    }
}

/// How often a full disk is looked at again.
const WAIT_FOR_ROOM: Duration = Duration::from_secs(1);
/// How often someone who waits for room looks whether the writer still runs.
const LOOK_FOR_THE_END: Duration = Duration::from_millis(200);
/// How long the writer sleeps when nothing is asked and nothing is due.
pub(crate) const IDLE: Duration = Duration::from_secs(3600);

fn write_loop(inner: &Inner, queue: &Receiver<Job>) {
    // Readers never wait for the writer, not even for a core: under load their time slices come first.
    yield_to_readers();
    let mut has_more = true;
    loop {
        let mut jobs = Vec::new();
        if !has_more || inner.is_full.load(Ordering::Relaxed) {
            match queue.recv_timeout(sleep_of(inner)) {
                Ok(job) => jobs.push(job),
                Err(crossbeam_channel::RecvTimeoutError::Timeout) => {}
                Err(crossbeam_channel::RecvTimeoutError::Disconnected) => return,
            }
        }
        jobs.extend(queue.try_iter().take(inner.options.batch_max.saturating_sub(jobs.len())));
        match write_batch(inner, jobs) {
            Ok(more) => has_more = more,
            Err(()) => return,
        }
        if inner.is_stopping.load(Ordering::Acquire) && queue.is_empty() {
            return;
        }
    }
}

/// Until the clock alone makes something happen.
fn sleep_of(inner: &Inner) -> Duration {
    if inner.is_full.load(Ordering::Relaxed) {
        return WAIT_FOR_ROOM;
    }
    let next = inner.core.store().snapshot().and_then(|db| db.next_by_clock());
    match next {
        Ok(Some(at)) => Duration::from_nanos(at.0.saturating_sub(inner.clock.now().0)).min(IDLE),
        Ok(None) | Err(_) => IDLE,
    }
}

fn write_batch(inner: &Inner, jobs: Vec<Job>) -> Result<bool, ()> {
    let (requests, answers): (Vec<Request>, Vec<Answerer>) =
        jobs.into_iter().map(|job| (job.request, job.answer)).unzip();
    let mut requests = requests;
    if let Err(fault) = check_room(inner) {
        return after_fault(inner, &fault, answers);
    }
    let dropped = std::mem::take(&mut *inner.dropped.lock().unwrap_or_else(PoisonError::into_inner));
    requests.extend(dropped.into_iter().map(|(word, times)| Request::Dropped(word, times)));
    let began = inner.clock.now();
    match inner.core.run(requests, began) {
        Ok(done) => {
            inner.timers.tell(inner.clock.now().0.saturating_sub(began.0));
            publish(inner, done.position);
            for (answer, reply) in answers.into_iter().zip(done.replies) {
                answer(Ok(reply));
            }
            Ok(done.has_more)
        }
        Err(fault) => {
            // A write that failed half way leaves the database unusable until it is opened again.
            inner.needs_reopening.store(true, Ordering::Relaxed);
            after_fault(inner, &fault, answers)
        }
    }
}

/// A full disk is noticed before the database hits it; room is noticed the same way.
fn check_room(inner: &Inner) -> Answer<()> {
    let store = inner.core.store();
    let free = store.disk().free_bytes().unwrap_or(u64::MAX);
    if free < store.options().reserve_bytes {
        return Err(Fault::Full);
    }
    if inner.needs_reopening.load(Ordering::Relaxed) {
        if let Err(why) = store.reopen() {
            tracing::warn!(%why, "the database cannot be opened again yet");
            return Err(Fault::Full);
        }
        inner.needs_reopening.store(false, Ordering::Relaxed);
    }
    if inner.is_full.swap(false, Ordering::Relaxed) {
        tracing::info!("there is room again; the node writes");
    }
    Ok(())
}

/// A full disk means reading only, and trying again with the next request. Any other fault stops the writer in order:
/// nothing is acknowledged afterwards.
fn after_fault(inner: &Inner, fault: &Fault, answers: Vec<Answerer>) -> Result<bool, ()> {
    let (not_done, verdict) = match fault {
        Fault::Full => {
            if !inner.is_full.swap(true, Ordering::Relaxed) {
                tracing::warn!("the disk is full; the node only reads until there is room");
            }
            (NotDone::Full, Ok(true))
        }
        Fault::Store(what) | Fault::Broken(what) => {
            tracing::error!(what, "the store failed; the writer stops");
            inner.is_stopping.store(true, Ordering::Release);
            let _ = inner.wakes.try_send(Wake::Stop);
            (NotDone::Failed(what.clone()), Err(()))
        }
    };
    for answer in answers {
        answer(Err(not_done.clone()));
    }
    verdict
}

fn publish(inner: &Inner, position: u64) {
    inner.commits.fetch_add(1, Ordering::Relaxed);
    let (lock, condition) = &inner.position;
    *lock.lock().unwrap_or_else(PoisonError::into_inner) = position;
    condition.notify_all();
    inner.watchers.tell(position);
    let _ = inner.wakes.try_send(Wake::Commit);
}

/// Lets this thread go behind those that answer somebody: the writer, and bulk work such as an import. Where the system does not
/// allow it, nothing changes.
pub fn yield_to_readers() {
    const PATIENCE: i32 = 10;
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), PATIENCE);
}
