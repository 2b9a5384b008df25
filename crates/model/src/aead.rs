//! XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha), put together from two libraries.
//!
//! HChaCha20 makes a key of its own from the key and two thirds of the nonce, and ring's ChaCha20-Poly1305 does the
//! rest with it. The pure Rust cipher gives the same bytes, which the tests compare; it needs six times as long for a
//! message of a few hundred bytes, and every page of an encrypted space waits for fifty of them.

use chacha20::{R20, hchacha};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroizing;

pub const NONCE_BYTES: usize = 24;
/// Bytes of an authentication tag.
pub const TAG_BYTES: usize = 16;

/// The bytes could not be opened: wrong key, or changed on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot be opened: wrong key, or changed on the way")]
pub struct DecryptError;

/// Encrypts bytes under a key that is used for this one purpose.
pub fn seal(key: &[u8; 32], nonce: &[u8; NONCE_BYTES], header: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + TAG_BYTES);
    seal_onto(&mut out, key, nonce, header, bytes);
    out
}

/// Encrypts bytes and appends them to others.
pub fn seal_onto(out: &mut Vec<u8>, key: &[u8; 32], nonce: &[u8; NONCE_BYTES], header: &[u8], bytes: &[u8]) {
    let begin = out.len();
    out.extend_from_slice(bytes);
    let tag = of_nonce(key, nonce)
        .and_then(|(key, nonce)| key.seal_in_place_separate_tag(nonce, Aad::from(header), &mut out[begin..]).ok());
    match tag {
        Some(tag) => out.extend_from_slice(tag.as_ref()),
        // The cipher fails only beyond 256 GiB, and every caller bounds what it hands over far below.
        None => out.truncate(begin),
    }
}

/// Decrypts bytes, if neither they nor the header were changed.
pub fn open(key: &[u8; 32], nonce: &[u8; NONCE_BYTES], header: &[u8], bytes: &[u8]) -> Result<Vec<u8>, DecryptError> {
    let (key, nonce) = of_nonce(key, nonce).ok_or(DecryptError)?;
    let mut opened = bytes.to_vec();
    let length = key.open_in_place(nonce, Aad::from(header), &mut opened).map_err(|_| DecryptError)?.len();
    opened.truncate(length);
    Ok(opened)
}

/// The key that belongs to a nonce, and what is left of the nonce.
fn of_nonce(key: &[u8; 32], nonce: &[u8; NONCE_BYTES]) -> Option<(LessSafeKey, Nonce)> {
    let (first, last) = nonce.split_first_chunk::<16>()?;
    let derived = Zeroizing::new(<[u8; 32]>::from(hchacha::<R20>(key.into(), first.into())));
    let mut short = [0; 12];
    short[4..].copy_from_slice(last);
    let key = LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, derived.as_slice()).ok()?);
    Some((key, Nonce::assume_unique_for_key(short)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20poly1305::aead::{Aead as _, Payload};
    use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305};
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_gives_the_bytes_of_another_implementation(
            (key, nonce) in any::<([u8; 32], [u8; 24])>(),
            header in vec(any::<u8>(), 0..80),
            bytes in vec(any::<u8>(), 0..600),
        ) {
            let other = XChaCha20Poly1305::new((&key).into());
            let expected = other.encrypt((&nonce).into(), Payload { msg: &bytes, aad: &header }).expect("sealed");
            prop_assert_eq!(&seal(&key, &nonce, &header, &bytes), &expected);
            prop_assert_eq!(open(&key, &nonce, &header, &expected), Ok(bytes));
        }
    }

    #[test]
    fn what_was_changed_or_cut_does_not_open() {
        let sealed = seal(&[1; 32], &[2; 24], b"head", b"hello");
        assert_eq!(open(&[1; 32], &[2; 24], b"head", &sealed).as_deref(), Ok(b"hello".as_slice()));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(open(&[1; 32], &[2; 24], b"head", &changed), Err(DecryptError), "byte {at}");
            assert_eq!(open(&[1; 32], &[2; 24], b"head", &sealed[..at]), Err(DecryptError), "cut at {at}");
        }
        assert_eq!(open(&[3; 32], &[2; 24], b"head", &sealed), Err(DecryptError));
        assert_eq!(open(&[1; 32], &[3; 24], b"head", &sealed), Err(DecryptError));
        assert_eq!(open(&[1; 32], &[2; 24], b"hea", &sealed), Err(DecryptError));
    }
}
