//! The running node: one writer, the fetcher, the journal, and a handle to reach them.
//!
//! Whoever wants something changed asks with a [`WriterCommand`], which knows the type of its answer. [`writer`] runs one
//! batch of commands in one transaction, without threads or clocks, so that the simulator can run whole nodes on one
//! thread. [`Node`] ([`running`]) runs the same writer on threads of its own: what arrives is checked in parallel
//! (`receive`), commands are gathered by the writer loop, committed, and only then answered. [`fetch`] is the
//! fetcher's session over the schedule and its [`SourceClient`](fetch::hunter::SourceClient)s. [`bundle`] reads and
//! writes what `import` and `export` exchange; [`explain`] says what waits for what; [`jobs`] is work over many rows.
//!
//! [`commands`] is what users and administrators do through the HTTP API and the pages. With the feature `search`,
//! `search` keeps the search indexes up with the journal.
//!
//! This is the only crate that spawns threads.

pub mod bundle;
pub mod clock;
pub mod commands;
pub mod explain;
pub mod fetch;
pub mod files;
pub mod git;
pub mod jobs;
pub mod large_content;
mod locks;
pub mod nostr;
mod options;
pub mod pipeline;
mod receive;
pub mod running;
pub mod salvage;
#[cfg(feature = "search")]
pub mod search;
mod threads;
pub mod writer;
mod writer_command;

pub use clock::Clock;
pub use options::NodeOptions;
pub use running::Node;
pub use writer::{BatchResult, WriterCore, node_commands};
pub use writer_command::{Answered, AskError, CommandFailure, RequestError, WriterCommand};
