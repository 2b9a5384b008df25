//! The running thing: one writer, the fetcher, the journal, and a handle to reach them.
//!
//! [`core`] runs one batch of requests in one transaction, without threads or clocks, so that the simulator can run
//! whole nodes on one thread. [`Node`](running::Node) runs the same core on threads of its own: requests are checked in
//! parallel at the doors, gathered by the writer loop, committed, and only then answered. [`hunter`] drives the
//! fetcher against [`Source`](hunter::SourceClient)s. [`bundle`] reads and writes what `import` and `export` exchange.
//!
//! [`acts`] is what the users of the HTTP API and the pages do. With the feature `search`, `searching` keeps the search
//! indexes up with the journal.
//!
//! This is the only crate that spawns threads.

pub mod acts;
pub mod answers;
mod asking;
pub mod bundle;
pub mod clock;
pub mod core;
mod creating;
mod doors;
pub mod explain;
pub mod hunter;
mod hunting;
pub mod jobs;
mod options;
pub mod running;
#[cfg(feature = "search")]
pub mod searching;
mod watching;

pub use clock::Clock;
pub use core::{WriterCore, WriterReply, WriterRequest};
pub use options::NodeOptions;
pub use running::{Node, RequestError};
