//! The secrets at hand, in memory, shared by all readers and the doors, and what they have learned from rows that
//! never change.

use crate::at_rest::StorageKey;
use crate::database::db::Db;
use ed25519_dalek::SigningKey;
use engine::keyring::{Keyring, Transit};
use model::crypto::SpaceKey;
use model::{AuthorNo, Identity, KeyId, PrekeyId, SpaceId, TransitId};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, RwLock};

/// Space keys, prekey secrets and transit secrets.
#[derive(Default)]
pub struct KeyringSecrets {
    inner: RwLock<Inner>,
}

/// Keys that a commit removes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Retired {
    /// The storage keys of a space below a number.
    StorageBelow(SpaceId, u32),
    /// Everything of a space.
    All(SpaceId),
}

#[derive(Default)]
struct Inner {
    spaces: HashMap<(SpaceId, KeyId), Arc<SpaceKey>>,
    prekeys: HashMap<PrekeyId, [u8; 32]>,
    transits: HashMap<TransitId, Transit>,
    storage: HashMap<(SpaceId, u32), Arc<StorageKey>>,
    identities: HashMap<AuthorNo, Identity>,
    names: HashMap<(SpaceId, Identity), Arc<str>>,
    signing: HashMap<Identity, Arc<SigningKey>>,
    /// Identities whose names and keys were forgotten for good.
    erased: HashSet<Identity>,
    retired: Vec<Retired>,
}

impl Inner {
    fn forget(&mut self, retired: Retired) {
        match retired {
            Retired::StorageBelow(space, number) => {
                self.storage.retain(|(other, older), _| *other != space || *older >= number);
            }
            Retired::All(space) => {
                self.spaces.retain(|(other, _), _| *other != space);
                self.storage.retain(|(other, _), _| *other != space);
                self.names.retain(|(other, _), _| *other != space);
            }
        }
    }
}

/// More identities, names or signing keys than this are not remembered at a time; they are read again when wanted.
const REMEMBERED_MAX: usize = 50_000;

impl KeyringSecrets {
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

    /// The keys of a space, in no order that means anything.
    pub(crate) fn space_keys(&self, space: &SpaceId) -> Vec<Arc<SpaceKey>> {
        self.read().spaces.iter().filter(|((of, _), _)| of == space).map(|(_, key)| key.clone()).collect()
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

    /// The name of a user whose row was read before.
    pub(crate) fn name(&self, space: &SpaceId, identity: &Identity) -> Option<Arc<str>> {
        self.read().names.get(&(*space, *identity)).cloned()
    }

    pub(crate) fn remember_name(&self, space: &SpaceId, identity: &Identity, name: &Arc<str>) {
        let mut inner = self.write();
        if inner.erased.contains(identity) {
            return;
        }
        if inner.names.len() >= REMEMBERED_MAX {
            inner.names.clear();
        }
        inner.names.insert((*space, *identity), name.clone());
    }

    pub(crate) fn forget_name(&self, space: &SpaceId, identity: &Identity) {
        self.write().names.remove(&(*space, *identity));
    }

    /// Forgets the name and the key of an identity for good: whoever reads an older snapshot does not bring them back.
    pub(crate) fn erase(&self, space: &SpaceId, identity: &Identity) {
        let mut inner = self.write();
        inner.erased.insert(*identity);
        inner.names.remove(&(*space, *identity));
        inner.signing.remove(identity);
    }

    pub(crate) fn signing_key(&self, identity: &Identity) -> Option<Arc<SigningKey>> {
        self.read().signing.get(identity).cloned()
    }

    pub(crate) fn remember_signing_key(&self, identity: &Identity, key: &Arc<SigningKey>) {
        let mut inner = self.write();
        if inner.erased.contains(identity) {
            return;
        }
        if inner.signing.len() >= REMEMBERED_MAX {
            inner.signing.clear();
        }
        inner.signing.insert(*identity, key.clone());
    }

    /// Removes keys, here and, once this was absorbed, there.
    pub(crate) fn retire(&self, retired: Retired) {
        let mut inner = self.write();
        inner.forget(retired);
        inner.retired.push(retired);
    }

    /// A storage key of a space.
    pub(crate) fn storage_key(&self, space: &SpaceId, number: u32) -> Option<Arc<StorageKey>> {
        self.read().storage.get(&(*space, number)).cloned()
    }

    pub(crate) fn add_storage_key(&self, space: SpaceId, key: StorageKey) {
        self.write().storage.insert((space, key.number()), Arc::new(key));
    }

    /// Adds a transit secret.
    pub fn add_transit(&self, transit: Transit) {
        self.write().transits.insert(transit.secret.id(), transit);
    }
}

impl Keyring for KeyringSecrets {
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

impl std::fmt::Debug for KeyringSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let inner = self.read();
        write!(f, "Keys({} space keys, {} prekeys)", inner.spaces.len(), inner.prekeys.len())
    }
}

impl KeyringSecrets {
    /// Takes over everything another keyring holds.
    pub fn absorb(&self, other: KeyringSecrets) {
        let other = other.inner.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let is_empty = other.spaces.is_empty() && other.prekeys.is_empty() && other.transits.is_empty();
        if is_empty && other.storage.is_empty() && other.retired.is_empty() {
            return;
        }
        let mut inner = self.write();
        other.retired.into_iter().for_each(|retired| inner.forget(retired));
        inner.spaces.extend(other.spaces);
        inner.prekeys.extend(other.prekeys);
        inner.transits.extend(other.transits);
        inner.storage.extend(other.storage);
    }
}

/// A batch knows the keys that it has added itself.
impl<V> Keyring for Db<V> {
    fn space_key(&self, space: &SpaceId, key: &KeyId) -> Option<Arc<SpaceKey>> {
        self.pending.keys.space_key(space, key).or_else(|| self.keys.space_key(space, key))
    }

    fn prekey(&self, prekey: &PrekeyId) -> Option<[u8; 32]> {
        self.pending.keys.prekey(prekey).or_else(|| self.keys.prekey(prekey))
    }

    fn transit(&self, transit: &TransitId) -> Option<Transit> {
        self.keys.transit(transit)
    }
}
