//! Git over smart HTTP at `/<npub>/<identifier>.git`. See docs/NOSTR.md.
//!
//! [`routes`] is the table. [`fetch`] tells refs and answers fetches, streaming what the `git` program says. [`push`] reads
//! which refs a push wants to change, has the node decide, and only then lets git receive it. [`pack_lines`] is the framing
//! of git's protocol, as far as it has to be read here.
//!
//! Deliberately absent: what is allowed (the engine's), objects and refs (`git`), pages.

mod app;
mod fetch;
mod pack_lines;
mod problems;
mod push;
mod request;
mod routes;

pub use routes::with_git;
