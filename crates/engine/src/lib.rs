//! All decisions of Anteroom, as pure functions.
//!
//! An arrival passes the [`chains`]: it is opened, its needs are looked up, it is validated and applied, or it is held,
//! refused or carried. Each step reads through one trait, [`Reads`], and answers with [`Change`]s, which the one writer
//! applies in one transaction. Nothing here writes, waits, knows the time or talks to anybody.
//!
//! Where things are: [`rows`] says what is kept; [`space`] says what each kind means; [`counting`] decides who had
//! which right when; [`content`] moves content between its states; [`release`] wakes what waited; [`create`] makes new
//! events; [`receive`] takes in what others send; [`fetch`] decides whom to ask for what, and when.

pub mod access;
pub mod chains;
pub mod change;
pub mod content;
pub mod counting;
pub mod create;
pub mod fetch;
pub mod policy;
pub mod reads;
pub mod receive;
pub mod release;
pub mod rows;
pub mod space;
mod steps;

pub use change::Change;
pub use policy::Policy;
pub use reads::{Reads, StoreError};
