//! Gathering: events about repositories here are brought from the relays that their announcements name.
//!
//! [`plan`] says which relays are asked for what, as of now. [`session`] is one connection without a socket: it compares
//! what both sides have (NIP-77), or reads page by page where the other relay does not know how; then it listens.
//! [`driver`] connects, waits after failures, and hands what comes to the writer. What comes before its announcement is held.

mod driver;
mod plan;
mod session;

pub(crate) use driver::{Gathering, gather};
