//! Damage that reading has met: each is named in the log once, and counted.

use crate::database::open::Store;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// How much is remembered; beyond it, damage is neither named nor counted again.
const REMEMBERED_MAX: usize = 10_000;

/// Damage that reading has met since the start.
#[derive(Default, Debug)]
pub(crate) struct DamageLog(Mutex<BTreeSet<String>>);

impl DamageLog {
    pub(crate) fn note(&self, what: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < REMEMBERED_MAX && known.insert(what.to_owned()) {
            tracing::error!(what, "something that is stored cannot be read; the rest goes on");
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Store {
    /// How much of what is stored could not be read since the start.
    pub fn damage_count(&self) -> usize {
        self.shared.damage.count()
    }

    /// Notes that something that is stored cannot be read: it is logged once, and counted.
    pub fn note_damage(&self, what: &str) {
        self.shared.damage.note(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_counted_once_and_only_so_much_is_remembered() {
        let log = DamageLog::default();
        log.note("a row");
        log.note("a row");
        assert_eq!(log.count(), 1);
        (0..2 * REMEMBERED_MAX).for_each(|number| log.note(&format!("row {number}")));
        assert_eq!(log.count(), REMEMBERED_MAX);
    }
}
