//! How gathering events from other relays goes, relay by relay: told by the tasks that gather, shown to the operator.

use model::Nanos;
use queries::sync::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// How it goes with one relay.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RelayReport {
    /// Whether there is a connection now, and everything that was missing has come.
    pub is_live: bool,
    /// Events that came from it and were new, since the start.
    pub gathered: u64,
    /// Why the latest connection ended.
    pub failed: Option<String>,
    /// When it is connected to again.
    pub next: Option<u64>,
}

/// How it goes with all of them.
#[derive(Debug, Default)]
pub struct GatherReports(Mutex<BTreeMap<String, RelayReport>>);

impl GatherReports {
    pub fn change(&self, relay: &str, change: impl FnOnce(&mut RelayReport)) {
        let mut reports = lock(&self.0);
        change(reports.entry(relay.to_owned()).or_default());
    }

    pub fn failed(&self, relay: &str, why: String, next: Nanos) {
        self.change(relay, |report| {
            (report.is_live, report.failed, report.next) = (false, Some(why), Some(next.0));
        });
    }

    pub fn forget(&self, relay: &str) {
        lock(&self.0).remove(relay);
    }

    pub fn all(&self) -> BTreeMap<String, RelayReport> {
        lock(&self.0).clone()
    }
}
