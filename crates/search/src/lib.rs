//! Full-text search over the messages of a space.
//!
//! An [`Index`] is a folder with the words of one space's messages. It is derived data: a damaged or outdated index is
//! deleted and rebuilt from the views. Every commit stores the journal position that the index has reached.
//!
//! Queries are untrusted text. [`tokenizer`] splits them into words within limits, and [`query`] builds the index query from
//! the words alone. Results are event numbers; the caller reads the messages and checks who may see them. All files are
//! encrypted: [`cipher`] encrypts them in chunks, and [`sealed_directory`] gives the search engine access to them.
//!
//! Deliberately absent: access control, rendering, the journal, threads of its own, clocks.

mod cipher;
mod errors;
mod index;
mod query;
mod schema;
mod sealed_directory;
mod tokenizer;

pub use errors::{BadQuery, IndexError, REACH_MAX};
pub use index::Index;
pub use query::{Hit, IndexQuery, check};
pub use schema::IndexedMessage;
