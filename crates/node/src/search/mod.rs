//! Search: a loop that keeps an index per space up with the journal, and a handle to ask them.
//!
//! The indexes are derived and behind by at most a moment; the journal position in each says by how much. Access is not
//! decided here: hits are numbers, and whoever shows them looks again at what they are and who asks.

mod document;
mod follower;
#[cfg(test)]
mod tests;

use crate::locks;
use crate::running::{Node, yield_to_readers};
use crate::threads;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use engine::reads::{Reads as _, StoreError, StoreResult};
use follower::IndexFollower;
use model::{Nanos, SpaceId, SpaceNo};
use search::{Hit, Index, IndexError, IndexQuery};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the loop looks whether the node still runs.
const LOOK_FOR_THE_END: Duration = Duration::from_secs(1);

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The index of that space is being made.
    #[error("the search index is being made; ask again in a moment")]
    NotReady,
    /// The question is bad, or the index is.
    #[error(transparent)]
    Search(#[from] IndexError),
}

/// What wakes the loop.
enum Wake {
    /// A commit: there may be new entries in the journal.
    Commit,
    Stop,
}

/// The indexes that can be asked.
#[derive(Debug, Default)]
struct Ready {
    /// Whether every space was looked at since the start.
    is_complete: bool,
    indexes: BTreeMap<SpaceNo, Arc<Index>>,
    /// Indexes that failed while they were asked: the loop makes them anew.
    failed: BTreeSet<SpaceNo>,
}

struct Shared {
    node: Node,
    follower: Mutex<IndexFollower>,
    ready: RwLock<Ready>,
}

/// Search over everything that a node shows.
pub struct SearchService {
    shared: Arc<Shared>,
    wakes: Sender<Wake>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for SearchService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Searching")
    }
}

impl SearchService {
    /// Keeps indexes in that folder up with a node, on a thread of its own.
    pub fn start(node: &Node, folder: PathBuf) -> Arc<SearchService> {
        let (searching, woken) = SearchService::prepare(node, folder);
        let shared = searching.shared.clone();
        match threads::spawn("anteroom-search", move || follow_loop(&shared, &woken)) {
            Ok(thread) => *locks::lock(&searching.thread) = Some(thread),
            Err(why) => tracing::error!(%why, "search cannot follow the journal: the system gives it no thread"),
        }
        searching
    }

    fn prepare(node: &Node, folder: PathBuf) -> (Arc<SearchService>, Receiver<Wake>) {
        // One wake is enough: whoever looks sees everything that was committed before.
        let (wakes, woken) = bounded(1);
        let waker = wakes.clone();
        node.on_commit(move |_| {
            let _ = waker.try_send(Wake::Commit);
        });
        let follower = Mutex::new(IndexFollower::new(folder));
        let shared = Arc::new(Shared { node: node.clone(), follower, ready: RwLock::default() });
        (Arc::new(SearchService { shared, wakes, thread: Mutex::default() }), woken)
    }

    /// Reads the journal to its end and commits what came of it, before this returns.
    pub fn catch_up(&self) -> StoreResult<()> {
        self.shared.with_follower(IndexFollower::commit_all)
    }

    /// The messages of a space that fit best, after the first so many. This reads files: not for a thread that must
    /// not wait.
    pub fn search(
        &self,
        space: SpaceNo,
        query: &IndexQuery,
        most: usize,
        skip: usize,
    ) -> Result<Vec<Hit>, SearchError> {
        let index = {
            let ready = locks::read(&self.shared.ready);
            match ready.indexes.get(&space) {
                Some(index) => index.clone(),
                // A space in which nothing was ever said; the question may still be a bad one.
                None if ready.is_complete => return Ok(search::check(query).map(|()| Vec::new())?),
                None => return Err(SearchError::NotReady),
            }
        };
        index.search(query, most, skip).map_err(|why| {
            if let IndexError::Damaged(what) = &why {
                tracing::error!(what, "a search index failed while it was asked");
                locks::write(&self.shared.ready).failed.insert(space);
                let _ = self.wakes.try_send(Wake::Commit);
            }
            why.into()
        })
    }

    /// Makes the index of a space anew from what can still be read of it: nothing, where its keys were destroyed.
    pub fn forget(&self, space: &SpaceId) {
        let Ok(Some(no)) = self.shared.node.snapshot().and_then(|db| db.space_no(space)) else { return };
        locks::write(&self.shared.ready).failed.insert(no);
        let _ = self.wakes.try_send(Wake::Commit);
    }

    /// Ends the loop.
    pub fn stop(&self) {
        let _ = self.wakes.send(Wake::Stop);
        if let Some(thread) = locks::lock(&self.thread).take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Follows the journal to its end, does the rest of the work, and publishes which indexes can be asked.
    fn with_follower<T>(&self, and_then: impl FnOnce(&mut IndexFollower, Nanos) -> T) -> StoreResult<T> {
        let now = self.node.now();
        let mut follower = self.follower();
        for space in std::mem::take(&mut locks::write(&self.ready).failed) {
            follower.give_up(space);
        }
        let db = self.node.snapshot()?;
        let followed = follower.follow(self.node.store(), &db, now);
        let done = and_then(&mut follower, now);
        let mut ready = locks::write(&self.ready);
        (ready.indexes, ready.is_complete) = (follower.indexes(), follower.is_complete());
        followed.map(|()| done)
    }

    fn follower(&self) -> MutexGuard<'_, IndexFollower> {
        locks::lock(&self.follower)
    }
}

fn follow_loop(shared: &Shared, woken: &Receiver<Wake>) {
    yield_to_readers();
    loop {
        let wake_at = shared.with_follower(IndexFollower::tend).unwrap_or_else(|fault: StoreError| {
            tracing::error!(%fault, "search cannot follow the journal");
            None
        });
        let sleep = wake_at.map_or(LOOK_FOR_THE_END, |at| {
            Duration::from_nanos(at.0.saturating_sub(shared.node.now().0)).min(LOOK_FOR_THE_END)
        });
        match woken.recv_timeout(sleep) {
            Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            Ok(Wake::Commit) | Err(RecvTimeoutError::Timeout) if shared.node.has_stopped() => return,
            Ok(Wake::Commit) | Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
