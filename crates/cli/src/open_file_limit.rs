//! The limit of open files, which also limits the number of connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard limit and returns the limit that is now in force; `None` is unlimited.
///
/// Every connection is an open file, and the usual soft limit of 1,024 is too low for a server.
pub(crate) fn raise_open_file_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(why) => {
            tracing::debug!(%why, "could not raise the limit of open files");
            current
        }
    }
}
