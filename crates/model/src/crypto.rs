//! Keys, tags and the few constructions built from them.
//!
//! Every use of a key has its own derived key, named by a context string; every hash that makes an id begins with a
//! tag. Ciphers, hashes and curves come from libraries; this file only says which goes where.

use crate::aead::{open, seal};
use crate::ids::{AuxKey, ContentHash, EventId, Identity, KeyId, ObjectName, PrekeyId, SpaceId, TransitId};
use blake2::digest::consts::U16;
use blake2::{Blake2b, Digest};
use ed25519_dalek::VerifyingKey;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::{Zeroize, ZeroizeOnDrop};

pub use crate::aead::{DecryptError, NONCE_BYTES, TAG_BYTES};

/// Bytes a sealed box adds: the ephemeral public key and the tag.
pub const BOX_OVERHEAD_BYTES: usize = 32 + TAG_BYTES;

fn hash16(parts: &[&[u8]]) -> [u8; 16] {
    let mut hasher = Blake2b::<U16>::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// The id of an event: BLAKE2b-128 of its blob.
pub fn event_id(blob: &[u8]) -> EventId {
    let mut id = hash16(&[blob]);
    if crate::planted::has_weak_ids() {
        id[1..].fill(0);
    }
    EventId(id)
}

/// The id of a space, from who created it, the auxiliary key of the creating event, and whether it is sealed.
pub fn space_id(creator: &Identity, key: &AuxKey, sealed: bool) -> SpaceId {
    SpaceId(hash16(&[b"anteroom space v1\0", &creator.0, &key.0, &[u8::from(sealed)]]))
}

/// Whether a public key can prove anybody: it is a point on the curve, in the one way to write it, and not one of the
/// few for which anyone can sign.
pub fn is_usable(identity: &Identity) -> bool {
    let is_canonical = |key: &VerifyingKey| key.to_edwards().compress().0 == identity.0;
    VerifyingKey::from_bytes(&identity.0).is_ok_and(|key| !key.is_weak() && is_canonical(&key))
}

/// The public space of an identity, which has no creating event.
pub fn public_space(owner: &Identity) -> SpaceId {
    space_id(owner, &AuxKey::ZERO, false)
}

/// The auxiliary key that stands for an id chosen by a client.
pub fn chosen_key(id: &str) -> AuxKey {
    AuxKey(hash16(&[b"anteroom chosen id v1\0", id.as_bytes()]))
}

/// The id of a prekey, from its public half.
pub fn prekey_id(public: &[u8; 32]) -> PrekeyId {
    PrekeyId(hash16(&[b"anteroom prekey v1\0", public]))
}

/// The hash of content as it travels.
pub fn content_hash(bytes: &[u8]) -> ContentHash {
    ContentHash(*blake3::hash(bytes).as_bytes())
}

/// The public half of an X25519 secret.
pub fn prekey_public(secret: &[u8; 32]) -> [u8; 32] {
    PublicKey::from(&StaticSecret::from(*secret)).to_bytes()
}

/// A space key with everything derived from it.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct SpaceKey {
    secret: [u8; 32],
    blob: [u8; 32],
    blob_nonce: [u8; 32],
    content: [u8; 32],
    content_nonce: [u8; 32],
    #[zeroize(skip)]
    id: KeyId,
}

impl SpaceKey {
    pub fn new(space: &SpaceId, secret: [u8; 32]) -> SpaceKey {
        SpaceKey {
            blob: blake3::derive_key("anteroom v1 blob encryption", &secret),
            blob_nonce: blake3::derive_key("anteroom v1 blob nonce", &secret),
            content: blake3::derive_key("anteroom v1 content encryption", &secret),
            content_nonce: blake3::derive_key("anteroom v1 content nonce", &secret),
            id: KeyId(hash16(&[b"anteroom space key v1\0", &space.0, &secret])),
            secret,
        }
    }

    /// A hash of a tag, the space and the key.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// The secret bytes, to be carried in a key event or wrapped at rest.
    pub fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// The nonce for an envelope: keyed BLAKE3 of it, so that one envelope has one blob.
    pub fn blob_nonce(&self, envelope: &[u8]) -> [u8; NONCE_BYTES] {
        keyed_nonce(&self.blob_nonce, &[envelope])
    }

    /// The nonce for a chunk of content: keyed BLAKE3 of what binds it and the chunk.
    pub fn content_nonce(&self, binding: &[u8], chunk: &[u8]) -> [u8; NONCE_BYTES] {
        keyed_nonce(&self.content_nonce, &[binding, chunk])
    }

    pub fn seal_blob(&self, nonce: &[u8; NONCE_BYTES], header: &[u8], envelope: &[u8]) -> Vec<u8> {
        seal(&self.blob, nonce, header, envelope)
    }

    pub fn open_blob(&self, nonce: &[u8; NONCE_BYTES], header: &[u8], bytes: &[u8]) -> Result<Vec<u8>, DecryptError> {
        open(&self.blob, nonce, header, bytes)
    }

    pub fn seal_chunk(&self, nonce: &[u8; NONCE_BYTES], binding: &[u8], chunk: &[u8]) -> Vec<u8> {
        seal(&self.content, nonce, binding, chunk)
    }

    pub fn open_chunk(&self, nonce: &[u8; NONCE_BYTES], binding: &[u8], bytes: &[u8]) -> Result<Vec<u8>, DecryptError> {
        open(&self.content, nonce, binding, bytes)
    }
}

impl std::fmt::Debug for SpaceKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SpaceKey({})", self.id)
    }
}

/// A secret shared with one peer for packets in transit.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct TransitSecret {
    key: [u8; 32],
    #[zeroize(skip)]
    id: TransitId,
}

impl TransitSecret {
    pub fn new(secret: [u8; 32]) -> TransitSecret {
        TransitSecret {
            key: blake3::derive_key("anteroom v1 transit encryption", &secret),
            id: TransitId(hash16(&[b"anteroom transit v1\0", &secret])),
        }
    }

    /// The id by which a packet names it.
    pub fn id(&self) -> TransitId {
        self.id
    }

    /// Encrypts what a packet carries; the nonce must never repeat, so it is random.
    pub fn seal(&self, nonce: &[u8; NONCE_BYTES], header: &[u8], bytes: &[u8]) -> Vec<u8> {
        seal(&self.key, nonce, header, bytes)
    }

    /// Decrypts what a packet carries.
    pub fn open(&self, nonce: &[u8; NONCE_BYTES], header: &[u8], bytes: &[u8]) -> Result<Vec<u8>, DecryptError> {
        open(&self.key, nonce, header, bytes)
    }
}

impl std::fmt::Debug for TransitSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TransitSecret({})", self.id)
    }
}

/// The key of one object, under which the chunks of its content rest.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct ObjectKey {
    chunks: [u8; 32],
    nonces: [u8; 32],
}

impl ObjectKey {
    /// From the secret that the row of the object holds.
    pub fn new(secret: &[u8; 32]) -> ObjectKey {
        ObjectKey {
            chunks: blake3::derive_key("anteroom v1 object encryption", secret),
            nonces: blake3::derive_key("anteroom v1 object nonce", secret),
        }
    }

    /// Nonce and ciphertext of a chunk, bound to the object, its place, and whether it is the last. The nonce follows from
    /// all of that and the chunk: an upload that goes on after a crash may write another chunk to the same place.
    pub fn seal_chunk(&self, name: &ObjectName, index: u64, is_last: bool, chunk: &[u8]) -> Vec<u8> {
        let binding = object_binding(name, index, is_last);
        let nonce = keyed_nonce(&self.nonces, &[&binding, chunk]);
        let mut out = Vec::with_capacity(NONCE_BYTES + chunk.len() + TAG_BYTES);
        out.extend(nonce);
        crate::aead::seal_onto(&mut out, &self.chunks, &nonce, &binding, chunk);
        out
    }

    /// Opens a chunk, if it is the one of that object and place.
    pub fn open_chunk(
        &self,
        name: &ObjectName,
        index: u64,
        is_last: bool,
        sealed: &[u8],
    ) -> Result<Vec<u8>, DecryptError> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>().ok_or(DecryptError)?;
        open(&self.chunks, nonce, &object_binding(name, index, is_last), sealed)
    }
}

impl std::fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ObjectKey")
    }
}

fn object_binding(name: &ObjectName, index: u64, is_last: bool) -> [u8; 25] {
    let mut binding = [0; 25];
    binding[..16].copy_from_slice(&name.0);
    binding[16..24].copy_from_slice(&index.to_be_bytes());
    binding[24] = u8::from(is_last);
    binding
}

/// A secret, made from a passphrase, under which a bundle carries keys.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct BundleSecret {
    key: [u8; 32],
}

impl BundleSecret {
    pub fn new(secret: [u8; 32]) -> BundleSecret {
        BundleSecret { key: blake3::derive_key("anteroom v1 bundle encryption", &secret) }
    }

    /// Encrypts what a bundle carries; the nonce must never repeat, so it is random.
    pub fn seal(&self, nonce: &[u8; NONCE_BYTES], header: &[u8], bytes: &[u8]) -> Vec<u8> {
        seal(&self.key, nonce, header, bytes)
    }

    /// Decrypts what a bundle carries.
    pub fn open(&self, nonce: &[u8; NONCE_BYTES], header: &[u8], bytes: &[u8]) -> Result<Vec<u8>, DecryptError> {
        open(&self.key, nonce, header, bytes)
    }
}

impl std::fmt::Debug for BundleSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BundleSecret")
    }
}

/// The ephemeral secret of a key event's box: derived, so that one envelope has one blob.
pub fn box_secret(carried: &[u8; 32], envelope: &[u8]) -> [u8; 32] {
    let key = blake3::derive_key("anteroom v1 key event box", carried);
    *blake3::keyed_hash(&key, envelope).as_bytes()
}

/// Seals bytes to the holder of a prekey.
pub fn seal_box(ephemeral: &[u8; 32], prekey: &[u8; 32], header: &[u8], bytes: &[u8]) -> Result<Vec<u8>, DecryptError> {
    let secret = StaticSecret::from(*ephemeral);
    let public = PublicKey::from(&secret).to_bytes();
    let shared = secret.diffie_hellman(&PublicKey::from(*prekey));
    if !shared.was_contributory() {
        return Err(DecryptError);
    }
    let (key, nonce) = box_key(shared.as_bytes(), &public, prekey);
    let mut sealed = public.to_vec();
    sealed.extend(seal(&key, &nonce, header, bytes));
    Ok(sealed)
}

/// Opens a box with the secret of the prekey it was sealed to. Also gives the ephemeral public key.
pub fn open_box(secret: &[u8; 32], header: &[u8], sealed: &[u8]) -> Result<([u8; 32], Vec<u8>), DecryptError> {
    let (public, bytes) = sealed.split_first_chunk::<32>().ok_or(DecryptError)?;
    let secret = StaticSecret::from(*secret);
    let prekey = PublicKey::from(&secret).to_bytes();
    let shared = secret.diffie_hellman(&PublicKey::from(*public));
    if !shared.was_contributory() {
        return Err(DecryptError);
    }
    let (key, nonce) = box_key(shared.as_bytes(), public, &prekey);
    Ok((*public, open(&key, &nonce, header, bytes)?))
}

/// The nonce for a value that rests under a name. It follows from both, so that nothing has to be drawn: equal values
/// under one name give equal bytes, and different ones never share a nonce.
pub fn nonce_of_value(key: &[u8; 32], name: &[u8], value: &[u8]) -> [u8; NONCE_BYTES] {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&(name.len() as u64).to_be_bytes());
    hasher.update(name);
    hasher.update(value);
    first_bytes(&hasher)
}

/// The nonce for these parts under a key for nonces: keyed BLAKE3 of each part with its length.
fn keyed_nonce(key: &[u8; 32], parts: &[&[u8]]) -> [u8; NONCE_BYTES] {
    let mut hasher = blake3::Hasher::new_keyed(key);
    for part in parts {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    first_bytes(&hasher)
}

fn first_bytes(hasher: &blake3::Hasher) -> [u8; NONCE_BYTES] {
    let mut nonce = [0; NONCE_BYTES];
    nonce.copy_from_slice(&hasher.finalize().as_bytes()[..NONCE_BYTES]);
    nonce
}

fn box_key(shared: &[u8; 32], ephemeral: &[u8; 32], prekey: &[u8; 32]) -> ([u8; 32], [u8; NONCE_BYTES]) {
    let mut hasher = blake3::Hasher::new_derive_key("anteroom v1 sealed box");
    hasher.update(shared);
    hasher.update(ephemeral);
    hasher.update(prekey);
    let mut output = [0; 32 + NONCE_BYTES];
    hasher.finalize_xof().fill(&mut output);
    let (key, nonce) = output.split_at(32);
    let mut parts = ([0; 32], [0; NONCE_BYTES]);
    parts.0.copy_from_slice(key);
    parts.1.copy_from_slice(nonce);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_opens_only_with_its_prekey_and_header() {
        let secret = [5; 32];
        let sealed = seal_box(&[9; 32], &prekey_public(&secret), b"head", b"hello").expect("sealed");
        let (public, opened) = open_box(&secret, b"head", &sealed).expect("opened");
        assert_eq!((public, opened.as_slice()), (prekey_public(&[9; 32]), b"hello".as_slice()));
        assert!(open_box(&[6; 32], b"head", &sealed).is_err());
        assert!(open_box(&secret, b"hea", &sealed).is_err());
    }

    #[test]
    fn a_box_to_a_weak_prekey_is_refused() {
        assert_eq!(seal_box(&[9; 32], &[0; 32], b"", b"x"), Err(DecryptError));
    }

    #[test]
    fn ids_of_different_things_differ() {
        let who = Identity([1; 32]);
        assert_ne!(space_id(&who, &AuxKey([2; 16]), true), space_id(&who, &AuxKey([2; 16]), false));
        assert_eq!(public_space(&who), space_id(&who, &AuxKey::ZERO, false));
    }
}
