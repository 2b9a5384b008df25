//! Whole nodes on one thread, one seed, a virtual clock, network and disk.
//!
//! [`disk`] is a disk that forgets, tears and fails on demand; [`protocol`] writes the events of a small world, honest and
//! lying, and recomputes from the set alone what every view must show; [`run`] delivers the world to nodes in any order,
//! with crashes, prunes and clock jumps, and compares. [`crash`] crashes the store at every single operation.
//!
//! For tests only: nothing here is in the product.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod coverage;
pub mod crash;
pub mod decoders;
pub mod disk;
pub mod fixture;
pub mod protocol;
pub mod random;
pub mod requests;
pub mod run;
pub mod shrink;
pub mod staging;
