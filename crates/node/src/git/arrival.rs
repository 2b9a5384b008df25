//! What the arrival of git data came to: told in the log, and counted.

use crate::nostr::ReleasedEvents;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the arrival of git data came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ArrivedData {
    /// Events that were woken, by what they are.
    pub released: ReleasedEvents,
    /// Repositories whose refs were looked at.
    pub repositories_synced: usize,
    pub refs_created: usize,
    pub refs_updated: usize,
    pub refs_deleted: usize,
    pub errors: Vec<String>,
}

impl ArrivedData {
    pub(super) fn add(&mut self, released: &ReleasedEvents) {
        self.released.announcements += released.announcements;
        self.released.states += released.states;
        self.released.pull_requests += released.pull_requests;
        self.released.others += released.others;
    }

    pub(super) fn add_refs(&mut self, changed: &ArrivedData) {
        self.refs_created += changed.refs_created;
        self.refs_updated += changed.refs_updated;
        self.refs_deleted += changed.refs_deleted;
    }

    pub(super) fn log(&self) {
        let released = &self.released;
        tracing::info!(
            announcements = released.announcements,
            states = released.states,
            pull_requests = released.pull_requests,
            others = released.others,
            repositories = self.repositories_synced,
            created = self.refs_created,
            updated = self.refs_updated,
            deleted = self.refs_deleted,
            errors = self.errors.len(),
            "git data arrived"
        );
    }
}

/// What all arrivals of git data have come to since the start, for whoever watches the node.
#[derive(Debug, Default)]
pub struct ArrivalCounts {
    pub announcements: AtomicU64,
    pub states: AtomicU64,
    pub pull_requests: AtomicU64,
    pub others: AtomicU64,
    pub repositories_synced: AtomicU64,
    pub refs_created: AtomicU64,
    pub refs_updated: AtomicU64,
    pub refs_deleted: AtomicU64,
    pub errors: AtomicU64,
}

impl ArrivalCounts {
    pub(super) fn add(&self, arrived: &ArrivedData) {
        for (total, count) in [
            (&self.announcements, arrived.released.announcements),
            (&self.states, arrived.released.states),
            (&self.pull_requests, arrived.released.pull_requests),
            (&self.others, arrived.released.others),
            (&self.repositories_synced, arrived.repositories_synced),
            (&self.refs_created, arrived.refs_created),
            (&self.refs_updated, arrived.refs_updated),
            (&self.refs_deleted, arrived.refs_deleted),
            (&self.errors, arrived.errors.len()),
        ] {
            total.fetch_add(count as u64, Ordering::Relaxed);
        }
    }
}
