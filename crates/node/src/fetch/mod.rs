//! Fetching what is missing: the session that decides whom to ask, what sources answered, and asking again.

pub mod answers;
pub mod hunter;
pub mod reports;
pub(crate) mod retry;
