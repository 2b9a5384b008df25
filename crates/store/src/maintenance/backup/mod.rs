//! Backup and restore: a whole data folder as one file, taken from a snapshot while the node goes on.
//!
//! The file, integers big-endian:
//!
//! ```text
//! "anteroom backup" (15 bytes), version (1 byte: 3)
//! format of the data folder (8), key check value of the master key (32), created at (8, Unix nanoseconds), epoch (8)
//! records: type (1), length (4), so many bytes
//!   1  table: its name; the rows that follow are its rows
//!   2  row: length of the key (4), key, value with its checksum
//!   3  object: its name (16), large content as it rests; its pieces follow
//!   4  piece: at most 1 MiB of an object or an extra file
//!   5  damaged row: its key; it could not be read, and is not here
//!   7  extra file: its name, a path below the data folder (`git/` and the name of an object store, a git bundle); its pieces
//!      follow
//!   8  end of an object or an extra file: 0 if it is whole, 1 if it could not be read to its end (1)
//! 255  end: number of rows (8), of objects (8), of extra files (8), of what is damaged (8), keyed BLAKE3 (32) of everything before these 32 bytes
//! ```
//!
//! Every class of table is in it: source, view, shared and local. Secrets stay wrapped under the master key as they are at
//! rest, so the file contains no key in the clear, and not the master key itself: **whoever wants to restore needs the
//! master key, or the recovery text that was printed when it was made.** Content of open spaces and what the rows say
//! can be read by whoever has the file.
//!
//! The hash is keyed by a key derived from the master key. A backup is reported only after it was read back from the
//! disk and found whole; a restore looks at nothing before it has found the file whole.

mod extra_files;
mod read;
mod restore;
mod stored_objects;
#[cfg(test)]
mod tests;
mod write;

pub use extra_files::{ExtraFiles, NoExtraFiles};
pub use read::{BackupFile, BackupHeader, BadBackup};
pub use restore::{RestoreError, Restored, restore};
pub(crate) use stored_objects::ObjectCheck;
pub use write::{BackupError, BackupSummary};

const MAGIC: &[u8; 15] = b"anteroom backup";
/// The version of the file that this release writes.
pub const VERSION: u8 = 3;

const TABLE: u8 = 1;
const ROW: u8 = 2;
const OBJECT: u8 = 3;
const PIECE: u8 = 4;
const DAMAGED_ROW: u8 = 5;
const EXTRA_FILE: u8 = 7;
const FILE_END: u8 = 8;
const END: u8 = 255;

const HEADER_BYTES: usize = MAGIC.len() + 1 + 8 + 32 + 8 + 8;
const RECORD_HEAD_BYTES: usize = 1 + 4;
const HASH_BYTES: usize = 32;
const END_BYTES: usize = 8 + 8 + 8 + 8 + HASH_BYTES;
/// Content travels in pieces of this size, so that no record is large.
const PIECE_BYTES: usize = 1 << 20;
/// The largest record: a row holds at most a small content, and a piece at most a mebibyte.
const RECORD_BYTES_MAX: usize = 64 << 20;

const _: () = assert!(PIECE_BYTES < RECORD_BYTES_MAX, "a piece is a record");
