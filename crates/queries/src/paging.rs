//! Limits and cursors of pages.

use crate::error::QueryError;
use model::{EventId, Nanos, Stamp};

/// How many to list where nothing is said.
const LIMIT: usize = 50;

/// How many to list: what was asked for, within bounds.
pub fn page_limit(asked: Option<usize>, most: usize) -> Result<usize, QueryError> {
    match asked {
        None => Ok(LIMIT.min(most)),
        Some(0) => Err(QueryError::malformed("limit is at least 1")),
        Some(number) if number > most => Err(QueryError::malformed(format!("limit is at most {most}"))),
        Some(number) => Ok(number),
    }
}

/// The number in a cursor of a list that is in the order of its numbers; none if there is no cursor.
pub fn parse_number(cursor: Option<&str>) -> Result<Option<u64>, QueryError> {
    let Some(text) = cursor.filter(|text| !text.is_empty()) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| QueryError::malformed("the cursor is not one that this list gave out"))
}

/// Where to go on in such a list, of which one more was read than is wanted.
pub fn next_number<T>(found: &mut Vec<(u64, T)>, most: usize) -> Option<String> {
    let has_more = found.len() > most;
    found.truncate(most);
    found.last().filter(|_| has_more).map(|(number, _)| number.to_string())
}

/// A stamp as a cursor.
pub fn format_cursor(stamp: Stamp) -> String {
    format!("{}-{}", stamp.at.0, stamp.id)
}

/// The stamp in a cursor; none if there is no cursor.
pub fn parse_cursor(cursor: Option<&str>) -> Result<Option<Stamp>, QueryError> {
    let bad = || QueryError::malformed("the cursor is not one that this list gave out");
    let Some(text) = cursor.filter(|text| !text.is_empty()) else { return Ok(None) };
    let (at, id) = text.split_once('-').ok_or_else(bad)?;
    let at = at.parse().map_err(|_| bad())?;
    let id: EventId = id.parse().map_err(|_| bad())?;
    Ok(Some(Stamp { at: Nanos(at), id }))
}
