//! Encryption at rest, told in the order of its keys.
//!
//! The master key wraps everything secret. Under it stand the storage keys of each space, drawn by chance when the
//! first thing of that space is protected, numbered from one; the newest writes, all of them read, and once they are
//! destroyed nobody reads. Under a storage key rest the local rows of the space and, where the space is open, its
//! content: whole, or named fields of its JSON, or not at all, as the space's [`Protection`] says. Content of sealed
//! spaces rests as it travels, which is sealed.
//!
//! A value begins with a tag that tells its form, and names the number of its key; nothing is guessed. Every
//! ciphertext is bound to the space and to what the value is called: the event, the hash, the row.

mod destroying;
mod fields;
mod migrate;
mod protection;
mod random;
mod reading;
mod rewrap;
mod storage_key;
mod sweep;
mod writing;

pub(crate) use migrate::tag_contents;
pub use protection::{BadPath, Protection};
pub use random::KeySource;
pub(crate) use reading::{Inline, number_of};
pub(crate) use rewrap::{INDEX, PREVIOUS};
pub(crate) use storage_key::StorageKey;
pub use sweep::SweepProgress;
pub(crate) use writing::Writing;

use model::{ContentHash, EventId, SpaceId};

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
    crate::encode::key(&[b"inline", &id.0])
}

/// What larger content is called.
pub(crate) fn content_name(hash: &ContentHash) -> [u8; 39] {
    crate::encode::key(&[b"content", &hash.0])
}

/// A value's name within its space, which every ciphertext is bound to.
fn full_name(space: &SpaceId, name: &[u8]) -> Vec<u8> {
    [space.0.as_slice(), name].concat()
}

/// The row of a storage key, which is also the name that it is wrapped under.
pub(crate) fn storage_row(space: &SpaceId, number: u32) -> [u8; 20] {
    crate::encode::key(&[&space.0, &number.to_be_bytes()])
}

#[cfg(test)]
mod tests;
