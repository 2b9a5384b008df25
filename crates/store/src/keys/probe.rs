//! The keys of the `probe` protocol.

use super::{KeyField, StampedKey, TableKey, fixed_keys};
use model::probe::ProbeName;
use model::{AuthorNo, Stamp};

impl KeyField for ProbeName {
    const WIDTH: usize = 16;

    fn write(self, out: &mut [u8]) {
        self.0.write(out);
    }

    fn read(bytes: &[u8]) -> ProbeName {
        ProbeName(KeyField::read(bytes))
    }
}

fixed_keys! {
    /// Values of an author under a name, by the place where they stand.
    ProbeValueKey { author: AuthorNo, name: ProbeName, stamp: Stamp };
    /// Clears of an author under a name, in order.
    ProbeClearKey { author: AuthorNo, name: ProbeName, stamp: Stamp };
}

impl StampedKey for ProbeValueKey {
    fn stamp_of(key: &ProbeValueKey) -> Stamp {
        key.stamp()
    }
}
