//! What all nodes that serve a space must agree on and no event says: hosted spaces, users, accounts, keys, webhooks,
//! retention, blocks, reports, jobs, audit. All of it is written through [`rows`], one row and its version at a time.

pub mod accounts;
pub mod api_keys;
mod erasure;
pub mod files;
pub mod jobs;
pub mod moderation;
mod protections;
pub mod retention;
pub mod rows;
mod tables;
#[cfg(test)]
mod tests;
pub mod users;
pub mod webhooks;

pub(crate) use tables::*;
