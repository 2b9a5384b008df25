//! What the fetcher is doing, for whoever wants to know: the state of each domain, and each source with its latest answer.

use engine::fetch::Capacity;
use serde::Serialize;
use std::collections::BTreeMap;

/// Domains whose requests are counted by name; those of others are counted together.
const NAMED_DOMAINS_MAX: usize = 100;
/// The name under which the rest is counted.
const OTHER_DOMAINS: &str = "other";

/// A domain that is being asked, or was of late.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DomainState {
    pub name: String,
    /// Requests that have not ended yet.
    pub in_flight: u32,
    /// Requests that were started within the last minute.
    pub started: usize,
    /// Groups that wait for their turn.
    pub queued: usize,
    /// When it can take a request, if that is not now; none while that depends on the end of another one.
    pub free_at: Option<u64>,
    pub is_free: bool,
}

impl DomainState {
    pub(super) fn new(
        name: &str,
        (in_flight, started): (u32, usize),
        queued: usize,
        capacity: Capacity,
    ) -> DomainState {
        let free_at = match capacity {
            Capacity::Now | Capacity::AfterCompletion => None,
            Capacity::At(at) => Some(at),
        };
        let is_free = capacity == Capacity::Now;
        DomainState { name: name.to_owned(), in_flight, started, queued, free_at, is_free }
    }
}

/// A source of a group: what it answered last, and when it can be asked again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SourceReport {
    pub url: String,
    /// When it answered last; none if it was not asked since the start of the node.
    pub asked_at: Option<u64>,
    /// How much of what was asked for came.
    pub brought: usize,
    /// How much else came, which is not believed.
    pub unasked: usize,
    /// Why no more came.
    pub failed: Option<String>,
    /// The state of its domain, if that was asked of late.
    pub domain: Option<DomainState>,
}

/// Requests by domain, since the start.
#[derive(Debug, Default)]
pub(crate) struct DomainRequests(pub(crate) BTreeMap<String, u64>);

impl DomainRequests {
    pub(crate) fn count(&mut self, domain: &str) {
        let is_named = self.0.contains_key(domain) || self.0.len() < NAMED_DOMAINS_MAX;
        *self.0.entry(if is_named { domain } else { OTHER_DOMAINS }.to_owned()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_beyond_a_hundred_are_counted_together() {
        let mut requests = DomainRequests::default();
        for number in 0..150 {
            requests.count(&format!("host-{number}"));
        }
        requests.count("host-0");
        assert_eq!((requests.0.len(), requests.0["host-0"], requests.0["other"]), (101, 2, 50));
    }
}
