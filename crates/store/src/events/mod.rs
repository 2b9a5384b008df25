//! Source rows beside the event's own: what it waits for, and its content.

pub mod content;
mod holding;
pub mod objects;
