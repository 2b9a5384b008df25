//! A description of the machine, and the memory that this process uses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) fn describe_machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("");
    let model = model.trim_start_matches(['\t', ' ', ':']);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{cores} cores, {model}")
}

/// Anonymous resident memory of a process.
pub(crate) fn anonymous_mib(process: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// The largest sample of anonymous resident memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeakMemory(Arc<AtomicU64>);

impl PeakMemory {
    pub(crate) fn sample(&self) {
        self.0.fetch_max(anonymous_mib("self"), Ordering::Relaxed);
    }

    pub(crate) fn mib(&self) -> f64 {
        self.sample();
        self.0.load(Ordering::Relaxed) as f64
    }
}
