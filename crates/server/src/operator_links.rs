//! Links by which the operator signs in to the pages, each once. They are kept in memory only.

use crate::problem::Problem;
use crate::secrets::Secret;
use model::Nanos;
use queries::sync::lock;
use std::collections::HashMap;
use std::sync::Mutex;
use store::shared::accounts::SecretHash;

/// How long the operator's link is good.
const LINK_NANOS: u64 = 24 * 3600 * Nanos::SECOND;
/// Links of the operator that are good at the same time.
const LINKS_MAX: usize = 16;

/// The links that are good.
#[derive(Debug, Default)]
pub struct OperatorLinks(Mutex<HashMap<SecretHash, Nanos>>);

impl OperatorLinks {
    /// The last part of a new link.
    pub(crate) fn issue(&self, now: Nanos) -> Result<String, Problem> {
        let secret = Secret::random()?;
        let mut links = lock(&self.0);
        links.retain(|_, until| *until > now);
        while links.len() >= LINKS_MAX {
            let oldest = links.iter().min_by_key(|(_, until)| **until).map(|(hash, _)| *hash);
            oldest.and_then(|oldest| links.remove(&oldest));
        }
        links.insert(secret.hash, now.plus(LINK_NANOS));
        Ok(secret.text)
    }

    pub fn is_good(&self, text: &str, now: Nanos) -> bool {
        let hash = Secret::of(text.to_owned()).hash;
        lock(&self.0).get(&hash).is_some_and(|until| *until > now)
    }

    /// Uses a link up. Returns whether it was good.
    pub fn take(&self, text: &str, now: Nanos) -> bool {
        let hash = Secret::of(text.to_owned()).hash;
        lock(&self.0).remove(&hash).is_some_and(|until| until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Nanos = Nanos(1_000_000);

    #[test]
    fn a_link_is_good_once_for_a_day() {
        let links = OperatorLinks::default();
        let (used, old) = (links.issue(NOW).expect("a link"), links.issue(NOW).expect("a link"));
        assert!(links.is_good(&used, NOW) && !links.is_good("nonsense", NOW));
        assert!(links.take(&used, NOW) && !links.take(&used, NOW));
        let (last, end) = (NOW.plus(LINK_NANOS - 1), NOW.plus(LINK_NANOS));
        assert!(links.is_good(&old, last) && !links.is_good(&old, end));
        assert!(!links.take(&old, end));
    }

    #[test]
    fn of_too_many_links_the_oldest_goes() {
        let links = OperatorLinks::default();
        let made: Vec<String> =
            (0..=LINKS_MAX as u64).map(|number| links.issue(NOW.plus(number)).expect("a link")).collect();
        assert!(!links.is_good(&made[0], NOW) && made[1..].iter().all(|link| links.is_good(link, NOW)));
    }
}
