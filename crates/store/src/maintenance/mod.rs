//! Work on the data folder as a whole: checking, rebuilding, backing up, looking into it, bringing it to a new format,
//! encrypting it anew.

pub mod backup;
pub mod compact;
pub(crate) mod destroy_keys;
pub mod digest;
pub mod explorer;
mod migrations;
pub mod rebuild;
pub(crate) mod rewrap;
pub mod salvage;
pub mod size;
pub mod sweep;
#[cfg(feature = "simulation")]
mod tamper;
pub mod verify;
mod verify_journal;
mod verify_rows;
mod verify_shared;
