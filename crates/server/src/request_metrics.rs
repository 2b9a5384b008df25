//! Requests and commits, recorded as they happen.

use metrics::{Key, Label, Level, Metadata, Recorder as _, Unit};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use model::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Recorded samples are folded into their buckets so often, whether anybody asks or not.
const UPKEEP: Duration = Duration::from_secs(5);
/// The bounds of latencies, in seconds.
const SECONDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

const META: Metadata<'static> = Metadata::new("anteroom", Level::INFO, None);

const COMMIT: &str = "anteroom_commit_seconds";
const REQUEST: &str = "anteroom_request_seconds";
pub(crate) const EVENTS: &str = "anteroom_events";
pub(crate) const WAITING: &str = "anteroom_held_by_need";
pub(crate) const OLDEST: &str = "anteroom_held_oldest_seconds";
pub(crate) const HOLDS: &str = "anteroom_holds_total";
pub(crate) const DROPS: &str = "anteroom_drops_total";
pub(crate) const CLOCK_JUMP: &str = "anteroom_clock_jump_seconds";
pub(crate) const CLOCK_BEHIND: &str = "anteroom_clock_behind_seconds";
pub(crate) const DAMAGE: &str = "anteroom_damaged_reads";
pub(crate) const QUEUE: &str = "anteroom_writer_queue";
pub(crate) const SHED: &str = "anteroom_requests_shed_total";
pub(crate) const STREAMS: &str = "anteroom_live_streams";
pub(crate) const JOURNAL: &str = "anteroom_journal_position";
pub(crate) const BACKUP_AT: &str = "anteroom_backup_last_timestamp_seconds";
pub(crate) const BACKUP_BYTES: &str = "anteroom_backup_last_bytes";
pub(crate) const GIT_RELEASED: &str = "anteroom_git_events_released_total";
pub(crate) const GIT_SYNCED: &str = "anteroom_git_repositories_synced_total";
pub(crate) const GIT_REFS: &str = "anteroom_git_refs_changed_total";
pub(crate) const GIT_ERRORS: &str = "anteroom_git_errors_total";
pub(crate) const SYNC_QUEUE: &str = "anteroom_sync_queue_size";
pub(crate) const SYNC_ATTEMPTS: &str = "anteroom_sync_attempts_total";
pub(crate) const SYNC_OBJECTS: &str = "anteroom_sync_objects_fetched_total";
pub(crate) const DOMAIN_IN_FLIGHT: &str = "anteroom_domain_in_flight";
pub(crate) const DOMAIN_REQUESTS: &str = "anteroom_domain_requests_total";
pub(crate) const BACKUP_FAILURES: &str = "anteroom_backup_failures_total";
pub(crate) const FILES: &str = "anteroom_files";
pub(crate) const FILES_BACKLOG: &str = "anteroom_files_backlog";
pub(crate) const UPLOADS_OPEN: &str = "anteroom_uploads_open";
pub(crate) const FILES_FAILED: &str = "anteroom_files_failed_total";
pub(crate) const FILES_STALE: &str = "anteroom_files_stale_total";

/// Every family that is a gauge, with what it means.
const GAUGES: [(&str, &str); 16] = [
    (EVENTS, "Events by stage; of refused and expired ones only what is still remembered"),
    (WAITING, "Events by kind of need that they wait for, among the thousand that have waited longest"),
    (OLDEST, "For how long the oldest of them has waited"),
    (CLOCK_JUMP, "By how much the system clock was set, while the node does not believe it"),
    (CLOCK_BEHIND, "How far the system clock is behind the time at which the node has written last before its start"),
    (DAMAGE, "How much of what is stored could not be read since the start, because it is damaged"),
    (QUEUE, "Requests that wait for the writer"),
    (STREAMS, "Live streams that are open"),
    (JOURNAL, "The number of the latest journal entry"),
    (BACKUP_AT, "When the newest backup that is known was made, in Unix seconds; zero for none"),
    (BACKUP_BYTES, "How large it is"),
    (SYNC_QUEUE, "Groups of needs that are hunted for, or rest until somebody can be asked"),
    (DOMAIN_IN_FLIGHT, "Requests to domains that have not ended yet"),
    (FILES, "Files, objects and derived files by family and status; at most a minute old"),
    (FILES_BACKLOG, "Files that wait for work or are being worked on"),
    (UPLOADS_OPEN, "Uploads whose bytes are coming"),
];

/// What was recorded since the start.
pub struct RequestMetrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    /// Requests since the start, and the slowest commit since somebody looked.
    requests: AtomicU64,
    slowest: AtomicU64,
}

impl std::fmt::Debug for RequestMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RequestMetrics")
    }
}

fn labelled(name: &'static str, labels: &[(&'static str, String)]) -> Key {
    let labels: Vec<Label> = labels.iter().map(|(name, value)| Label::new(*name, value.clone())).collect();
    Key::from_parts(name, labels)
}

pub(crate) fn seconds(nanos: u64) -> f64 {
    nanos as f64 / Nanos::SECOND as f64
}

impl Default for RequestMetrics {
    fn default() -> RequestMetrics {
        // Only an empty list of bounds is refused.
        let builder = PrometheusBuilder::new().set_buckets(&SECONDS).unwrap_or_default();
        let recorder = builder.build_recorder();
        for (name, what) in GAUGES {
            recorder.describe_gauge(name.into(), None, what.into());
        }
        let second = Some(Unit::Seconds);
        recorder.describe_histogram(COMMIT.into(), second, "How long transactions of the writer took".into());
        recorder.describe_histogram(REQUEST.into(), second, "How long requests took, by route and status".into());
        recorder.describe_counter(HOLDS.into(), None, "How often an event began to wait".into());
        recorder.describe_counter(
            SHED.into(),
            None,
            "Requests that were refused because they would wait too long".into(),
        );
        for (name, what) in [
            (GIT_RELEASED, "Events that the arrival of git data released, by what they are"),
            (GIT_SYNCED, "How often the refs of a repository were made what events say"),
            (GIT_REFS, "Refs of repositories that were created, updated or deleted"),
            (GIT_ERRORS, "How often that failed"),
            (SYNC_ATTEMPTS, "Visits to other servers for missing git data"),
            (SYNC_OBJECTS, "Objects that refs or pull requests name and that came from other servers"),
            (DOMAIN_REQUESTS, "Requests to domains; those beyond a hundred together"),
            (FILES_FAILED, "Files whose processing has failed for good"),
            (FILES_STALE, "How often a worker did not say what came of a file"),
        ] {
            recorder.describe_counter(name.into(), None, what.into());
        }
        recorder.describe_counter(BACKUP_FAILURES.into(), None, "Backups that failed since the start".into());
        recorder.describe_counter(DROPS.into(), None, "What was not kept, by reason".into());
        RequestMetrics { handle: recorder.handle(), recorder, requests: AtomicU64::new(0), slowest: AtomicU64::new(0) }
    }
}

impl RequestMetrics {
    /// A transaction of the writer took so long.
    pub(crate) fn committed(&self, nanos: u64) {
        self.slowest.fetch_max(nanos, Ordering::Relaxed);
        self.recorder.register_histogram(&Key::from_static_name(COMMIT), &META).record(seconds(nanos));
    }

    /// A request to a route was answered after so long.
    pub(crate) fn answered(&self, method: &http::Method, route: &str, status: u16, nanos: u64) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let labels = [("method", method.to_string()), ("route", route.to_owned()), ("status", status.to_string())];
        self.recorder.register_histogram(&labelled(REQUEST, &labels), &META).record(seconds(nanos));
    }

    /// How many requests there were since the start, and how long the slowest commit took since the last call.
    pub fn since_last_look(&self) -> (u64, u64) {
        (self.requests.load(Ordering::Relaxed), self.slowest.swap(0, Ordering::Relaxed))
    }

    pub(crate) fn gauge(&self, name: &'static str, labels: &[(&'static str, String)], value: f64) {
        self.recorder.register_gauge(&labelled(name, labels), &META).set(value);
    }

    pub(crate) fn counter(&self, name: &'static str, labels: &[(&'static str, String)], value: u64) {
        self.recorder.register_counter(&labelled(name, labels), &META).absolute(value);
    }

    /// All families, in the text format of Prometheus.
    pub(crate) fn render(&self) -> String {
        self.handle.render()
    }
}

/// Folds samples into their buckets now and then, so that they do not pile up where nobody asks.
pub(crate) async fn fold_samples(metrics: Arc<RequestMetrics>) {
    loop {
        tokio::time::sleep(UPKEEP).await;
        metrics.handle.run_upkeep();
    }
}
