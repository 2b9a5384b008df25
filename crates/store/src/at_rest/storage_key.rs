//! A storage key: what it derives once, and the two things it does.

use model::aead::{self, NONCE_BYTES, TAG_BYTES};
use zeroize::Zeroizing;

/// One of a space's storage keys, ready for use.
pub(crate) struct StorageKey {
    number: u32,
    secret: Zeroizing<[u8; 32]>,
    nonce: Zeroizing<[u8; 32]>,
}

impl StorageKey {
    /// From its number and its 32 secret bytes.
    pub(crate) fn new(number: u32, secret: &[u8; 32]) -> StorageKey {
        StorageKey {
            number,
            secret: Zeroizing::new(blake3::derive_key("anteroom v1 storage at rest", secret)),
            nonce: Zeroizing::new(blake3::derive_key("anteroom v1 storage nonce", secret)),
        }
    }

    /// Its number within the space.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Appends nonce and ciphertext. The nonce follows from name and value, so that nothing else has to be drawn: equal
    /// values under one name give equal bytes, and different ones never share a nonce.
    pub(crate) fn seal_onto(&self, out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
        let nonce = model::crypto::nonce_of_value(&self.nonce, name, value);
        out.reserve(NONCE_BYTES + value.len() + TAG_BYTES);
        out.extend(nonce);
        aead::seal_onto(out, &self.secret, &nonce, name, value);
    }

    /// Opens nonce and ciphertext; none if they are not of this key and name.
    pub(crate) fn open(&self, name: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        aead::open(&self.secret, nonce, name, sealed).ok()
    }
}

impl std::fmt::Debug for StorageKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StorageKey({})", self.number)
    }
}
