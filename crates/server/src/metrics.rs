//! Metrics as Prometheus text. Requests and commits are recorded as they happen; everything else is read from a
//! snapshot when somebody asks, at the cost of a few rows.

use crate::problem::Problem;
use crate::state::{ServerState, SharedState};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use metrics::{Key, Label, Level, Metadata, Recorder as _, Unit};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use model::Nanos;
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Recorded samples are folded into their buckets so often, whether anybody asks or not.
const UPKEEP: Duration = Duration::from_secs(5);
/// The bounds of latencies, in seconds.
const SECONDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
const META: Metadata<'static> = Metadata::new("anteroom", Level::INFO, None);

const COMMIT: &str = "anteroom_commit_seconds";
const REQUEST: &str = "anteroom_request_seconds";
const EVENTS: &str = "anteroom_events";
const WAITING: &str = "anteroom_held_by_need";
const OLDEST: &str = "anteroom_held_oldest_seconds";
const HOLDS: &str = "anteroom_holds_total";
const DROPS: &str = "anteroom_drops_total";
const QUEUE: &str = "anteroom_writer_queue";
const STREAMS: &str = "anteroom_live_streams";
const JOURNAL: &str = "anteroom_journal_position";
const BACKUP_AT: &str = "anteroom_backup_last_timestamp_seconds";
const BACKUP_BYTES: &str = "anteroom_backup_last_bytes";
const BACKUP_FAILURES: &str = "anteroom_backup_failures_total";

/// Every family that is a gauge, with what it means.
const GAUGES: [(&str, &str); 8] = [
    (EVENTS, "Events by stage; of refused and expired ones only what is still remembered"),
    (WAITING, "Events by kind of need that they wait for, among the thousand that have waited longest"),
    (OLDEST, "For how long the oldest of them has waited"),
    (QUEUE, "Requests that wait for the writer"),
    (STREAMS, "Live streams that are open"),
    (JOURNAL, "The number of the latest journal entry"),
    (BACKUP_AT, "When the newest backup that is known was made, in Unix seconds; zero for none"),
    (BACKUP_BYTES, "How large it is"),
];

/// What was recorded since the start.
pub(crate) struct RequestMetrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    /// Requests since the start, and the slowest commit since somebody looked.
    requests: AtomicU64,
    slowest: AtomicU64,
}

impl std::fmt::Debug for RequestMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meters")
    }
}

fn labelled(name: &'static str, labels: &[(&'static str, String)]) -> Key {
    let labels: Vec<Label> = labels.iter().map(|(name, value)| Label::new(*name, value.clone())).collect();
    Key::from_parts(name, labels)
}

fn seconds(nanos: u64) -> f64 {
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

    /// How many requests there were since the start, and how long the slowest commit took since the last look.
    pub(crate) fn since_last_look(&self) -> (u64, u64) {
        (self.requests.load(Ordering::Relaxed), self.slowest.swap(0, Ordering::Relaxed))
    }

    fn gauge(&self, name: &'static str, labels: &[(&'static str, String)], value: f64) {
        self.recorder.register_gauge(&labelled(name, labels), &META).set(value);
    }

    fn counter(&self, name: &'static str, labels: &[(&'static str, String)], value: u64) {
        self.recorder.register_counter(&labelled(name, labels), &META).absolute(value);
    }
}

/// Folds samples into their buckets until the house is taken down.
pub(crate) async fn upkeep(state: Weak<ServerState>) {
    loop {
        tokio::time::sleep(UPKEEP).await;
        let Some(state) = state.upgrade() else { return };
        state.request_metrics.handle.run_upkeep();
    }
}

/// The words for kinds of needs, so that one that nothing waits for any more is told as zero.
const NEEDS: [&str; 6] = ["event", "key", "address", "git", "repository", "time"];

fn rendered(state: &ServerState) -> Result<String, Problem> {
    let (db, request_metrics) = (state.node.snapshot()?, &state.request_metrics);
    for (stage, events) in db.stages()? {
        request_metrics.gauge(EVENTS, &[("stage", stage.to_owned())], events as f64);
    }
    let (waits, now) = (db.waits()?, state.node.now());
    for kind in NEEDS {
        let found = waits.iter().find(|waits| waits.kind == kind);
        let age = found.map_or(0, |waits| now.0.saturating_sub(waits.since.0));
        let label = [("need", kind.to_owned())];
        request_metrics.gauge(WAITING, &label, found.map_or(0, |waits| waits.events) as f64);
        request_metrics.gauge(OLDEST, &label, seconds(age));
    }
    for (word, times) in db.counts()? {
        match word.as_str() {
            "held" => request_metrics.counter(HOLDS, &[], times),
            _ => request_metrics.counter(DROPS, &[("reason", word)], times),
        }
    }
    request_metrics.gauge(QUEUE, &[], state.node.queue_depth() as f64);
    request_metrics.gauge(STREAMS, &[], state.hub.subscribers() as f64);
    request_metrics.gauge(JOURNAL, &[], db.position()?.number as f64);
    let backups = state.backups.state();
    let (at, bytes) = backups.newest.unwrap_or_default();
    request_metrics.gauge(BACKUP_AT, &[], seconds(at.0));
    request_metrics.gauge(BACKUP_BYTES, &[], bytes as f64);
    request_metrics.counter(BACKUP_FAILURES, &[], backups.failures);
    Ok(request_metrics.handle.render())
}

/// Metrics in the text format of Prometheus
#[utoipa::path(get, path = "/metrics", tag = "admin", responses(
    (status = 200, description = "Metrics", content_type = "text/plain"),
    (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn metrics(State(state): State<SharedState>) -> Result<Response, Problem> {
    Ok(([(header::CONTENT_TYPE, TEXT)], rendered(&state)?).into_response())
}
