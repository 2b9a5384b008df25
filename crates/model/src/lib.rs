//! The words of Anteroom: what an event is, how it is written down, what it may need, and which stages it passes.
//!
//! The story in the order it happens: an author fills an [`Envelope`](envelope::Envelope) and signs it; the envelope
//! is wrapped into a [`Blob`](blob::Blob), plain or sealed, whose hash is the event's id; blobs travel in
//! [packets](packet) with small [content](content) beside them; whoever receives one opens it, checks it into a
//! [`Verified`](envelope::Verified) envelope, asks which [`Need`](need::Need)s it has, and moves it through the
//! [stages](stage).
//!
//! Deliberately absent: input and output, clocks, randomness, async, and every decision that needs to look at other
//! events.

pub mod aead;
mod author;
mod author_points;
pub mod blob;
pub mod body;
pub mod calendar;
pub mod content;
pub mod crypto;
pub mod envelope;
pub mod files;
pub mod ids;
pub mod kind;
pub mod limits;
mod member_role;
pub mod need;
pub mod nostr;
pub mod object;
pub mod packet;
pub mod payload;
pub mod planted;
#[cfg(feature = "simulation")]
pub mod probe;
pub mod reader;
pub mod stage;

pub use author::{AuthorKey, SPACE_PROTOCOL};
pub use blob::Blob;
pub use envelope::{Envelope, Reference, Role, Verified};
pub use ids::{
    AuthorNo, AuxKey, ContentHash, EventId, FileId, Identity, KeyId, LinkId, Nanos, NostrKey, ObjectName, Position,
    PrekeyId, Seq, SpaceId, SpaceNo, Stamp, TransitId,
};
pub use kind::Kind;
pub use need::{Group, Need};
pub use stage::{ContentState, Stage};
