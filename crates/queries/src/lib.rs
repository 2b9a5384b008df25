//! What a viewer may read.
//!
//! A [`Viewer`] is whoever reads, resolved against a snapshot. [`visibility`] decides which threads, messages and live
//! events they see, once for the API, the pages and the streams. [`messages`] and [`threads`] list them, [`search`] finds
//! them, [`live`] says what a journal entry means to whom. [`renderer`] makes [`shapes`] of rows; what is made of those
//! for a program or a browser is kept in a [`cache`] that does not know what it holds.
//!
//! Deliberately absent: HTTP, HTML, writing, real clocks. The shapes of messages and threads derive their OpenAPI schema
//! here, because it is made from the same fields and doc comments as their JSON.

pub mod cache;
pub mod error;
pub mod files;
pub mod files_status;
pub mod live;
pub mod messages;
pub mod names;
pub mod nostr;
pub mod paging;
pub mod renderer;
pub mod repositories;
#[cfg(feature = "search")]
pub mod search;
pub mod shapes;
pub mod sync;
pub mod threads;
pub mod viewer;
pub mod visibility;

pub use error::QueryError;
pub use viewer::Viewer;
