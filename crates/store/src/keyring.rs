//! The secrets at hand, in memory, shared by all readers and the doors, and what they have learned from rows that
//! never change.

use engine::receive::{Keyring, Transit};
use model::crypto::SpaceKey;
use model::{AuthorNo, Identity, KeyId, PrekeyId, SpaceId, TransitId};
use std::collections::HashMap;
use std::sync::{Arc, RwLock};

/// Space keys, prekey secrets and transit secrets.
#[derive(Default)]
pub struct Keys {
    inner: RwLock<Inner>,
}

#[derive(Default)]
struct Inner {
    spaces: HashMap<(SpaceId, KeyId), Arc<SpaceKey>>,
    prekeys: HashMap<PrekeyId, [u8; 32]>,
    transits: HashMap<TransitId, Transit>,
    identities: HashMap<AuthorNo, Identity>,
}

/// More identities than this are not remembered at a time; they are read again when they are wanted.
const REMEMBERED_MAX: usize = 50_000;

impl Keys {
    fn read(&self) -> std::sync::RwLockReadGuard<'_, Inner> {
        // A poisoned lock still guards complete maps: every change is one insertion.
        self.inner.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Adds a space key.
    pub fn add_space_key(&self, space: SpaceId, key: SpaceKey) {
        self.write().spaces.insert((space, key.id()), Arc::new(key));
    }

    /// Adds the secret of a prekey.
    pub fn add_prekey(&self, id: PrekeyId, secret: [u8; 32]) {
        self.write().prekeys.insert(id, secret);
    }

    /// Who an author is, if that was read before.
    pub(crate) fn identity(&self, author: AuthorNo) -> Option<Identity> {
        self.read().identities.get(&author).copied()
    }

    pub(crate) fn remember_identity(&self, author: AuthorNo, identity: Identity) {
        let mut inner = self.write();
        if inner.identities.len() >= REMEMBERED_MAX {
            inner.identities.clear();
        }
        inner.identities.insert(author, identity);
    }

    /// Adds a transit secret.
    pub fn add_transit(&self, transit: Transit) {
        self.write().transits.insert(transit.secret.id(), transit);
    }
}

impl Keyring for Keys {
    fn space_key(&self, space: &SpaceId, key: &KeyId) -> Option<Arc<SpaceKey>> {
        self.read().spaces.get(&(*space, *key)).cloned()
    }

    fn prekey(&self, prekey: &PrekeyId) -> Option<[u8; 32]> {
        self.read().prekeys.get(prekey).copied()
    }

    fn transit(&self, transit: &TransitId) -> Option<Transit> {
        self.read().transits.get(transit).cloned()
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let inner = self.read();
        write!(f, "Keys({} space keys, {} prekeys)", inner.spaces.len(), inner.prekeys.len())
    }
}

impl Keys {
    /// Takes over everything another keyring holds.
    pub fn absorb(&self, other: Keys) {
        let other = other.inner.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        if other.spaces.is_empty() && other.prekeys.is_empty() && other.transits.is_empty() {
            return;
        }
        let mut inner = self.write();
        inner.spaces.extend(other.spaces);
        inner.prekeys.extend(other.prekeys);
        inner.transits.extend(other.transits);
    }
}
