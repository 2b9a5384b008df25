//! The secrets at hand.

use model::crypto::{SpaceKey, TransitSecret};
use model::{KeyId, PrekeyId, SpaceId, TransitId};
use std::sync::Arc;

/// The secrets at hand.
pub trait Keyring {
    /// A space key.
    fn space_key(&self, space: &SpaceId, key: &KeyId) -> Option<Arc<SpaceKey>>;
    /// The secret of a prekey.
    fn prekey(&self, prekey: &PrekeyId) -> Option<[u8; 32]>;
    /// A transit secret, with the space and the peer it stands for.
    fn transit(&self, transit: &TransitId) -> Option<Transit>;
}

/// What a transit secret attributes a packet to.
#[derive(Clone, Debug)]
pub struct Transit {
    /// The secret.
    pub secret: Arc<TransitSecret>,
    /// The space it was agreed for.
    pub space: SpaceId,
    /// The peer it was agreed with.
    pub peer: u32,
}

impl std::fmt::Debug for dyn Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keyring")
    }
}
