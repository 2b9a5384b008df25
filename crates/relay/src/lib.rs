//! The Nostr relay at `/`. See docs/NOSTR.md.
//!
//! [`messages`] reads what clients say. [`session`] is one client's session without a socket: it hears messages and live
//! events, and says what to answer. [`socket`] drives a session over a WebSocket. [`information`] is what the relay says
//! of itself (NIP-11), [`gather`] brings events from other relays, and [`layer`] picks its requests out of those to `/`, which is a page for everybody else.
//!
//! Deliberately absent: which events are taken (the engine's), how they are found (`queries`), git.

mod gather;
mod information;
mod journal;
mod layer;
mod live;
mod messages;
mod session;
mod socket;
mod state;

pub use layer::with_relay;
