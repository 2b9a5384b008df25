//! Full-text search over what a space shows.
//!
//! An [`Index`] is a folder with the words of one space's messages. It is derived: whatever is wrong with it, it is
//! dropped and made anew from the views, so nothing here is ever the only copy. With every commit it keeps the journal
//! position it has reached.
//!
//! A question comes as text from anybody. [`tokenizer`] takes it apart within bounds, and [`query`] builds what is asked of
//! the index from the words alone. Answers are numbers of messages; what they say, and who may see them, is read
//! elsewhere. All files rest encrypted: [`cipher`] seals them in chunks, [`sealed_directory`] is how the index reaches them.
//!
//! Deliberately absent: access, rendering, the journal, threads of our own, clocks.

mod cipher;
mod index;
mod query;
mod schema;
mod sealed_directory;
mod tokenizer;

pub use index::{Index, IndexError};
pub use query::{Hit, IndexQuery, REACH_MAX, check};
pub use schema::IndexedMessage;
pub use tokenizer::BadQuery;
