//! Views: rows that follow from applied events, and what can be asked of them.

mod contributions;
mod direct;
mod follows;
pub mod messages;
pub mod recent;
pub mod timeline;
