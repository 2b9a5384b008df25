//! What all nodes that serve a space must agree on and no event says: users, accounts, keys, webhooks, retention, audit,
//! jobs.

pub mod accounts;
pub mod api_keys;
mod erasure;
pub mod jobs;
pub mod moderation;
pub mod retention;
pub mod users;
pub mod webhooks;
