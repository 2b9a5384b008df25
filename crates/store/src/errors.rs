//! How failures of the database and damaged rows are told.

use engine::reads::StoreError;

/// Turns an engine's fault into ours, telling a full disk apart.
pub(crate) fn fault(error: impl Into<redb::Error>) -> StoreError {
    let error = error.into();
    match &error {
        redb::Error::Io(io) if io.kind() == std::io::ErrorKind::StorageFull => StoreError::Full,
        other => StoreError::Store(other.to_string()),
    }
}

/// A row that cannot be read back.
pub(crate) fn broken(what: &str) -> StoreError {
    StoreError::Broken(format!("{what} cannot be read back; run `anteroom verify`"))
}
