//! Metrics as Prometheus text. What was recorded is complemented by what a snapshot says when somebody asks, at the cost
//! of a few rows, and of those of the files once in a minute.

use crate::problem::Problem;
use crate::request_metrics::RequestMetrics;
use crate::request_metrics::{
    BACKUP_AT, BACKUP_BYTES, BACKUP_FAILURES, CLOCK_BEHIND, CLOCK_JUMP, DAMAGE, DOMAIN_IN_FLIGHT, DOMAIN_REQUESTS,
    DROPS, EVENTS, FILES, FILES_BACKLOG, FILES_FAILED, FILES_STALE, GIT_ERRORS, GIT_REFS, GIT_RELEASED, GIT_SYNCED,
    HOLDS, JOURNAL, OLDEST, QUEUE, SHED, STREAMS, SYNC_ATTEMPTS, SYNC_OBJECTS, SYNC_QUEUE, UPLOADS_OPEN, WAITING,
    seconds,
};
use crate::state::{ServerState, SharedState};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use node::Node;
use node::git::ArrivalCounts;
use std::sync::atomic::{AtomicU64, Ordering};

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The words for kinds of needs, so that one that nothing waits for any more is reported as zero.
const NEEDS: [&str; 6] = ["event", "key", "address", "git", "repository", "time"];

fn render(state: &ServerState) -> Result<String, Problem> {
    let (db, request_metrics) = (state.node.snapshot()?, &state.request_metrics);
    for (stage, events) in db.stages()? {
        request_metrics.gauge(EVENTS, &[("stage", stage.to_owned())], events as f64);
    }
    // Monitoring goes on when an event that waits is damaged.
    let (waits, now) = (db.waits().unwrap_or_default(), state.node.now());
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
            "file-processing-failed" => request_metrics.counter(FILES_FAILED, &[], times),
            "file-processing-stale" => request_metrics.counter(FILES_STALE, &[], times),
            _ => request_metrics.counter(DROPS, &[("reason", word)], times),
        }
    }
    request_metrics.gauge(QUEUE, &[], state.node.queue_depth() as f64);
    request_metrics.counter(SHED, &[], state.load.refused());
    request_metrics.gauge(DAMAGE, &[], state.node.store().damage_count() as f64);
    let jump = state.node.clock_jump().map_or(0, |jump| jump.by_nanos);
    request_metrics.gauge(CLOCK_JUMP, &[], jump as f64 / 1e9);
    request_metrics.gauge(CLOCK_BEHIND, &[], seconds(state.node.clock_behind().0));
    request_metrics.gauge(STREAMS, &[], state.hub.subscribers() as f64);
    request_metrics.gauge(JOURNAL, &[], db.position()?.number as f64);
    let backups = state.backups.state();
    let (at, bytes) = backups.newest.unwrap_or_default();
    request_metrics.gauge(BACKUP_AT, &[], seconds(at.0));
    request_metrics.gauge(BACKUP_BYTES, &[], bytes as f64);
    request_metrics.counter(BACKUP_FAILURES, &[], backups.failures);
    if let Some(git) = state.git() {
        count_git(request_metrics, &git.counts);
        let hunted = &git.sources.counts;
        request_metrics.counter(SYNC_ATTEMPTS, &[], hunted.attempts.load(Ordering::Relaxed));
        request_metrics.counter(SYNC_OBJECTS, &[], hunted.objects.load(Ordering::Relaxed));
    }
    request_metrics.gauge(SYNC_QUEUE, &[], db.schedule_len()? as f64);
    count_domains(request_metrics, &state.node);
    for row in state.file_counts.read(&db, now)? {
        let labels =
            [("tier", row.tier.to_owned()), ("family", row.derivation_type), ("status", row.status.to_owned())];
        request_metrics.gauge(FILES, &labels, row.count as f64);
    }
    request_metrics.gauge(FILES_BACKLOG, &[], db.file_job_count(None)? as f64);
    request_metrics.gauge(UPLOADS_OPEN, &[], db.open_upload_count(None)? as f64);
    Ok(request_metrics.render())
}

/// The domains that were asked. Both families have as many names as are counted.
fn count_domains(request_metrics: &RequestMetrics, node: &Node) {
    let (requests, states) = (node.domain_requests(), node.domain_states());
    for (domain, total) in requests {
        let in_flight = states.iter().find(|state| state.name == domain).map_or(0, |state| state.in_flight);
        let label = [("domain", domain)];
        request_metrics.gauge(DOMAIN_IN_FLIGHT, &label, f64::from(in_flight));
        request_metrics.counter(DOMAIN_REQUESTS, &label, total);
    }
}

/// What the arrivals of git data have come to.
fn count_git(request_metrics: &RequestMetrics, counts: &ArrivalCounts) {
    let count = |name, labels: &[(&'static str, String)], total: &AtomicU64| {
        request_metrics.counter(name, labels, total.load(Ordering::Relaxed));
    };
    for (kind, total) in [
        ("announcement", &counts.announcements),
        ("state", &counts.states),
        ("pull request", &counts.pull_requests),
        ("other", &counts.others),
    ] {
        count(GIT_RELEASED, &[("kind", kind.to_owned())], total);
    }
    for (change, total) in
        [("created", &counts.refs_created), ("updated", &counts.refs_updated), ("deleted", &counts.refs_deleted)]
    {
        count(GIT_REFS, &[("change", change.to_owned())], total);
    }
    count(GIT_SYNCED, &[], &counts.repositories_synced);
    count(GIT_ERRORS, &[], &counts.errors);
}

/// Answers a scrape.
pub async fn scrape(State(state): State<SharedState>) -> Result<Response, Problem> {
    let rendered = tokio::task::spawn_blocking(move || render(&state)).await;
    let text = rendered.map_err(|_| Problem::broken("the metrics could not be read"))??;
    Ok(([(header::CONTENT_TYPE, TEXT)], text).into_response())
}
