//! The master key, and the wrapping of secrets at rest under keys derived from it.
//!
//! Every wrapped secret is bound to what it is called, so that one cannot be moved into another's place. Nonces are
//! derived from name and secret: the same secret wraps to the same bytes, and no randomness is needed here.

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305};
use zeroize::{Zeroize, ZeroizeOnDrop};

const WRAPPED_VERSION: u8 = 1;

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

    /// The key under which the search index of a space rests.
    pub(crate) fn search_key(&self, space: &model::SpaceId) -> [u8; 32] {
        *blake3::keyed_hash(&self.search, &space.0).as_bytes()
    }

    /// Wraps a secret under its name.
    pub fn wrap(&self, name: &[u8], secret: &[u8]) -> Vec<u8> {
        let mut hasher = blake3::Hasher::new_keyed(&self.nonce);
        hasher.update(&(name.len() as u64).to_be_bytes());
        hasher.update(name);
        hasher.update(secret);
        let mut nonce = [0; 24];
        nonce.copy_from_slice(&hasher.finalize().as_bytes()[..24]);
        let cipher = XChaCha20Poly1305::new((&self.wrap).into());
        let sealed = cipher.encrypt((&nonce).into(), Payload { msg: secret, aad: name });
        [&[WRAPPED_VERSION], nonce.as_slice(), &sealed.unwrap_or_default()].concat()
    }

    /// Opens a secret that was wrapped under this name.
    pub fn unwrap(&self, name: &[u8], wrapped: &[u8]) -> Result<Vec<u8>, WrongKey> {
        let (version, rest) = wrapped.split_first().ok_or(WrongKey)?;
        let (nonce, sealed) = rest.split_first_chunk::<24>().ok_or(WrongKey)?;
        if *version != WRAPPED_VERSION {
            return Err(WrongKey);
        }
        let cipher = XChaCha20Poly1305::new((&self.wrap).into());
        cipher.decrypt(nonce.into(), Payload { msg: sealed, aad: name }).map_err(|_| WrongKey)
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
    fn a_secret_opens_under_its_key_and_name_only() {
        let key = MasterKey::new(&[1; 32]);
        let wrapped = key.wrap(b"name", &[7; 32]);
        assert_eq!(key.unwrap32(b"name", &wrapped), Ok([7; 32]));
        assert_eq!(key.unwrap(b"other", &wrapped), Err(WrongKey));
        assert_eq!(MasterKey::new(&[2; 32]).unwrap(b"name", &wrapped), Err(WrongKey));
        assert_eq!(key.unwrap(b"name", &wrapped[..30]), Err(WrongKey));
    }
}
