//! Names of threads and messages as clients send them.

use crate::error::QueryError;
use node::commands::NameOrId;

/// The name of a thread or message. A text that can be no name names nothing.
pub fn parse_name(text: &str, what: &'static str) -> Result<NameOrId, QueryError> {
    text.parse().map_err(|_| QueryError::not_found(format!("there is no such {what}")))
}
