//! Who signs events, in whichever protocol.

use crate::ids::{Identity, NostrKey};
use crate::nostr::NOSTR_PROTOCOL;
use std::fmt;

/// The code of the `space` protocol, where rows name a protocol.
pub const SPACE_PROTOCOL: u8 = 1;

/// The key of an author, whichever protocol it belongs to. Keys of two protocols are never the same author, even where
/// their bytes are equal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AuthorKey {
    /// An identity of the `space` protocol.
    Space(Identity),
    /// A key of the `nostr` protocol.
    Nostr(NostrKey),
    #[cfg(feature = "simulation")]
    Probe(crate::probe::ProbeKey),
}

impl AuthorKey {
    /// The code of its protocol and the bytes of the key, as rows keep them.
    pub fn to_code(self) -> (u8, [u8; 32]) {
        match self {
            AuthorKey::Space(identity) => (SPACE_PROTOCOL, identity.0),
            AuthorKey::Nostr(key) => (NOSTR_PROTOCOL, key.0),
            #[cfg(feature = "simulation")]
            AuthorKey::Probe(key) => (crate::probe::PROBE_FORM, key.0),
        }
    }

    /// The author of these, if this release knows the protocol.
    pub fn from_code(protocol: u8, key: [u8; 32]) -> Option<AuthorKey> {
        match protocol {
            SPACE_PROTOCOL => Some(AuthorKey::Space(Identity(key))),
            NOSTR_PROTOCOL => Some(AuthorKey::Nostr(NostrKey(key))),
            #[cfg(feature = "simulation")]
            crate::probe::PROBE_FORM => Some(AuthorKey::Probe(crate::probe::ProbeKey(key))),
            _ => None,
        }
    }

    /// Whom these bytes may be the key of: one author for each protocol.
    pub fn candidates(key: [u8; 32]) -> impl Iterator<Item = AuthorKey> {
        (0..=u8::MAX).filter_map(move |protocol| AuthorKey::from_code(protocol, key))
    }

    /// The identity, if the author belongs to the `space` protocol.
    pub fn identity(self) -> Option<Identity> {
        match self {
            AuthorKey::Space(identity) => Some(identity),
            AuthorKey::Nostr(_) => None,
            #[cfg(feature = "simulation")]
            AuthorKey::Probe(_) => None,
        }
    }
}

/// The digits of the key.
impl fmt::Display for AuthorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuthorKey::Space(identity) => write!(f, "{identity}"),
            AuthorKey::Nostr(key) => write!(f, "{key}"),
            #[cfg(feature = "simulation")]
            AuthorKey::Probe(key) => write!(f, "{key}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authors_read_back_from_their_code() {
        let author = AuthorKey::Space(Identity([7; 32]));
        assert_eq!(AuthorKey::candidates([7; 32]).next(), Some(author));
        let (protocol, key) = author.to_code();
        assert_eq!(AuthorKey::from_code(protocol, key), Some(author));
        assert_eq!(AuthorKey::from_code(0xee, key), None);
    }
}
