//! The embedded database of Anteroom: everything that is kept, and the one transaction in which it changes.
//!
//! [`tables`] is the data model told as a story. [`Store`] opens a data folder; [`Batch`](batch::Batch) is the writer's
//! transaction, through which the engine reads what the batch has written so far; [`Db`](db::Db) over a
//! [`Snapshot`](tables::Snapshot) reads without waiting for the writer. [`views`] answers what people ask; [`verify`],
//! [`rebuild`] and [`backup`] look after the data folder as a whole.
//!
//! Deliberately absent: decisions about events (the engine's), clocks, threads, the network.

pub mod accounts;
mod anteroom;
pub mod at_rest;
pub mod backup;
pub mod batch;
pub mod content;
mod contributions;
pub mod db;
pub mod disk;
pub mod doors;
pub mod dump;

mod encode;
mod ending;
pub mod explorer;
mod follows;
pub mod gauges;
pub mod jobs;
mod keyring;
pub mod local;
pub mod master;
mod migrations;
pub mod moderation;
mod numbering;
mod open;
pub mod people;

pub mod rebuild;
pub mod recent;
pub mod retention;
pub mod schedule;
pub mod tables;
pub mod timeline;
pub mod verify;
pub mod views;
pub mod webhooks;

pub use at_rest::{KeySource, Protection};
pub use batch::Batch;
pub use db::Db;
pub use disk::{Disk, FolderDisk};
pub use encode::{JournalEntry, Usage};
pub use keyring::KeyringSecrets;
pub use master::MasterKey;
pub use open::{FORMAT, OpenError, Store, StoreOptions};
