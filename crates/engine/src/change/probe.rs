//! Changes of rows that only the `probe` protocol has.

use super::Change;
use model::probe::ProbeName;
use model::{AuthorNo, Seq, Stamp};

/// One change of rows of the `probe` protocol.
#[derive(Clone, PartialEq, Debug)]
pub enum ProbeChange {
    /// A value of an author under a name, at the place where it stands among the others.
    Value(AuthorNo, ProbeName, Stamp, Seq),
    /// A clear of an author under a name.
    Clear(AuthorNo, ProbeName, Stamp, Seq),
}

impl From<ProbeChange> for Change {
    fn from(change: ProbeChange) -> Change {
        Change::Probe(change)
    }
}
