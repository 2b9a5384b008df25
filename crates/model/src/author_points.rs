//! The public keys of authors who wrote lately, as points of the curve. Computing the point is a tenth of checking a
//! signature, and most events come from few authors.

use crate::ids::Identity;
use ed25519_dalek::VerifyingKey;
use std::cell::RefCell;

/// So many per thread, less than a mebibyte. Authors whose keys begin alike take each other's place, which costs time only.
const AUTHORS_MAX: usize = 4096;

thread_local! {
    static LATELY: RefCell<Vec<Option<VerifyingKey>>> = const { RefCell::new(Vec::new()) };
}

/// The key of an author, or none if it is not a point of the curve.
pub(crate) fn verifying_key(author: &Identity) -> Option<VerifyingKey> {
    LATELY.with_borrow_mut(|lately| {
        lately.resize(AUTHORS_MAX, None);
        let slot = lately.get_mut(usize::from(u16::from_be_bytes([author.0[0], author.0[1]])) % AUTHORS_MAX)?;
        if slot.is_none_or(|known| *known.as_bytes() != author.0) {
            *slot = Some(VerifyingKey::from_bytes(&author.0).ok()?);
        }
        *slot
    })
}

#[cfg(test)]
mod tests {
    use super::verifying_key;
    use crate::ids::Identity;
    use ed25519_dalek::{SigningKey, VerifyingKey};
    use std::collections::HashSet;

    #[test]
    fn each_author_has_their_own_key_however_many_share_a_place() {
        let authors: Vec<Identity> = (0..2000_u32)
            .map(|number| {
                let mut seed = [7; 32];
                seed[..4].copy_from_slice(&number.to_be_bytes());
                Identity(SigningKey::from_bytes(&seed).verifying_key().to_bytes())
            })
            .collect();
        let places = |author: &Identity| u16::from_be_bytes([author.0[0], author.0[1]]) % 4096;
        let taken: HashSet<u16> = authors.iter().map(places).collect();
        assert!(taken.len() < authors.len());
        for author in authors.iter().chain(authors.iter().rev()) {
            for _ in 0..2 {
                assert_eq!(verifying_key(author), VerifyingKey::from_bytes(&author.0).ok());
            }
        }
    }

    #[test]
    fn what_is_no_point_of_the_curve_is_nobody_even_after_somebody_in_the_same_place() {
        let no_point = (0..=u8::MAX)
            .map(|last| Identity([[9; 31].as_slice(), &[last]].concat().try_into().expect("32 bytes")))
            .find(|author| VerifyingKey::from_bytes(&author.0).is_err())
            .expect("half of them");
        let somebody = (0..=u8::MAX)
            .map(|last| Identity([[9; 31].as_slice(), &[last]].concat().try_into().expect("32 bytes")))
            .find(|author| VerifyingKey::from_bytes(&author.0).is_ok())
            .expect("the other half");
        assert!(verifying_key(&somebody).is_some());
        assert_eq!(verifying_key(&no_point), None);
        assert!(verifying_key(&somebody).is_some());
    }
}
