//! How failures of the database and damaged rows are told.

use engine::reads::{StoreError, StoreResult};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Turns an engine's fault into ours, telling a full disk apart.
pub(crate) fn fault(error: impl Into<redb::Error>) -> StoreError {
    let error = error.into();
    match &error {
        redb::Error::Io(io) if io.kind() == std::io::ErrorKind::StorageFull => StoreError::Full,
        redb::Error::Io(io) if io.kind() == std::io::ErrorKind::UnexpectedEof => damaged_page(),
        redb::Error::Corrupted(_) => damaged_page(),
        other => StoreError::Store(other.to_string()),
    }
}

/// Asks the database for something. It panics on some damaged pages: that is caught here, and told like other damage.
pub(crate) fn guarded<T, E: Into<redb::Error>>(work: impl FnOnce() -> Result<T, E>) -> StoreResult<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(fault),
        Err(_) => Err(damaged_page()),
    }
}

/// As [`guarded`], for what changes the database. What it has done half must not be committed, so this is no damage that
/// concerns one row alone: the writer stops.
pub(crate) fn guarded_write<T, E: Into<redb::Error>>(work: impl FnOnce() -> Result<T, E>) -> StoreResult<T> {
    guarded(work).map_err(|why| match why {
        StoreError::Broken(what) => StoreError::Store(what),
        other => other,
    })
}

fn damaged_page() -> StoreError {
    let what = "a page of the database is damaged; run `anteroom verify`, then `anteroom salvage` or restore a backup";
    StoreError::Broken(what.into())
}

/// A row that cannot be read back.
pub(crate) fn broken(what: &str) -> StoreError {
    StoreError::Broken(format!("{what} cannot be read back; run `anteroom verify`"))
}
