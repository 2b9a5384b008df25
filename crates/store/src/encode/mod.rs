//! The bytes of values: rows of events, values of a few fields, and rows that are written as they are declared.

mod event;
mod shared;
mod values;
mod varint;

pub(crate) use event::{EventParts, decode_event, encode_event};
pub use shared::RowVersion;
pub(crate) use shared::{SharedBytes, SharedValue};
pub(crate) use values::usage_index;
pub use values::{ExpiredRow, JournalEntry, ReceivedAgain, RefusedRow, RoleCap, Usage};
pub(crate) use varint::{get_number, get_varint, put_varint};

use crate::errors::broken;
use engine::reads::StoreResult;
use serde::{Deserialize, Serialize};

pub(crate) fn to_row(value: &impl Serialize) -> StoreResult<Vec<u8>> {
    postcard::to_stdvec(value).map_err(|_| broken("a row that could not be written"))
}

pub(crate) fn from_row<'a, T: Deserialize<'a>>(bytes: &'a [u8], what: &str) -> StoreResult<T> {
    postcard::from_bytes(bytes).map_err(|_| broken(what))
}
