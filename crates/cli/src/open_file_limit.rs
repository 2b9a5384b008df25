//! How many files and connections this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit as far as the system allows without asking anybody, and says what it is now.
///
/// Every connection is an open file, and the usual soft limit of 1,024 is one for programs of another time.
pub(crate) fn raise() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(why) => {
            tracing::debug!(%why, "the limit of open files stays as it is");
            current
        }
    }
}
