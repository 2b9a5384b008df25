//! The embedded database of Anteroom: everything that is kept, and the one transaction in which it changes.
//!
//! [`tables`] is the data model told as a story. [`Store`] opens a data folder; [`Batch`] is the writer's transaction,
//! through which the engine reads what the batch has written so far; [`Db`] over a [`Snapshot`](tables::Snapshot)
//! reads without waiting for the writer. Both are in [`database`]. The other folders follow the classes of tables:
//! [`events`] (source), [`views`], [`shared`], [`local`]; `protocol` has the rows of each protocol's own. [`at_rest`] encrypts what rests, and [`maintenance`] looks
//! after the data folder as a whole: verify, rebuild, backup, explorer, migrations.
//!
//! Deliberately absent: decisions about events (the engine's), clocks, threads, the network.

pub mod at_rest;
mod checksum;
pub mod database;
pub mod disk;
mod encode;
mod errors;
pub mod events;
pub mod keys;
pub mod local;
pub mod maintenance;
pub mod overlay;
mod protocol;
mod row_value;
pub mod shared;
pub mod tables;
pub mod views;

pub use at_rest::master::MasterKey;
pub use at_rest::{KeySource, Protection};
pub use database::batch::Batch;
pub use database::db::Db;
pub use database::identity::NodeId;
pub use database::keyring::KeyringSecrets;
pub use database::open::{FORMAT, OpenError, Store, StoreOptions};
pub use disk::{Disk, FolderDisk, OBJECTS};
pub use encode::{ExpiredRow, JournalEntry, ReceivedAgain, RefusedRow, RoleCap, Usage};
pub use protocol::nostr;
