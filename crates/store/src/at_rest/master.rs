//! The master key, and the wrapping of secrets at rest under keys derived from it.
//!
//! Every wrapped secret is bound to what it is called, so that one cannot be moved into another's place. Nonces are
//! derived from name and secret: the same secret wraps to the same bytes, and no randomness is needed here.

use crate::at_rest::{TAG_WRAPPED, TAG_WRAPPED_NAMED};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// By how many bytes of its check value a wrapped secret names its master key.
const NAME_BYTES: usize = 4;

/// A wrapped secret could not be opened: wrong master key, or a damaged row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the master key does not open this data folder")]
pub struct WrongKey;

/// The key under which all others rest.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct MasterKey {
    wrap: [u8; 32],
    nonce: [u8; 32],
    backup: [u8; 32],
    check: [u8; 32],
    index: [u8; 32],
    search: [u8; 32],
    /// The key before this one, while secrets may still rest under it.
    #[zeroize(skip)]
    previous: Option<Box<MasterKey>>,
}

impl MasterKey {
    /// From its 32 secret bytes.
    pub fn new(secret: &[u8; 32]) -> MasterKey {
        MasterKey {
            wrap: blake3::derive_key("anteroom v1 wrap at rest", secret),
            nonce: blake3::derive_key("anteroom v1 wrap nonce", secret),
            backup: blake3::derive_key("anteroom v1 backup", secret),
            check: blake3::derive_key("anteroom v1 key check", secret),
            index: blake3::derive_key("anteroom v1 index of names", secret),
            search: blake3::derive_key("anteroom v1 search at rest", secret),
            previous: None,
        }
    }

    /// A value by which a data folder or backup recognises its key, and which tells nothing about it.
    pub fn check_value(&self) -> [u8; 32] {
        self.check
    }

    /// The key that authenticates backups.
    pub fn backup_key(&self) -> &[u8; 32] {
        &self.backup
    }

    /// A hash by which a row is found without showing what it is called.
    pub fn index_hash(&self, parts: &[&[u8]]) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new_keyed(&self.index);
        for part in parts {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        let mut hash = [0; 16];
        hash.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        hash
    }

    /// A secret that can be derived again from its salt, also after the master key was changed.
    pub fn secret_from(&self, salt: &[u8; 16]) -> [u8; 32] {
        blake3::derive_key("anteroom v1 secret from a salt", &[self.index.as_slice(), salt].concat())
    }

    /// The key under which the search index of a space rests.
    pub(crate) fn search_key(&self, space: &model::SpaceId) -> [u8; 32] {
        *blake3::keyed_hash(&self.search, &space.0).as_bytes()
    }

    /// Wraps a secret under its name.
    pub fn wrap(&self, name: &[u8], secret: &[u8]) -> Vec<u8> {
        let nonce = model::crypto::nonce_of_value(&self.nonce, name, secret);
        let sealed = model::aead::seal(&self.wrap, &nonce, name, secret);
        [&[TAG_WRAPPED_NAMED], self.name(), &nonce, &sealed].concat()
    }

    /// Opens a secret that was wrapped under this name.
    pub fn unwrap(&self, name: &[u8], wrapped: &[u8]) -> Result<Vec<u8>, WrongKey> {
        let (tag, rest) = wrapped.split_first().ok_or(WrongKey)?;
        let (key, rest) = match *tag {
            // What names no key is older than any change of keys.
            TAG_WRAPPED => (self.previous.as_deref().unwrap_or(self), rest),
            TAG_WRAPPED_NAMED => {
                let (name, rest) = rest.split_at_checked(NAME_BYTES).ok_or(WrongKey)?;
                (self.named(name).ok_or(WrongKey)?, rest)
            }
            _ => return Err(WrongKey),
        };
        let (nonce, sealed) = rest.split_first_chunk::<24>().ok_or(WrongKey)?;
        model::aead::open(&key.wrap, nonce, name, sealed).map_err(|_| WrongKey)
    }

    /// Whether a value is a secret that a master key wrapped.
    pub(crate) fn is_wrapped(value: &[u8]) -> bool {
        matches!(value.first(), Some(&(TAG_WRAPPED | TAG_WRAPPED_NAMED)))
    }

    /// Whether a secret rests under this very key, rather than the one before it.
    pub(crate) fn is_current(&self, wrapped: &[u8]) -> bool {
        wrapped.strip_prefix(&[TAG_WRAPPED_NAMED]).is_some_and(|rest| rest.starts_with(self.name()))
    }

    fn name(&self) -> &[u8] {
        &self.check[..NAME_BYTES]
    }

    fn named(&self, name: &[u8]) -> Option<&MasterKey> {
        let previous = self.previous.as_deref();
        [Some(self), previous].into_iter().flatten().find(|key| key.name() == name)
    }

    /// The key of the index of names.
    pub(crate) fn index_key(&self) -> &[u8; 32] {
        &self.index
    }

    /// Finds names as before, although the master key is another.
    pub(crate) fn set_index_key(&mut self, index: [u8; 32]) {
        self.index = index;
    }

    /// Everything derived from the secret, to be kept wrapped under the next key.
    pub(crate) fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new([self.wrap, self.nonce, self.backup, self.check, self.index].concat())
    }

    /// Also opens what rests under the key before this one.
    pub(crate) fn set_previous(&mut self, bytes: &[u8]) -> Result<(), WrongKey> {
        let mut parts = bytes.as_chunks::<32>().0.iter().copied();
        let mut next = || parts.next().ok_or(WrongKey);
        let (wrap, nonce, backup, check, index) = (next()?, next()?, next()?, next()?, next()?);
        // Search is built anew under the new key, so the old one's is not kept.
        let search = [0; 32];
        self.previous = Some(Box::new(MasterKey { wrap, nonce, backup, check, index, search, previous: None }));
        Ok(())
    }

    /// As [`MasterKey::unwrap`], for secrets of 32 bytes.
    pub fn unwrap32(&self, name: &[u8], wrapped: &[u8]) -> Result<[u8; 32], WrongKey> {
        self.unwrap(name, wrapped)?.try_into().map_err(|_| WrongKey)
    }
}

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MasterKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_change_of_keys_both_are_opened_and_told_apart() {
        let (old, mut new) = (MasterKey::new(&[1; 32]), MasterKey::new(&[2; 32]));
        let named = old.wrap(b"name", &[7; 32]);
        let nameless = [&[TAG_WRAPPED], &named[1 + NAME_BYTES..]].concat();
        assert_eq!((old.unwrap32(b"name", &named), old.unwrap32(b"name", &nameless)), (Ok([7; 32]), Ok([7; 32])));
        assert_eq!(new.unwrap(b"name", &named), Err(WrongKey));
        new.set_previous(&old.to_bytes()).expect("a key");
        assert_eq!((new.unwrap32(b"name", &named), new.unwrap32(b"name", &nameless)), (Ok([7; 32]), Ok([7; 32])));
        assert!(!new.is_current(&named) && new.is_current(&new.wrap(b"name", b"x")));
    }

    #[test]
    fn a_secret_opens_under_its_key_and_name_only() {
        let key = MasterKey::new(&[1; 32]);
        let wrapped = key.wrap(b"name", &[7; 32]);
        assert_eq!(key.unwrap32(b"name", &wrapped), Ok([7; 32]));
        assert_eq!(key.unwrap(b"other", &wrapped), Err(WrongKey));
        assert_eq!(MasterKey::new(&[2; 32]).unwrap(b"name", &wrapped), Err(WrongKey));
        assert_eq!(key.unwrap(b"name", &wrapped[..30]), Err(WrongKey));
    }
}
