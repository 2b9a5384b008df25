//! Signatures that were used lately, so that none is used twice.

use queries::sync::lock;
use std::collections::{BTreeSet, HashSet};
use std::sync::Mutex;

/// More signatures than this within the window are refused rather than forgotten.
const NONCES_MAX: usize = 1_000_000;

/// What was used within the window.
#[derive(Debug, Default)]
pub(crate) struct NonceCache(Mutex<Used>);

#[derive(Debug, Default)]
struct Used {
    seen: HashSet<[u8; 16]>,
    by_age: BTreeSet<(u64, [u8; 16])>,
}

impl NonceCache {
    /// Notes that something was used. Returns whether that is new; nothing if there is no room to note it.
    pub(crate) fn is_new(&self, what: [u8; 16], until: u64, now: u64) -> Option<bool> {
        let mut used = lock(&self.0);
        while let Some((ends, old)) = used.by_age.first().copied().filter(|(ends, _)| *ends < now) {
            used.by_age.remove(&(ends, old));
            used.seen.remove(&old);
        }
        if used.seen.len() >= NONCES_MAX {
            return None;
        }
        let is_new = used.seen.insert(what);
        if is_new {
            used.by_age.insert((until, what));
        }
        Some(is_new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_used_once_and_forgotten_after_its_time() {
        let nonces = NonceCache::default();
        assert_eq!(nonces.is_new([1; 16], 100, 50), Some(true));
        assert_eq!(nonces.is_new([1; 16], 100, 60), Some(false));
        assert_eq!(nonces.is_new([1; 16], 200, 101), Some(true));
    }
}
