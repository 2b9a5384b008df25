//! The `nostr` protocol: signed JSON events, the addresses by which they name each other, and what those about git
//! repositories say.
//!
//! A blob is [`NOSTR_FORM`] and the event in one canonical serialisation, so that one event has one blob but for its
//! signature.

mod address;
mod contribution;
mod event;
mod filter;
mod repository;
#[cfg(test)]
mod tests;

pub use address::{Address, AddressName, is_addressable, is_replaceable};
pub use contribution::{
    announced_identifier, contributed_repositories, contribution_identifier, is_contribution, npub, parse_npub,
    parse_repository,
};
pub(crate) use event::id_in;
pub use event::{BadNostrEvent, NostrEvent, NostrId, VerifiedNostr};
pub use filter::{BadFilter, NostrFilter, TagFilter};
pub use repository::{
    ANNOUNCEMENT, Announcement, DELETION, PULL_REQUEST, PULL_REQUEST_UPDATE, RepositoryState, STATE, ServiceName,
    VANISH, event_ids, named_repositories, tip_of,
};

/// The first byte of a blob of this protocol.
pub const NOSTR_FORM: u8 = 0x05;
/// The code of this protocol, where rows name one.
pub const NOSTR_PROTOCOL: u8 = 2;
/// The largest event as it is kept: descriptions and states of hundreds of refs fit.
pub const NOSTR_EVENT_BYTES_MAX: usize = 64 * 1024;
/// Tags of one event.
pub const TAGS_MAX: usize = 2000;
/// Bytes of one value in a tag.
pub const TAG_VALUE_BYTES_MAX: usize = 1024;
