//! The foundation of HTTP.
//!
//! A request comes in through the [`listen`]er, passes [`auth`]entication, which proves who asks and asks the access
//! function, and reaches a handler that another crate brings: an [`app::App`] is built of their [`routes`]. Handlers read
//! with [`reader`] and hand [`commands`] to the node's writer. Errors are [`problem`]s. Beside the requests run
//! [`background`] tasks: live events, webhooks, scheduled backups.
//!
//! Deliberately absent: handlers, JSON shapes, HTML, decisions about events, real clocks.

pub mod app;
pub mod auth;
pub mod background;
pub mod backups;
pub mod command_runner;
pub mod commands;
pub mod conditional;
pub mod context;
pub mod extract;
mod file_counts;
pub mod files;
pub mod git_programs;
mod idempotency;
pub mod input;
pub mod listen;
pub mod live_feed;
pub mod load;
pub mod metrics;
mod nonces;
pub mod operator_links;
pub mod options;
pub mod problem;
pub mod rate_limits;
pub mod reader;
pub mod relay_reports;
pub mod request_metrics;
pub mod routes;
pub mod secrets;
pub mod state;
#[cfg(feature = "test_support")]
#[path = "tests/mod.rs"]
pub mod test_support;
pub mod tickets;
mod tls;
mod transfers;
pub mod webhooks;
pub mod writer;

pub use app::{App, AppPart};
pub use auth::keys::{ApiKeySecret, NewKey};
pub use backups::BackupPlan;
pub use listen::{ListenError, Listener, RunningServer, serve, serve_bare, serve_metrics_on, serve_on};
pub use options::{Limits, ServerOptions};
pub use problem::Problem;
pub use state::{ServerState, SharedState};
pub use tls::{Tls, TlsError};
