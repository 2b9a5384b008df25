//! The open database: [`open`] a data folder, read it through a [`db`], change it through a [`batch`].

pub mod batch;
pub(crate) mod damage;
pub mod db;
pub mod identity;
pub(crate) mod keyring;
mod latest_times;
mod numbering;
pub(crate) mod open;
mod packing;
mod quota;
pub(crate) mod reading_at_rest;
mod undo;
pub(crate) mod writing_at_rest;
