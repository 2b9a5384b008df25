//! Live events: what the journal says, to whoever subscribes.
//!
//! The journal is read once for everybody: each entry is rendered once, and handed to the topics that somebody
//! subscribes to: a space, or a thread. A subscription first catches up from the journal to the snapshot it was opened
//! on, then goes on with what its topic brings after that: no gap, no repeat. Whoever loses the right to read receives
//! nothing more. A reader that falls behind is cut off, and resumes from the journal when it comes back.

mod feed;
mod hub;
mod subscription;

pub use feed::{end_streams_of_ended_keys, joined_entries, live_event, publish_journal};
pub use hub::{ChangedRights, LiveBatch, LiveEvent, LiveHub, Topic};
pub use subscription::{Recheck, ResumeAfter, StreamItem, Subscription, SubscriptionFilter};
