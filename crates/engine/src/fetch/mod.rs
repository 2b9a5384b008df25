//! The fetcher's decisions: when a group is hunted, where it is asked for, and how politely.
//!
//! The story in the order it happens. An event turns out to need something that is not here. The need belongs to a
//! group, and [`schedule`] gives the group a row that says when it is hunted; a short wait lets a burst of needs become
//! one hunt. When the row is due, [`hunts`] begins a hunt: it asks the group's sources one after the other, those first
//! whose [`domain`] is free. Whatever a request brings is delivered before its end is heard, so a need that was met on
//! the way is not asked for again. When only busy domains are left, the hunt puts the group into their queues and ends;
//! the queues go on by themselves, a slot at a time. The end of the hunt comes back to [`schedule`], which takes the
//! group off the list or lets it rest for as long as [`mod@backoff`] says.
//!
//! What is deliberately absent: sockets, tasks, the clock, chance and the database. Times and jitter are arguments,
//! needs and sources are read through the trait [`FetchReads`], requests are answers. The same types therefore run under the
//! node's loop, in a unit test and in the simulator, whose checks of them live in `driver`.

pub mod backoff;
pub mod domain;
#[cfg(any(test, feature = "simulation"))]
pub mod driver;
pub mod hunts;
pub mod messages;
pub mod schedule;
#[cfg(test)]
mod tests;

pub use backoff::{BackoffPolicy, HuntDelays, NeedOrigin, backoff, first_delay, shortened};
pub use domain::{Capacity, Domain, DomainLimits};
pub use hunts::{Hunts, SOURCES_PER_GROUP_MAX};
pub use messages::{FetchReads, FetchRequest, HuntInput, HuntOutput, RequestId, Requester, Source};
pub use schedule::{HuntMark, NEVER, ScheduleRow, on_hunt_ended, on_new_need, on_no_source, on_retry, on_source};

/// A moment or a length of time, in nanoseconds.
pub type Nanoseconds = u64;

const MILLISECOND: Nanoseconds = 1_000_000;
const SECOND: Nanoseconds = 1_000 * MILLISECOND;
const MINUTE: Nanoseconds = 60 * SECOND;
const HOUR: Nanoseconds = 60 * MINUTE;
