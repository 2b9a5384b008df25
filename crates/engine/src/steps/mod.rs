//! The steps of POST, a file each. Each takes the passage and either hands it on or ends it with changes.

pub(crate) mod apply;
pub(crate) mod hold;
pub(crate) mod needs;
pub(crate) mod open;
pub(crate) mod validate;
