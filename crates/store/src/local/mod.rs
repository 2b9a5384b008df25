//! What only this node knows: what the clock makes due, the schedule of hunts, gauges.

pub mod by_clock;
pub mod gauges;
pub mod schedule;
