//! Encryption at rest, told in the order of its keys.
//!
//! The master key wraps everything secret. Under it stand the storage keys of each space, drawn at random when the
//! first thing of that space is protected, numbered from one; the newest writes, all of them read, and once they are
//! destroyed nobody reads. Under a storage key rest shared and local rows about the space and, where the space is open, its
//! content: whole, or named fields of its JSON, or not at all, as the space's [`Protection`] says. Content of sealed
//! spaces rests as it travels, which is sealed.
//!
//! A value begins with a tag that tells its form, and names the number of its key; nothing is guessed. Every
//! ciphertext is bound to the space and to what the value is called: the event, the hash, the row.

pub(crate) mod fields;
mod inline;
mod key_source;
pub mod master;
mod protection;
mod storage_key;

pub(crate) use inline::Inline;
pub use key_source::KeySource;
pub use protection::{BadPath, Protection};
pub(crate) use storage_key::StorageKey;

use model::{ContentHash, EventId, SpaceId};

/// The row with the old master key, wrapped under the new, while rows are wrapped anew.
pub(crate) const PREVIOUS: &str = "previous master";
/// The row with the key of the index of names, which outlives a change of the master key.
pub(crate) const INDEX: &str = "index key";

/// The row with the cursor of the walk that encrypts all rows anew.
pub(crate) const SWEEP: &str = "sweep";

/// The bytes follow as they travel.
pub(crate) const TAG_PLAIN: u8 = 0;
/// Wrapped under the master key, which older rows do not name.
pub(crate) const TAG_WRAPPED: u8 = 1;
/// Number of the storage key, nonce, ciphertext of the whole value.
pub(crate) const TAG_WHOLE: u8 = 2;
/// Number of the storage key, JSON in which some values are replaced by their ciphertext.
pub(crate) const TAG_FIELDS: u8 = 3;
/// Wrapped under the master key that it names.
pub(crate) const TAG_WRAPPED_NAMED: u8 = 4;

/// What inline content is called.
pub(crate) fn inline_name(id: &EventId) -> [u8; 22] {
    let mut name = *b"inline................";
    name[6..].copy_from_slice(&id.0);
    name
}

/// What larger content is called.
pub(crate) fn content_name(hash: &ContentHash) -> [u8; 39] {
    let mut name = *b"content................................";
    name[7..].copy_from_slice(&hash.0);
    name
}

/// A value's name within its space, which every ciphertext is bound to.
pub(crate) fn full_name(space: &SpaceId, name: &[u8]) -> Vec<u8> {
    [space.0.as_slice(), name].concat()
}

#[cfg(test)]
mod tests;
