//! How a node runs: how much at a time, and how politely.

use engine::fetch::DomainLimits;

/// How a node runs.
#[derive(Clone, Copy, Debug)]
pub struct NodeOptions {
    /// How many requests one transaction takes at most.
    pub batch_max: usize,
    /// How many requests may wait before more are turned away.
    pub queue_max: usize,
    /// How many requests to sources may be under way in total.
    pub fetches_max: usize,
    /// Politeness towards each domain.
    pub domains: DomainLimits,
}

impl Default for NodeOptions {
    fn default() -> NodeOptions {
        NodeOptions { batch_max: 4096, queue_max: 16_384, fetches_max: 32, domains: DomainLimits::default() }
    }
}
