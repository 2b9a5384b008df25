//! Files at rest: a header, then chunks that are sealed one by one, so that a part can be read without the rest.
//!
//! Every file has a key of its own, from the index's key, the file's name and a salt in its header. A chunk's nonce is
//! its number and whether it is the last. So nothing can be moved to another place, exchanged between files, or cut off
//! without being noticed, and no nonce is used twice.

use model::aead::{self, TAG_BYTES};
use std::io;
use zeroize::Zeroizing;

/// Small enough that reading a few words decrypts little, large enough that tags cost nothing.
pub(crate) const CHUNK_BYTES: usize = 16 * 1024;
/// A whole chunk as it rests.
pub(crate) const SEALED_BYTES: usize = CHUNK_BYTES + TAG_BYTES;
const MAGIC: [u8; 4] = *b"ANS1";
const SALT_BYTES: usize = 32;
/// What stands before the first chunk.
pub(crate) const HEADER_BYTES: usize = MAGIC.len() + SALT_BYTES;

/// What a file of this length holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// How many bytes, decrypted.
    pub(crate) plain: usize,
    /// In how many chunks; an empty file has one too.
    pub(crate) chunks: usize,
}

impl Layout {
    /// Reads it from the length at rest.
    pub(crate) fn of(file_bytes: u64) -> io::Result<Layout> {
        let sealed = usize::try_from(file_bytes).ok().and_then(|bytes| bytes.checked_sub(HEADER_BYTES));
        let chunks = sealed.map_or(0, |sealed| sealed.div_ceil(SEALED_BYTES));
        let plain = sealed.and_then(|sealed| sealed.checked_sub(chunks.checked_mul(TAG_BYTES)?));
        match plain {
            Some(plain) if chunks == plain.div_ceil(CHUNK_BYTES).max(1) => Ok(Layout { plain, chunks }),
            _ => Err(damaged("its length is none that a file has")),
        }
    }

    /// How many bytes a chunk has at rest.
    pub(crate) fn sealed_bytes(self, number: usize) -> usize {
        if number + 1 < self.chunks { SEALED_BYTES } else { self.plain - number * CHUNK_BYTES + TAG_BYTES }
    }
}

/// The cipher of one file.
pub(crate) struct FileCipher(Zeroizing<[u8; 32]>);

impl FileCipher {
    /// For a new file: the cipher, and the header to begin it with.
    pub(crate) fn begin(key: &[u8; 32], name: &str) -> io::Result<(FileCipher, [u8; HEADER_BYTES])> {
        let mut header = [0; HEADER_BYTES];
        header[..MAGIC.len()].copy_from_slice(&MAGIC);
        getrandom::fill(&mut header[MAGIC.len()..]).map_err(|_| io::Error::other("the system gives no randomness"))?;
        Ok((FileCipher::new(key, name, &header), header))
    }

    /// For a file that is there.
    pub(crate) fn resume(key: &[u8; 32], name: &str, header: &[u8; HEADER_BYTES]) -> io::Result<FileCipher> {
        match header.starts_with(&MAGIC) {
            true => Ok(FileCipher::new(key, name, header)),
            false => Err(damaged("it begins with something else")),
        }
    }

    fn new(key: &[u8; 32], name: &str, header: &[u8; HEADER_BYTES]) -> FileCipher {
        let mut hasher = blake3::Hasher::new_keyed(key);
        hasher.update(b"anteroom v1 file of a search index");
        // The header has a fixed length, so the name needs no separator.
        hasher.update(header);
        hasher.update(name.as_bytes());
        FileCipher(Zeroizing::new(*hasher.finalize().as_bytes()))
    }

    /// Seals a chunk.
    pub(crate) fn seal(&self, number: usize, is_last: bool, plain: &[u8]) -> Vec<u8> {
        aead::seal(&self.0, &nonce(number, is_last), &[], plain)
    }

    /// Opens a chunk.
    pub(crate) fn open(&self, number: usize, is_last: bool, sealed: &[u8]) -> io::Result<Vec<u8>> {
        let plain = aead::open(&self.0, &nonce(number, is_last), &[], sealed);
        plain.map_err(|_| damaged("a chunk is not what was written, or the key is another"))
    }
}

fn nonce(number: usize, is_last: bool) -> [u8; 24] {
    let mut nonce = [0; 24];
    nonce[..8].copy_from_slice(&(number as u64).to_be_bytes());
    nonce[8] = u8::from(is_last);
    nonce
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_tells_the_layout() {
        for plain in [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES] {
            let chunks = plain.div_ceil(CHUNK_BYTES).max(1);
            let layout = Layout { plain, chunks };
            let sealed: usize = (0..chunks).map(|number| layout.sealed_bytes(number)).sum();
            assert_eq!(Layout::of((HEADER_BYTES + sealed) as u64).expect("a layout"), layout);
        }
        for bad in [0, HEADER_BYTES, HEADER_BYTES + TAG_BYTES - 1, HEADER_BYTES + SEALED_BYTES + TAG_BYTES] {
            assert!(Layout::of(bad as u64).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_chunk_opens_in_its_place_only() {
        let (cipher, header) = FileCipher::begin(&[1; 32], "a").expect("a cipher");
        let sealed = cipher.seal(3, false, b"words");
        let again = FileCipher::resume(&[1; 32], "a", &header).expect("a cipher");
        assert_eq!(again.open(3, false, &sealed).expect("opened"), b"words");
        assert!(again.open(2, false, &sealed).is_err());
        assert!(again.open(3, true, &sealed).is_err());
        for (key, name) in [([1; 32], "b"), ([2; 32], "a")] {
            assert!(FileCipher::resume(&key, name, &header).expect("a cipher").open(3, false, &sealed).is_err());
        }
    }
}
