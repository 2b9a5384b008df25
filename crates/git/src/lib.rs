//! Bare git repositories, kept and read by the `git` program.
//!
//! A [`GitFolder`] holds object stores, each a bare repository that one or more owners share: every owner has a git
//! namespace in it, so that their refs are their own and the objects are everybody's. A push lands in a [`Staging`] of its
//! own first; what is refused goes with it.
//!
//! No text of a user ever becomes a path, an option or a configuration here: folders are named by hashes, owners by the
//! digits of their keys, and refs are passed on standard input.
//!
//! Deliberately absent: who may push what, events, HTTP.

mod bundle;
mod command;
mod files;
mod folder;
mod pack_limits;
pub mod read;
mod refs;
mod remote;
mod staging;
mod upkeep;

pub use command::{GitError, GitLimits, as_input, bound_reading, bound_time, told};
pub use folder::{GitFolder, ObjectStore, StoreName};
pub use refs::RefWrite;
pub use remote::{FetchLimits, RemoteServer, advertised_objects};
pub use staging::{Staging, Walk};
