//! Why a query or an index cannot be used, and the limits of queries.

use std::io;
use tantivy::TantivyError;

pub(crate) const QUERY_BYTES_MAX: usize = 512;
/// Limits the cost of a query.
pub(crate) const QUERY_WORDS_MAX: usize = 16;
/// The most hits that can be paged through: the engine ranks all hits before a page in memory.
pub const REACH_MAX: usize = 10_000;

/// Why a query is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadQuery {
    #[error("the query contains no word")]
    Empty,
    #[error("the query is longer than {QUERY_BYTES_MAX} bytes")]
    Long,
    #[error("the query has more than {QUERY_WORDS_MAX} words")]
    ManyWords,
    #[error("a quotation mark is not closed")]
    Quote,
    #[error("only the first {} hits can be listed; use a more specific query", REACH_MAX)]
    Far,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error(transparent)]
    Bad(#[from] BadQuery),
    /// The index must be recreated.
    #[error("the search index cannot be used: {0}")]
    Damaged(String),
}

impl From<TantivyError> for IndexError {
    fn from(why: TantivyError) -> IndexError {
        IndexError::Damaged(why.to_string())
    }
}

impl From<io::Error> for IndexError {
    fn from(why: io::Error) -> IndexError {
        IndexError::Damaged(why.to_string())
    }
}
