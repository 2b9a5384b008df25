//! Watching a node: callbacks after commits, how much waits for the writer, and what sources answered.

use crate::fetch::answers::AskedSource;
use crate::locks;
use crate::running::{HuntWake, Node};
use model::Group;
use std::sync::RwLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

type Watcher = Box<dyn Fn(u64) + Send + Sync>;

/// Callbacks that get a number after every commit.
#[derive(Default)]
pub(crate) struct CommitWatchers(RwLock<Vec<Watcher>>);

impl CommitWatchers {
    fn add(&self, watcher: impl Fn(u64) + Send + Sync + 'static) {
        locks::write(&self.0).push(Box::new(watcher));
    }

    pub(crate) fn notify(&self, number: u64) {
        locks::read(&self.0).iter().for_each(|watcher| watcher(number));
    }
}

impl Node {
    /// Calls this after every commit, on the writer's thread, with the latest journal number: it must not wait.
    pub fn on_commit(&self, watcher: impl Fn(u64) + Send + Sync + 'static) {
        self.inner.watchers.add(watcher);
    }

    /// Calls this after every commit, on the writer's thread, with the nanoseconds it took: it must not wait.
    pub fn on_timed_commit(&self, timer: impl Fn(u64) + Send + Sync + 'static) {
        self.inner.timers.add(timer);
    }

    /// How many requests wait for the writer.
    pub fn queue_depth(&self) -> usize {
        self.inner.queue.len()
    }

    /// Waits until something was committed after that journal number, or so long. Says the latest number.
    pub fn wait_after(&self, number: u64, at_most: Duration) -> u64 {
        let (lock, condition) = &self.inner.position;
        let waited = condition.wait_timeout_while(locks::lock(lock), at_most, |latest| *latest <= number);
        *locks::after_wait(waited).0
    }
}

impl Node {
    /// Says that there may be somebody now who can be asked for what nobody could be asked for before.
    pub fn sources_changed(&self) {
        self.inner.sources_changed.store(true, Ordering::Release);
        let _ = self.inner.wakes.try_send(HuntWake::Commit);
    }

    /// Who was asked for the needs of a group since the start, with their latest answers.
    pub fn asked(&self, group: &Group) -> Vec<AskedSource> {
        self.inner.answers.of(group)
    }
}
