//! JSON over HTTP: threads, messages, reactions, people, live streams, search, administration.
//!
//! [`routes`] is the table of all routes: a row says method, path, what it does as far as access is concerned, which
//! handler answers, and what the OpenAPI document says of it. Handlers read with `queries`, hand commands to the node's
//! writer, and answer with JSON or a problem.
//!
//! Deliberately absent: HTML, authentication, who sees what, decisions about events.

mod admin;
mod documentation;
mod export;
mod external_signing;
mod files;
mod health;
mod live;
mod messages;
mod people;
mod presence;
mod progressdb;
mod reactions;
mod read_markers;
mod reference;
mod routes;
mod schemas;
#[cfg(feature = "search")]
mod search;
mod signing;
mod state;
mod threads;

#[cfg(test)]
mod tests;

pub use routes::{openapi, part, rules};
