//! The machine a figure came from, and how much memory this process uses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Processor and cores.
pub(crate) fn description() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("");
    let model = model.trim_start_matches(['\t', ' ', ':']);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{cores} cores, {model}")
}

/// Anonymous resident memory now, in MiB.
fn anonymous_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// The greatest anonymous resident memory seen at the moments that were looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peak(Arc<AtomicU64>);

impl Peak {
    /// Looks now.
    pub(crate) fn look(&self) {
        self.0.fetch_max(anonymous_mib(), Ordering::Relaxed);
    }

    /// The greatest so far, in MiB.
    pub(crate) fn mib(&self) -> f64 {
        self.look();
        self.0.load(Ordering::Relaxed) as f64
    }
}
