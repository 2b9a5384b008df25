//! Where large content lives: objects with random names, in a folder, in an S3-compatible store or wherever a [`Backend`]
//! keeps them, and content that is read and written in a stream.
//!
//! A writer of content ([`ContentWriter`]) takes bytes as they come, cuts them into chunks, seals each chunk, hashes what
//! will travel, and hands the chunks to the backend: all in one pass, with the memory of two chunks. The object gets its
//! name when it is whole and durable; behind the content is the tree of its hash. A writer of a resumable object can pause,
//! and go on in another process. A reader ([`ContentReader`]) opens the chunks that cover a range, and no others.
//!
//! Which objects there are, whose they are and when they go is written in rows elsewhere; nothing here lists a folder.

mod backend;
mod check;
mod folder;
mod reader;
mod s3;
#[cfg(test)]
mod tests;
mod tree;
mod writer;

pub use backend::{Backend, ObjectError, ObjectSink, ObjectSource};
pub use check::{ObjectCheck, check_conditions, check_objects};
pub use folder::FolderBackend;
pub use reader::{ContentReader, ReadForm, hash_object};
pub use s3::{S3Backend, S3Options};
pub use writer::{ContentWriter, PausedContent, WriteForm, WrittenContent};
