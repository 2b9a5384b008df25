//! Content: the bulk an event carries, as it travels.
//!
//! In an open space content travels as it is. In a sealed space it is cut into chunks, each sealed under the space key
//! with a nonce derived from its position, whether it is the last, and its bytes; equal content is equal bytes inside
//! the space, and any range can be read by opening the chunks that cover it. Inline content also binds author and
//! time, so that those who merely carry it cannot compare.

use crate::crypto::{DecryptError, NONCE_BYTES, SpaceKey};
use crate::envelope::Envelope;
use crate::ids::{Identity, Nanos};
use crate::limits::{CHUNK_BYTES, CHUNK_OVERHEAD_BYTES};

/// What a chunk is bound to beside its own bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkBinding {
    /// Content that is stored once per space and shared.
    Shared,
    /// Content that rests in its event's own row.
    Inline { author: Identity, at: Nanos },
}

impl ChunkBinding {
    /// The binding of an envelope's content, given the greatest length that is inline.
    pub fn of(envelope: &Envelope, inline_max: u64) -> ChunkBinding {
        if envelope.content_len <= inline_max {
            ChunkBinding::Inline { author: envelope.author, at: envelope.created_at }
        } else {
            ChunkBinding::Shared
        }
    }

    fn bytes(&self, index: u64, last: bool) -> Vec<u8> {
        let mut bytes = index.to_be_bytes().to_vec();
        bytes.push(u8::from(last));
        match self {
            ChunkBinding::Shared => bytes.push(0),
            ChunkBinding::Inline { author, at } => {
                bytes.push(1);
                bytes.extend(author.0);
                bytes.extend(at.0.to_be_bytes());
            }
        }
        bytes
    }
}

/// How many bytes travel for so many bytes of plaintext in a sealed space.
pub fn sealed_len(plain_len: u64) -> u64 {
    plain_len + plain_len.div_ceil(CHUNK_BYTES as u64) * CHUNK_OVERHEAD_BYTES as u64
}

/// Seals content of a sealed space. Empty content stays empty.
pub fn seal_content(key: &SpaceKey, plain: &[u8], inline_max: u64, author: Identity, at: Nanos) -> Vec<u8> {
    let inline = sealed_len(plain.len() as u64) <= inline_max;
    let binding = if inline { ChunkBinding::Inline { author, at } } else { ChunkBinding::Shared };
    let count = plain.len().div_ceil(CHUNK_BYTES);
    let mut wire = Vec::with_capacity(sealed_len(plain.len() as u64) as usize);
    for (index, chunk) in plain.chunks(CHUNK_BYTES).enumerate() {
        wire.extend(seal_one(key, binding, index as u64, index + 1 == count, chunk));
    }
    wire
}

fn seal_one(key: &SpaceKey, binding: ChunkBinding, index: u64, last: bool, chunk: &[u8]) -> Vec<u8> {
    let binding = binding.bytes(index, last);
    let nonce = key.content_nonce(&binding, chunk);
    let mut wire = nonce.to_vec();
    wire.extend(key.seal_chunk(&nonce, &binding, chunk));
    wire
}

/// Seals one chunk of content that is shared within its space: for content that comes in a stream.
pub fn seal_chunk(key: &SpaceKey, index: u64, last: bool, chunk: &[u8]) -> Vec<u8> {
    seal_one(key, ChunkBinding::Shared, index, last, chunk)
}

/// Opens content of a sealed space, all of it.
pub fn open_content(key: &SpaceKey, wire: &[u8], binding: ChunkBinding) -> Result<Vec<u8>, DecryptError> {
    let size = CHUNK_BYTES + CHUNK_OVERHEAD_BYTES;
    let count = wire.len().div_ceil(size);
    let mut plain = Vec::with_capacity(wire.len());
    for (index, chunk) in wire.chunks(size).enumerate() {
        plain.extend(open_one(key, binding, index as u64, index + 1 == count, chunk)?);
    }
    Ok(plain)
}

/// Opens the chunk of that index, as read from its place in the content: `index * (CHUNK_BYTES + overhead)`.
pub fn open_chunk(
    key: &SpaceKey,
    binding: ChunkBinding,
    index: u64,
    last: bool,
    wire: &[u8],
) -> Result<Vec<u8>, DecryptError> {
    open_one(key, binding, index, last, wire)
}

fn open_one(
    key: &SpaceKey,
    binding: ChunkBinding,
    index: u64,
    last: bool,
    wire: &[u8],
) -> Result<Vec<u8>, DecryptError> {
    let (nonce, sealed) = wire.split_first_chunk::<NONCE_BYTES>().ok_or(DecryptError)?;
    let binding = binding.bytes(index, last);
    let plain = key.open_chunk(nonce, &binding, sealed)?;
    // Only the canonical sealing opens: it is recomputed, and no empty or oversized chunk is ever made.
    if plain.is_empty() || plain.len() > CHUNK_BYTES || key.content_nonce(&binding, &plain) != *nonce {
        return Err(DecryptError);
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SpaceId;
    use proptest::prelude::*;

    fn key() -> SpaceKey {
        SpaceKey::new(&SpaceId([1; 16]), [2; 32])
    }

    const WHO: Identity = Identity([3; 32]);

    #[test]
    fn shared_content_is_equal_for_equal_bytes_and_inline_is_not() {
        let big = vec![7; 5000];
        let one = seal_content(&key(), &big, 1024, WHO, Nanos(1));
        assert_eq!(one, seal_content(&key(), &big, 1024, WHO, Nanos(2)));
        let small = seal_content(&key(), b"hello", 1024, WHO, Nanos(1));
        assert_ne!(small, seal_content(&key(), b"hello", 1024, WHO, Nanos(2)));
        assert_eq!(small.len() as u64, sealed_len(5));
    }

    #[test]
    fn chunks_cannot_be_reordered_cut_or_lengthened() {
        let plain: Vec<u8> = (0..3 * CHUNK_BYTES as u32).map(|n| (n / 1000) as u8).collect();
        let wire = seal_content(&key(), &plain, 1024, WHO, Nanos(1));
        assert_eq!(open_content(&key(), &wire, ChunkBinding::Shared), Ok(plain));
        let size = CHUNK_BYTES + CHUNK_OVERHEAD_BYTES;
        assert!(open_content(&key(), &wire[..2 * size], ChunkBinding::Shared).is_err(), "cut");
        assert!(open_content(&key(), &wire[size..], ChunkBinding::Shared).is_err(), "shifted");
        let doubled = [&wire[..], &wire[2 * size..]].concat();
        assert!(open_content(&key(), &doubled, ChunkBinding::Shared).is_err(), "lengthened");
    }

    #[test]
    fn only_the_one_sealing_of_a_chunk_opens() {
        let binding = ChunkBinding::Shared.bytes(0, true);
        let sealed = |nonce: [u8; NONCE_BYTES], plain: &[u8]| {
            [nonce.to_vec(), key().seal_chunk(&nonce, &binding, plain)].concat()
        };
        let opens = |wire: &[u8]| open_chunk(&key(), ChunkBinding::Shared, 0, true, wire).is_ok();
        assert!(opens(&sealed(key().content_nonce(&binding, b"x"), b"x")));
        assert!(!opens(&sealed([5; NONCE_BYTES], b"x")), "another nonce makes another hash of the same content");
        assert!(!opens(&sealed(key().content_nonce(&binding, b""), b"")), "empty");
        let long = vec![1; CHUNK_BYTES + 1];
        assert!(!opens(&sealed(key().content_nonce(&binding, &long), &long)), "longer than a chunk");
    }

    #[test]
    fn a_range_opens_by_itself() {
        let plain: Vec<u8> = (0..CHUNK_BYTES + 10).map(|n| n as u8).collect();
        let wire = seal_content(&key(), &plain, 1024, WHO, Nanos(1));
        let second = &wire[CHUNK_BYTES + CHUNK_OVERHEAD_BYTES..];
        assert_eq!(open_chunk(&key(), ChunkBinding::Shared, 1, true, second).as_deref(), Ok(&plain[CHUNK_BYTES..]));
    }

    proptest! {
        #[test]
        fn any_flipped_byte_is_refused(plain in proptest::collection::vec(any::<u8>(), 1..2000), at: usize, bit in 0..8u32) {
            let binding = if sealed_len(plain.len() as u64) <= 1024 {
                ChunkBinding::Inline { author: WHO, at: Nanos(9) }
            } else {
                ChunkBinding::Shared
            };
            let mut wire = seal_content(&key(), &plain, 1024, WHO, Nanos(9));
            prop_assert_eq!(open_content(&key(), &wire, binding), Ok(plain));
            let at = at % wire.len();
            wire[at] ^= 1 << bit;
            prop_assert!(open_content(&key(), &wire, binding).is_err());
        }
    }
}
