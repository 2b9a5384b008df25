//! How gathering goes, relay by relay, for whoever wants to know.

use model::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// How it goes with one relay.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
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
    pub(super) fn change(&self, relay: &str, change: impl FnOnce(&mut RelayReport)) {
        let mut reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(reports.entry(relay.to_owned()).or_default());
    }

    pub(super) fn failed(&self, relay: &str, why: String, next: Nanos) {
        self.change(relay, |report| {
            (report.is_live, report.failed, report.next) = (false, Some(why), Some(next.0));
        });
    }

    pub(super) fn forget(&self, relay: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(relay);
    }

    pub fn all(&self) -> BTreeMap<String, RelayReport> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
