//! Rows and tasks of the `nostr` protocol.

use super::Task;
use model::crypto::event_id;
use model::need::Oid;
use model::nostr::{Address, AddressName, NostrId};
use model::{AuthorNo, EventId, Nanos, NostrKey, SpaceNo, Stamp};

/// What a delete names: an event, an address, or everything of its author.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DeleteTarget(pub [u8; 16]);

impl DeleteTarget {
    /// Everything of the author.
    pub const EVERYTHING: DeleteTarget = DeleteTarget(*b"everything of me");

    /// An event by its id.
    pub fn event(id: EventId) -> DeleteTarget {
        DeleteTarget(id.0)
    }

    /// Whatever stands at an address.
    pub fn address(address: &Address) -> DeleteTarget {
        DeleteTarget(event_id(address.to_string().as_bytes()).0)
    }
}

/// Events of an author that have to be looked at again because a delete came.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NostrTask {
    /// One event.
    Event { author: AuthorNo, id: EventId },
    /// Those at an address, after a place.
    Address { kind: u16, name: AddressName, author: AuthorNo, after: Stamp },
    /// All of them, after a stamp.
    Author { space: SpaceNo, author: AuthorNo, after: Stamp },
}

impl NostrTask {
    /// The rest of the task, after what was looked at.
    pub fn after(self, last: Stamp) -> Option<NostrTask> {
        match self {
            NostrTask::Event { .. } => None,
            NostrTask::Address { kind, name, author, .. } => {
                Some(NostrTask::Address { kind, name, author, after: last })
            }
            NostrTask::Author { space, author, .. } => Some(NostrTask::Author { space, author, after: last }),
        }
    }
}

impl From<NostrTask> for Task {
    fn from(task: NostrTask) -> Task {
        Task::Nostr(task)
    }
}

/// Refs of a repository that may have to change: its branches, tags and `HEAD`, or the ref of one pull request.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Alignment {
    pub owner: NostrKey,
    pub identifier: String,
    pub pull_request: Option<NostrId>,
}

/// A commit that was pushed for a pull request before its event came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PushedCommit {
    pub owner: NostrKey,
    pub identifier: String,
    pub pull_request: NostrId,
    pub oid: Oid,
    /// When it goes, if the event has not come.
    pub until: Nanos,
}

/// The word for a kind of the `nostr` protocol.
pub(super) fn kind_word(kind: u16) -> &'static str {
    match kind {
        0 => "nostr-profile",
        5 => "nostr-deletion",
        1111 => "nostr-comment",
        1617 => "git-patch",
        1618 => "git-pull-request",
        1619 => "git-pull-request-update",
        1621 => "git-issue",
        1630..=1633 => "git-status",
        30_617 => "git-announcement",
        30_618 => "git-state",
        _ => "nostr",
    }
}
