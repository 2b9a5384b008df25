//! HTTP: the only crate that knows it.
//!
//! A request comes in through the [`listen`]er, passes the [`door`], which proves who asks and asks the access function,
//! and reaches a handler. Handlers parse, hand acts to the node's writer or read views from a snapshot, and [`queries`] say
//! what came of it. [`routes`] is the table of all of them, from which the router, the OpenAPI document and the tests of
//! access are made. Errors are [`problem`]s.
//!
//! Deliberately absent: decisions about events, rows, real clocks.

mod admin;
mod ask;
mod backups;
mod context;
mod door;
mod elsewhere;
mod export;
mod extract;
mod health;
mod listen;
mod live;
mod live_feed;
mod messages;
mod metrics;
mod pages;
mod people;
mod presence;
mod problem;
mod reactions;
mod reader;
mod reading;
mod reference;
mod routes;
#[cfg(feature = "search")]
mod search;
mod shapes;
mod signing;
mod state;
mod threads;
mod tls;
mod webhooks;

#[cfg(test)]
mod tests;

pub use backups::BackupPlan;
pub use door::keys::{ApiKeySecret, NewKey};
pub use listen::{ListenError, RunningServer, serve, serve_bare, serve_metrics};
pub use problem::Problem;
pub use routes::openapi;
pub use state::{Limits, ServerOptions, ServerState};
pub use tls::{Tls, TlsError};
