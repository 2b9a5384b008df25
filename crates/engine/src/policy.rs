//! What a node decides for itself: how much it keeps waiting, and for how long.

use crate::fetch::HuntDelays;
use model::limits::{
    BODY_BYTES_MAX, CHUNK_OVERHEAD_BYTES, FUTURE_NANOS_MAX, HOLD_NANOS_MAX, INLINE_BYTES_MAX,
    RELEASES_PER_TRANSACTION_MAX,
};
use model::nostr::ServiceName;

/// Local limits. Two nodes may differ in them and still show the same views of what both keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Content up to this length is inline. Fixed by the format; tests draw it from 0 and 1 KiB.
    pub inline_bytes_max: u64,
    /// Content up to this rests in the database, larger content in objects: a row costs a few pages, an object a handful of
    /// syncs. What has to be read to judge it is not larger.
    pub row_content_bytes_max: u64,
    /// How long a hold lasts.
    pub hold_nanos: u64,
    /// How far ahead of the clock an event may be before it is held.
    pub future_nanos: u64,
    /// Held events of one author.
    pub held_per_author_max: u64,
    /// Held blobs that cannot be opened yet, of the peer that brought them.
    pub held_per_peer_max: u64,
    /// Held events in total.
    pub held_max: u64,
    /// Events carried for others, per space.
    pub carried_per_space_max: u64,
    /// Events carried for others, in total.
    pub carried_max: u64,
    /// Refused ids that are remembered.
    pub refused_max: u64,
    /// Expired ids that sync skips.
    pub expired_max: u64,
    /// How many events one transaction wakes or looks at again at most; the rest follow in the next.
    pub releases_max: usize,
    /// How long content without a reference is kept.
    pub grace_nanos: u64,
    /// How long journal entries are kept.
    pub journal_nanos: u64,
    /// Bytes of content that a user of the API may keep in a space.
    pub user_bytes_max: Option<u64>,
    /// Bytes of content that a space may keep, as far as users of the API add to it.
    pub space_bytes_max: Option<u64>,
    /// How others name this node in URLs. Without it no repository can be announced here.
    pub service: Option<ServiceName>,
    /// How long what is missing is waited for before somebody is asked.
    pub hunt_delays: HuntDelays,
    /// Whether contributors without a repository here may push commits of pull requests (GRASP-06).
    pub takes_contributions: bool,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            inline_bytes_max: INLINE_BYTES_MAX,
            row_content_bytes_max: (BODY_BYTES_MAX + CHUNK_OVERHEAD_BYTES) as u64,
            hold_nanos: HOLD_NANOS_MAX,
            future_nanos: FUTURE_NANOS_MAX,
            held_per_author_max: 250_000,
            held_per_peer_max: 500_000,
            held_max: 4_000_000,
            carried_per_space_max: 100_000,
            carried_max: 1_000_000,
            refused_max: 100_000,
            expired_max: 100_000,
            releases_max: RELEASES_PER_TRANSACTION_MAX,
            grace_nanos: 24 * 3600 * 1_000_000_000,
            journal_nanos: 30 * 24 * 3600 * 1_000_000_000,
            user_bytes_max: Some(16 << 30),
            space_bytes_max: None,
            service: None,
            hunt_delays: HuntDelays::default(),
            takes_contributions: false,
        }
    }
}
