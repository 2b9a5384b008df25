//! Work of the `probe` protocol that is cut into transactions.

use super::Task;
use model::probe::ProbeName;
use model::{AuthorNo, Stamp};

/// Looks again at the values of an author under a name, those after a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProbeTask {
    /// Whose.
    pub author: AuthorNo,
    /// Under which name.
    pub name: ProbeName,
    /// After which place.
    pub after: Stamp,
}

impl From<ProbeTask> for Task {
    fn from(task: ProbeTask) -> Task {
        Task::Probe(task)
    }
}
