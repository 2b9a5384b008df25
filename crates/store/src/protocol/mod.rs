//! Rows that only one protocol has: a folder for each protocol, read and written for the engine, dumped and checked.

pub mod nostr;
#[cfg(feature = "simulation")]
mod probe;
mod space;
