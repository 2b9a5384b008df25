//! The bundle: what `export` writes and `import` reads, a stream of records that can be piped.
//!
//! Integers big-endian:
//!
//! ```text
//! "anteroom bundle" (15 bytes), version (1 byte: 1)
//! records: type (1), length (4), so many bytes
//!   1  event: length of the blob (4), blob, inline content (whatever is left)
//!   2  content: space (16), hash (32), the bytes as they travel
//!   3  keys of a space: salt (16), nonce (24), what is sealed under the passphrase; before any event, when asked for
//! 255  end: number of records before it (8), BLAKE3 (32) of everything before this record
//! ```
//!
//! Nothing follows the end. Records may come in any order and any number of times; `export` writes events in the order
//! in which they arrived, then contents, each after the events that refer to it. Every record proves itself (an event
//! by its signature, content by its hash), so what was read before a bundle turns out to be cut off or changed is good
//! all the same; the end only tells that nothing is missing. A reader needs memory for one record, and for the
//! keys.

mod adopt;
mod aside;
mod export;
mod format;
mod import;
mod import_error;
mod lookup;
mod pace;
mod secrets;
mod tally;

pub use aside::{BundleInput, Pipe};
pub use export::{ExportError, ExportOptions, Exported, export};
pub use format::{
    BadBundle, BundleReader, BundleWriter, CONTENT_RECORD_BYTES_MAX, KEYS_RECORD_BYTES_MAX, Record, VERSION,
};
pub use import::{ImportProgress, import};
pub use import_error::ImportError;
pub use secrets::{BadSecrets, PASSPHRASE_BYTES_MAX, PASSPHRASE_CHARS_MIN, Passphrase};
pub use tally::{DroppedRecord, Imported};
