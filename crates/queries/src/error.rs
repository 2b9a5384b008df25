//! Why a viewer gets no answer.

use engine::access::Decision;
use engine::reads::StoreError;
use std::borrow::Cow;

/// Why a viewer gets no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// There is no such thing, or the viewer may not know of it.
    #[error("{0}")]
    NotFound(Cow<'static, str>),
    /// The question is malformed: a limit, a cursor, words to search for.
    #[error("{0}")]
    Malformed(Cow<'static, str>),
    /// The access function says no.
    #[error("access is denied: {0:?}")]
    Denied(Decision),
    /// The credential that a stream was opened with is not accepted any more.
    #[error("{0}")]
    CredentialEnded(&'static str),
    /// The search index is being built.
    #[error("the search index is being built")]
    NotReady,
    /// The node is stopping.
    #[error("the node is stopping")]
    Stopping,
    /// Something is broken on this node.
    #[error("{0}")]
    Broken(&'static str),
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl QueryError {
    /// There is no such thing.
    pub fn not_found(detail: impl Into<Cow<'static, str>>) -> QueryError {
        QueryError::NotFound(detail.into())
    }

    /// The question is malformed.
    pub fn malformed(detail: impl Into<Cow<'static, str>>) -> QueryError {
        QueryError::Malformed(detail.into())
    }
}
