//! What the rules of the `probe` protocol look at beside what all protocols do.

use super::StoreResult;
use model::probe::ProbeName;
use model::{AuthorNo, Seq, Stamp};

/// Rows of the `probe` protocol.
pub trait ProbeReads {
    /// Values of an author under a name, by the place where they stand: after one, at most so many. The last wins.
    fn probe_values(
        &self,
        author: AuthorNo,
        name: &ProbeName,
        after: Stamp,
        most: usize,
    ) -> StoreResult<Vec<(Stamp, Seq)>>;
    /// The least clear of an author under a name after a stamp.
    fn least_clear(&self, author: AuthorNo, name: &ProbeName, after: Stamp) -> StoreResult<Option<Stamp>>;
}
