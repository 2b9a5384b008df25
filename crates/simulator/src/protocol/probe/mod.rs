//! The `probe` protocol: [`world`] makes up its events, and [`mod@reference`] recomputes from the set alone what its views must
//! show.

pub mod reference;
pub mod world;

use engine::chains;
use engine::policy::Policy;
use engine::protocol::probe::parse_at_door;
use engine::receive::{Arrival, DropReason};
use engine::rows::Origin;
use model::crypto::{TransitSecret, content_hash};
use model::packet::{self, PacketContent};
use model::probe::{PROBE_FORM, ProbeKey, ProbeKind, ProbeStatement};
use model::{ContentHash, EventId, Nanos, Stamp};

/// An event of the `probe` protocol with the content that travels beside it.
#[derive(Clone, Debug)]
pub struct MadeProbe {
    /// What it states.
    pub statement: ProbeStatement,
    /// The id by which nodes know it.
    pub id: EventId,
    /// Its content.
    pub wire: Vec<u8>,
}

impl MadeProbe {
    /// An event of an author.
    pub fn new(kind: ProbeKind, author: u8, at: u64, name: &str, after: &str, content: &[u8]) -> MadeProbe {
        let statement = ProbeStatement {
            kind,
            author: ProbeKey([author; 32]),
            at: Nanos(at),
            salt: 0,
            name: name.to_owned(),
            after: after.to_owned(),
            content_len: content.len() as u64,
            content_hash: content_hash(content),
        };
        MadeProbe { id: statement.id().short(), statement, wire: content.to_vec() }
    }

    /// Its place in the order of events.
    pub fn stamp(&self) -> Stamp {
        Stamp { at: self.statement.at, id: self.id }
    }

    /// The hash of its content.
    pub fn hash(&self) -> ContentHash {
        self.statement.content_hash
    }

    /// The content that travels beside the blob, given what is inline.
    pub fn inline(&self, inline_max: u64) -> Option<Vec<u8>> {
        (!self.wire.is_empty() && self.wire.len() as u64 <= inline_max).then(|| self.wire.clone())
    }

    /// A blob that clashes with it: the first half of the id is the same, the second is not.
    pub fn clash(&self) -> Vec<u8> {
        ProbeStatement { salt: self.statement.salt ^ 1, ..self.statement.clone() }.sign(0)
    }
}

/// Whether a blob is of this protocol.
pub fn is_probe(blob: &[u8]) -> bool {
    blob.first() == Some(&PROBE_FORM)
}

/// Brings a blob through the one door that takes it.
pub fn receive(
    keys: &store::KeyringSecrets,
    policy: &Policy,
    blob: Vec<u8>,
    inline: Option<Vec<u8>>,
) -> Result<Arrival, DropReason> {
    chains::receive_parsed(keys, policy, parse_at_door(blob)?, inline, Origin::Import)
}

/// Tries every door of the product. Says through which it came in, if it did.
pub fn open_door(
    keys: &store::KeyringSecrets,
    policy: &Policy,
    blob: &[u8],
    transit: [u8; 32],
) -> Option<&'static str> {
    let inside = PacketContent { blob: blob.to_vec(), inline: Vec::new() };
    let packet = packet::wrap(&TransitSecret::new(transit), [1; 24], &inside).expect("a packet");
    if chains::receive_blob(keys, policy, blob.to_vec(), None, Origin::Import).is_ok() {
        return Some("a bundle or a source");
    }
    chains::receive_packet(keys, policy, &packet).is_ok().then_some("a packet")
}
