//! A storage key: what it derives once, and the two things it does.

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305};
use zeroize::Zeroizing;

/// How many bytes of nonce stand before a ciphertext.
const NONCE_BYTES: usize = 24;

/// One of a space's storage keys, ready for use.
pub(crate) struct StorageKey {
    number: u32,
    cipher: XChaCha20Poly1305,
    nonce: Zeroizing<[u8; 32]>,
}

impl StorageKey {
    /// From its number and its 32 secret bytes.
    pub(crate) fn new(number: u32, secret: &[u8; 32]) -> StorageKey {
        let wrap = Zeroizing::new(blake3::derive_key("anteroom v1 storage at rest", secret));
        let nonce = Zeroizing::new(blake3::derive_key("anteroom v1 storage nonce", secret));
        StorageKey { number, cipher: XChaCha20Poly1305::new((&*wrap).into()), nonce }
    }

    /// Its number within the space.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Appends nonce and ciphertext. The nonce follows from name and value, so that nothing else has to be drawn: equal
    /// values under one name give equal bytes, and different ones never share a nonce.
    pub(crate) fn seal_onto(&self, out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
        let mut hasher = blake3::Hasher::new_keyed(&self.nonce);
        hasher.update(&(name.len() as u64).to_be_bytes());
        hasher.update(name);
        hasher.update(value);
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&hasher.finalize().as_bytes()[..NONCE_BYTES]);
        // The cipher refuses only what is longer than 256 GiB.
        let sealed = self.cipher.encrypt((&nonce).into(), Payload { msg: value, aad: name }).unwrap_or_default();
        out.reserve(NONCE_BYTES + sealed.len());
        out.extend(nonce);
        out.extend(sealed);
    }

    /// Opens nonce and ciphertext; none if they are not of this key and name.
    pub(crate) fn open(&self, name: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        self.cipher.decrypt(nonce.into(), Payload { msg: sealed, aad: name }).ok()
    }
}

impl std::fmt::Debug for StorageKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StorageKey({})", self.number)
    }
}
