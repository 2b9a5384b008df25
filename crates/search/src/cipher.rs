//! The format of encrypted index files: a header, then chunks that are encrypted separately, so that ranges can be read.
//!
//! Every file has its own key, derived from the index key, the file name and a salt in the header. The nonce of a chunk
//! is its number and a last-chunk flag. So moved, exchanged or truncated chunks fail authentication, and no nonce is used
//! twice.

use model::aead::{self, TAG_BYTES};
use std::io;
use zeroize::Zeroizing;

/// Small enough that reading a few words decrypts little, large enough that the tags cost little space.
pub(crate) const CHUNK_BYTES: usize = 16 * 1024;
/// The size of a full chunk in the file.
pub(crate) const SEALED_CHUNK_BYTES: usize = CHUNK_BYTES + TAG_BYTES;
const MAGIC: [u8; 4] = *b"ANS1";
const SALT_BYTES: usize = 32;
pub(crate) const HEADER_BYTES: usize = MAGIC.len() + SALT_BYTES;

/// The layout of a file, which follows from its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileLayout {
    pub(crate) plain_bytes: usize,
    /// At least one, also for an empty file.
    pub(crate) chunks: usize,
}

impl FileLayout {
    pub(crate) fn from_length(file_bytes: u64) -> io::Result<FileLayout> {
        let sealed = usize::try_from(file_bytes).ok().and_then(|bytes| bytes.checked_sub(HEADER_BYTES));
        let chunks = sealed.map_or(0, |sealed| sealed.div_ceil(SEALED_CHUNK_BYTES));
        let plain = sealed.and_then(|sealed| sealed.checked_sub(chunks.checked_mul(TAG_BYTES)?));
        match plain {
            Some(plain) if chunks == plain.div_ceil(CHUNK_BYTES).max(1) => {
                Ok(FileLayout { plain_bytes: plain, chunks })
            }
            _ => Err(damaged("the file has an impossible length")),
        }
    }

    /// The size of a chunk in the file.
    pub(crate) fn sealed_bytes(self, number: usize) -> usize {
        if number + 1 < self.chunks { SEALED_CHUNK_BYTES } else { self.plain_bytes - number * CHUNK_BYTES + TAG_BYTES }
    }
}

/// Encrypts and decrypts the chunks of one file.
pub(crate) struct FileCipher(Zeroizing<[u8; 32]>);

impl FileCipher {
    /// For a new file, with the header to write first.
    pub(crate) fn for_new_file(key: &[u8; 32], name: &str) -> io::Result<(FileCipher, [u8; HEADER_BYTES])> {
        let mut header = [0; HEADER_BYTES];
        header[..MAGIC.len()].copy_from_slice(&MAGIC);
        getrandom::fill(&mut header[MAGIC.len()..])
            .map_err(|_| io::Error::other("the operating system provides no random numbers"))?;
        Ok((FileCipher::new(key, name, &header), header))
    }

    pub(crate) fn for_existing_file(key: &[u8; 32], name: &str, header: &[u8; HEADER_BYTES]) -> io::Result<FileCipher> {
        match header.starts_with(&MAGIC) {
            true => Ok(FileCipher::new(key, name, header)),
            false => Err(damaged("the file header is not that of an index file")),
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

    pub(crate) fn seal_chunk(&self, number: usize, is_last: bool, plain: &[u8]) -> Vec<u8> {
        aead::seal(&self.0, &nonce(number, is_last), &[], plain)
    }

    pub(crate) fn open_chunk(&self, number: usize, is_last: bool, sealed: &[u8]) -> io::Result<Vec<u8>> {
        let plain = aead::open(&self.0, &nonce(number, is_last), &[], sealed);
        plain.map_err(|_| damaged("a chunk is damaged, or the key is wrong"))
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
    fn the_layout_follows_from_the_length() {
        for plain in [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES] {
            let chunks = plain.div_ceil(CHUNK_BYTES).max(1);
            let layout = FileLayout { plain_bytes: plain, chunks };
            let sealed: usize = (0..chunks).map(|number| layout.sealed_bytes(number)).sum();
            assert_eq!(FileLayout::from_length((HEADER_BYTES + sealed) as u64).expect("a layout"), layout);
        }
        for bad in [0, HEADER_BYTES, HEADER_BYTES + TAG_BYTES - 1, HEADER_BYTES + SEALED_CHUNK_BYTES + TAG_BYTES] {
            assert!(FileLayout::from_length(bad as u64).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_chunk_opens_only_at_its_own_position() {
        let (cipher, header) = FileCipher::for_new_file(&[1; 32], "a").expect("a cipher");
        let sealed = cipher.seal_chunk(3, false, b"words");
        let again = FileCipher::for_existing_file(&[1; 32], "a", &header).expect("a cipher");
        assert_eq!(again.open_chunk(3, false, &sealed).expect("opened"), b"words");
        assert!(again.open_chunk(2, false, &sealed).is_err());
        assert!(again.open_chunk(3, true, &sealed).is_err());
        for (key, name) in [([1; 32], "b"), ([2; 32], "a")] {
            assert!(
                FileCipher::for_existing_file(&key, name, &header)
                    .expect("a cipher")
                    .open_chunk(3, false, &sealed)
                    .is_err()
            );
        }
    }
}
