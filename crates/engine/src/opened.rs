//! An event that was opened and checked, of whichever protocol.

use model::blob::BadBlob;
use model::crypto::content_hash;
use model::nostr::VerifiedNostr;
use model::{AuthorKey, ContentHash, KeyId, SpaceId, Verified};

/// An event that was opened and checked, of whichever protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Opened {
    /// Of the `space` protocol.
    Space(Verified),
    /// Of the `nostr` protocol.
    Nostr(VerifiedNostr),
    #[cfg(feature = "simulation")]
    Probe(model::probe::ProbeStatement),
}

impl Opened {
    /// The space it belongs to.
    pub fn space(&self) -> SpaceId {
        match self {
            Opened::Space(envelope) => envelope.space,
            Opened::Nostr(_) => SpaceId::COMMONS,
            #[cfg(feature = "simulation")]
            Opened::Probe(_) => SpaceId::COMMONS,
        }
    }

    /// Who signed it.
    pub fn author(&self) -> AuthorKey {
        match self {
            Opened::Space(envelope) => AuthorKey::Space(envelope.author),
            Opened::Nostr(event) => AuthorKey::Nostr(event.author),
            #[cfg(feature = "simulation")]
            Opened::Probe(statement) => AuthorKey::Probe(statement.author),
        }
    }

    /// The length and the hash of its content as it travels.
    pub fn content(&self) -> (u64, ContentHash) {
        match self {
            Opened::Space(envelope) => (envelope.content_len, envelope.content_hash),
            Opened::Nostr(_) => (0, content_hash(&[])),
            #[cfg(feature = "simulation")]
            Opened::Probe(statement) => (statement.content_len, statement.content_hash),
        }
    }

    /// Whether these bytes are its content.
    pub fn is_content(&self, wire: &[u8]) -> bool {
        self.content() == (wire.len() as u64, content_hash(wire))
    }

    /// The envelope, if it is of the `space` protocol.
    pub fn as_space(&self) -> Option<&Verified> {
        match self {
            Opened::Space(envelope) => Some(envelope),
            Opened::Nostr(_) => None,
            #[cfg(feature = "simulation")]
            Opened::Probe(_) => None,
        }
    }

    /// The envelope, if it is of the `space` protocol.
    pub fn into_space(self) -> Option<Verified> {
        match self {
            Opened::Space(envelope) => Some(envelope),
            Opened::Nostr(_) => None,
            #[cfg(feature = "simulation")]
            Opened::Probe(_) => None,
        }
    }
}

/// What opening a blob came to.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are opened")]
pub enum Opening {
    /// Opened and checked.
    Opened(Opened),
    /// The space key is not here.
    NoKey(SpaceId, KeyId),
    /// Addressed to a prekey that is not ours.
    NotOurs(SpaceId),
    /// It opens to something that is not valid.
    Bad(BadBlob),
}
