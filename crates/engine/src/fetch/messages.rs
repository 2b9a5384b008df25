//! What the hunts read, what they hear and what they answer.

use super::Nanoseconds;
use super::schedule::HuntMark;
use std::fmt::{self, Display};

/// What the hunts read: the needs and sources of each group, as they are now.
pub trait FetchReads<G> {
    /// Whether the group has unmet needs right now.
    fn pending(&self, group: &G) -> bool;

    /// Where the group's needs may be fetched, in order of preference, our own address left out.
    fn sources(&self, group: &G) -> Vec<Source>;
}

/// Somewhere a need may be fetched from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// What is asked. A URL belongs to one domain.
    pub url: String,
    /// The host name or peer id whose limits apply.
    pub domain: String,
}

/// The name of one request, never given twice by the same session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u64);

impl RequestId {
    pub(super) fn new(number: u64) -> Self {
        RequestId(number)
    }
}

impl Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ticket:{}", self.0)
    }
}

/// What the session hears. Every input also tells the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HuntInput<G> {
    /// The schedule row of this group is due.
    Due {
        /// The group to hunt.
        group: G,
        /// What its row says, to be compared when the hunt has ended.
        mark: HuntMark,
    },
    /// A request has ended, whatever the result; its bytes were already delivered.
    Ended {
        /// The request.
        ticket: RequestId,
    },
    /// Time has passed, and a window may have freed a slot.
    Tick,
}

/// What the session wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HuntOutput<G> {
    /// Perform this request, deliver what it brings, and then let the session hear of its end.
    Start {
        /// The name under which its end is told.
        ticket: RequestId,
        /// The group whose unmet needs are asked for, all together.
        group: G,
        /// Where to ask.
        url: String,
        /// The domain that is asked.
        domain: String,
    },
    /// The group's hunt is over: move its row on with [`on_hunt_ended`](super::schedule::on_hunt_ended).
    HuntEnded {
        /// The group.
        group: G,
        /// What its row said when the hunt began.
        mark: HuntMark,
        /// When the hunt began.
        started_at: Nanoseconds,
    },
}

/// A request in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchRequest<G> {
    /// The group it asks for.
    pub group: G,
    /// Where it asks.
    pub source: Source,
    /// Who goes on when it has ended.
    pub asker: Requester,
}

/// Who makes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requester {
    /// The group's hunt.
    Hunt,
    /// The queue of the domain.
    Queue,
}
