//! The node as it runs: a writer loop, a hunting loop, and a handle that anyone may clone.
//!
//! Requests gather while a commit is under way; the next batch takes all of them. Gather, apply, commit, publish, in
//! that order. Nothing is answered before its commit.

mod hunt_loop;
mod watchers;

use crate::clock::Clock;
use crate::fetch::answers::SourceAnswers;
use crate::fetch::hunter::SourceClient;
use crate::options::NodeOptions;
use crate::running::watchers::CommitWatchers;
use crate::writer::{WriterCore, WriterReply, WriterRequest};
use crossbeam_channel::{Receiver, SendTimeoutError, Sender, TrySendError, bounded};
use engine::fetch::RequestId;
use engine::reads::{StoreError, StoreResult};
use engine::receive::DropReason;
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
pub enum RequestError {
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
    Dropped(#[from] DropReason),
    /// The store failed, and the writer has stopped in order.
    #[error("the store failed, and the node has stopped writing: {0}")]
    Failed(String),
}

pub(crate) type ReplyCallback = Box<dyn FnOnce(Result<WriterReply, RequestError>) + Send>;

pub(crate) struct QueuedRequest {
    pub(crate) request: WriterRequest,
    pub(crate) answer: ReplyCallback,
}

/// What wakes the hunting loop.
pub(crate) enum HuntWake {
    /// A commit: there may be new needs.
    Commit,
    /// A request to a source ended.
    Ended(RequestId),
    /// The end of a hunt was written.
    Settled(Group),
    /// The node stops.
    Stop,
}

/// What the handle and the loops share.
pub(crate) struct NodeInner {
    pub(crate) core: WriterCore,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: NodeOptions,
    pub(crate) jobs: Sender<QueuedRequest>,
    pub(crate) queue: Receiver<QueuedRequest>,
    pub(crate) wakes: Sender<HuntWake>,
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
}

impl NodeInner {
    /// Hands a job over, waiting for room.
    pub(crate) fn send(&self, mut job: QueuedRequest) -> Result<(), RequestError> {
        loop {
            let sent = self.jobs.send_timeout(job, LOOK_FOR_THE_END);
            self.answer_if_ended();
            match sent {
                Ok(()) => return Ok(()),
                Err(SendTimeoutError::Timeout(back)) => job = back,
                Err(SendTimeoutError::Disconnected(_)) => return Err(RequestError::Stopped),
            }
        }
    }

    /// Once the writer has ended, whoever hands something over answers what is left, so that nobody waits for ever:
    /// either the writer's last look saw it, or this one does.
    fn answer_if_ended(&self) {
        if self.has_ended.load(Ordering::SeqCst) {
            for job in self.queue.try_iter() {
                (job.answer)(Err(RequestError::Stopped));
            }
        }
    }

    /// What a door drops is counted by reason; the count is written with whatever commits next. The log hears of the
    /// first, the second, the fourth and so on, so that a flood does not fill it.
    pub(crate) fn count_dropped<T>(&self, received: Result<T, DropReason>) -> Result<T, DropReason> {
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
    pub(crate) inner: Arc<NodeInner>,
    threads: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node({:?})", self.inner.core)
    }
}

impl Node {
    /// Starts the writer and the hunting loop over a store.
    pub fn start(store: Store, clock: Arc<dyn Clock>, source: Arc<dyn SourceClient>, options: NodeOptions) -> Node {
        let (jobs, queue) = bounded(options.queue_max);
        let (wakes, woken) = bounded(1024);
        let inner = Arc::new(NodeInner {
            core: WriterCore::new(store),
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
            watchers: CommitWatchers::default(),
            timers: CommitWatchers::default(),
            source: source.clone(),
            answers: SourceAnswers::default(),
        });
        // What a crash left between a file and its row is cleared away first.
        let _ = inner.jobs.try_send(QueuedRequest { request: WriterRequest::Collect, answer: Box::new(|_| ()) });
        let (writer, hunter) = (inner.clone(), inner.clone());
        let threads = vec![
            std::thread::spawn(move || {
                write_loop(&writer, &queue);
                writer.has_ended.store(true, Ordering::SeqCst);
                writer.answer_if_ended();
            }),
            std::thread::spawn(move || hunt_loop::hunt_loop(&hunter, &source, &woken)),
        ];
        Node { inner, threads: Arc::new(Mutex::new(threads)) }
    }

    /// The store, for reading.
    pub fn store(&self) -> &Store {
        self.inner.core.store()
    }

    /// A snapshot of now.
    pub fn snapshot(&self) -> StoreResult<Arc<Db<Snapshot>>> {
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
        request: WriterRequest,
        answer: impl FnOnce(Result<WriterReply, RequestError>) + Send + 'static,
    ) -> Result<(), RequestError> {
        self.check_running()?;
        let sent = self.inner.jobs.try_send(QueuedRequest { request, answer: Box::new(answer) });
        self.inner.answer_if_ended();
        match sent {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err(RequestError::Busy),
            Err(TrySendError::Disconnected(_)) => Err(RequestError::Stopped),
        }
    }

    /// As [`Node::submit`], but waits for room instead of being turned away: for bulk work that sets its own pace.
    pub fn submit_patiently(
        &self,
        request: WriterRequest,
        answer: impl FnOnce(Result<WriterReply, RequestError>) + Send + 'static,
    ) -> Result<(), RequestError> {
        self.check_running()?;
        self.inner.send(QueuedRequest { request, answer: Box::new(answer) })
    }

    fn check_running(&self) -> Result<(), RequestError> {
        if self.inner.is_stopping.load(Ordering::Acquire) { Err(RequestError::Stopped) } else { Ok(()) }
    }

    /// Hands a request over and waits for its answer.
    pub fn ask(&self, request: WriterRequest) -> Result<WriterReply, RequestError> {
        let (sender, receiver) = bounded(1);
        self.submit_patiently(request, move |answer| {
            let _ = sender.send(answer);
        })?;
        receiver.recv().map_err(|_| RequestError::Stopped)?
    }

    /// Stops in order: what was handed over is finished, then the threads end.
    pub fn stop(&self) {
        self.inner.is_stopping.store(true, Ordering::Release);
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        if threads.is_empty() {
            return;
        }
        let _ = self.inner.wakes.send(HuntWake::Stop);
        let _ = self.inner.send(QueuedRequest { request: WriterRequest::Tick, answer: Box::new(|_| ()) });
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

fn write_loop(inner: &NodeInner, queue: &Receiver<QueuedRequest>) {
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
fn sleep_of(inner: &NodeInner) -> Duration {
    if inner.is_full.load(Ordering::Relaxed) {
        return WAIT_FOR_ROOM;
    }
    let next = inner.core.store().snapshot().and_then(|db| db.next_by_clock());
    match next {
        Ok(Some(at)) => Duration::from_nanos(at.0.saturating_sub(inner.clock.now().0)).min(IDLE),
        Ok(None) | Err(_) => IDLE,
    }
}

fn write_batch(inner: &NodeInner, jobs: Vec<QueuedRequest>) -> Result<bool, ()> {
    let (requests, answers): (Vec<WriterRequest>, Vec<ReplyCallback>) =
        jobs.into_iter().map(|job| (job.request, job.answer)).unzip();
    let mut requests = requests;
    if let Err(fault) = check_room(inner) {
        return after_fault(inner, &fault, answers);
    }
    let dropped = std::mem::take(&mut *inner.dropped.lock().unwrap_or_else(PoisonError::into_inner));
    requests.extend(dropped.into_iter().map(|(word, times)| WriterRequest::Dropped(word, times)));
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
fn check_room(inner: &NodeInner) -> StoreResult<()> {
    let store = inner.core.store();
    let free = store.disk().free_bytes().unwrap_or(u64::MAX);
    if free < store.options().reserve_bytes {
        return Err(StoreError::Full);
    }
    if inner.needs_reopening.load(Ordering::Relaxed) {
        if let Err(why) = store.reopen() {
            tracing::warn!(%why, "the database cannot be opened again yet");
            return Err(StoreError::Full);
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
fn after_fault(inner: &NodeInner, fault: &StoreError, answers: Vec<ReplyCallback>) -> Result<bool, ()> {
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
    for answer in answers {
        answer(Err(not_done.clone()));
    }
    verdict
}

fn publish(inner: &NodeInner, position: u64) {
    inner.commits.fetch_add(1, Ordering::Relaxed);
    let (lock, condition) = &inner.position;
    *lock.lock().unwrap_or_else(PoisonError::into_inner) = position;
    condition.notify_all();
    inner.watchers.tell(position);
    let _ = inner.wakes.try_send(HuntWake::Commit);
}

/// Lets this thread go behind those that answer somebody: the writer, and bulk work such as an import. Where the system does not
/// allow it, nothing changes.
pub fn yield_to_readers() {
    const PATIENCE: i32 = 10;
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), PATIENCE);
}
