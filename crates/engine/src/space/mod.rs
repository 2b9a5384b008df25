//! The `space` protocol: what each kind refers to, when it is valid, and what it contributes to the views.
//!
//! [`rules`] checks an event against the events it refers to: a pure function of both, so that every node comes to the
//! same verdict whatever arrived first. [`views`] lists the rows that an event puts into the views while it counts.

pub mod rules;
pub mod views;
