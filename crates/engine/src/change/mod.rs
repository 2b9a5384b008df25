//! What a step answers with: changes, which the one writer applies in one transaction.

mod nostr;
#[cfg(feature = "simulation")]
mod probe;
mod space;

pub use nostr::NostrChange;
#[cfg(feature = "simulation")]
pub use probe::ProbeChange;
pub use space::SpaceChange;

use crate::fetch;
use crate::rows::{EventRow, JournalKind, Owner, Task};
use model::files::WantedBytes;
use model::stage::{ContentState, RefusalReason};
use model::{AuthorNo, ContentHash, EventId, Group, Nanos, Need, Seq, SpaceId, SpaceNo, Stamp};

/// Whether a row comes or goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowChange {
    /// It is written.
    Put,
    /// It is removed.
    Remove,
}

/// One change of what is kept.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// The row of an event is as given; its blob stays.
    Row(Seq, Box<EventRow>),
    /// The inline bytes of an event come, or go.
    Inline(Seq, Option<Vec<u8>>),
    /// Nothing of an event is kept: its row, blob and id go.
    Forget(Seq, EventId),
    /// A refused id is remembered.
    Refused(EventId, RefusalReason),
    /// An expired id is remembered for sync to skip, bounded.
    Expired(EventId, Nanos),
    /// An event of a space waits for a need, or does not any more.
    Waiting(RowChange, Need, Seq, Option<SpaceId>),
    /// An event is among the held of an owner, until a deadline, or is not any more.
    Held(RowChange, Owner, Seq, Nanos),
    /// An event is ready for POST, or not any more.
    Ready(RowChange, Seq),
    /// An event is left alone because a step broke an invariant on it, with why; or it is not any more.
    Parked(RowChange, Seq, String),
    /// An event is carried for others, or not any more.
    Carried(RowChange, SpaceId, Seq),
    /// An applied event waits for its content, or does not any more.
    ContentWaiting(RowChange, SpaceNo, ContentHash, Seq),
    /// A reference to content is taken; its length is said.
    Take(SpaceNo, ContentHash, u64),
    /// A reference to content is given back.
    GiveBack(SpaceNo, ContentHash),
    /// What the content of a file event says of its bytes is noted, or not any more.
    Bytes(RowChange, Seq, WantedBytes),
    /// The bytes came that a file event speaks of.
    BytesArrived(Seq),
    /// What an author uses beside events: so many bytes of files enter a state, or leave it.
    UsageOfBytes(RowChange, SpaceNo, AuthorNo, ContentState, u64),
    /// What an author uses: one event of that length enters a state, or leaves it.
    Usage(RowChange, SpaceNo, AuthorNo, ContentState, u64),
    /// An applied event in its author's order.
    ByAuthor(SpaceNo, AuthorNo, Stamp, Seq),
    /// A space key that came.
    Key(SpaceId, [u8; 32]),
    /// A space that somebody here is in.
    Joined(SpaceId),
    /// A parent that is known to be missing, or has come.
    Gap(RowChange, SpaceNo, AuthorNo, EventId),
    /// A journal entry; the number is the next.
    Journal(SpaceNo, Seq, JournalKind),
    /// Work that goes on in later transactions, or is done.
    Task(RowChange, Task),
    /// A group has a new need.
    Wanted(Group, fetch::NeedOrigin),
    /// Somebody may have appeared who can be asked for what a group needs.
    Source(Group),
    /// A change of rows that only the `space` protocol has.
    Space(SpaceChange),
    /// A change of rows that only the `nostr` protocol has.
    Nostr(NostrChange),
    /// A change of rows that only the `probe` protocol has.
    #[cfg(feature = "simulation")]
    Probe(ProbeChange),
    /// Something that someone should know: counted, and logged at a bounded rate.
    Count(&'static str),
}
