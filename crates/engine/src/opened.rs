//! An event that was opened and checked, of whichever protocol.

use model::{AuthorKey, SpaceId, Verified};

/// An event that was opened and checked, of whichever protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Opened {
    /// Of the `space` protocol.
    Space(Verified),
}

impl Opened {
    /// The space it belongs to.
    pub fn space(&self) -> SpaceId {
        match self {
            Opened::Space(envelope) => envelope.space,
        }
    }

    /// Who signed it.
    pub fn author(&self) -> AuthorKey {
        match self {
            Opened::Space(envelope) => AuthorKey::Space(envelope.author),
        }
    }

    /// The envelope, if it is of the `space` protocol.
    pub fn as_space(&self) -> Option<&Verified> {
        match self {
            Opened::Space(envelope) => Some(envelope),
        }
    }

    /// The envelope, if it is of the `space` protocol.
    pub fn into_space(self) -> Option<Verified> {
        match self {
            Opened::Space(envelope) => Some(envelope),
        }
    }
}
