//! All decisions of Anteroom, as pure functions.
//!
//! An arrival passes the [`chains`]: it is opened, its needs are looked up, it is validated and applied, or it is held,
//! refused or carried. Each step reads through one trait, [`Reads`], and answers with [`Change`]s, which the one writer
//! applies in one transaction. Nothing here writes, waits, knows the time or talks to anybody.
//!
//! Where things are: [`rows`] says what is kept; [`protocol`] says what each kind means; [`content`] moves content
//! between its states and [`delivery`] processes what arrives; [`release`] wakes what waited; [`create`] makes new
//! events; [`receive`] takes in what others send; [`fetch`] decides whom to ask for what, and when.

pub mod access;
pub mod chains;
pub mod change;
pub mod content;
mod context;
pub mod create;
pub mod delivery;
pub mod fetch;
pub mod keyring;
pub mod opened;
pub mod policy;
mod post;
pub mod protocol;
pub mod reads;
pub mod receive;
pub mod release;
pub mod rows;
mod tasks;

pub use change::Change;
pub use opened::Opened;
pub use policy::Policy;
pub use reads::{Reads, StoreError};
