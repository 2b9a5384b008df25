//! Figures over time, kept in memory, drawn as plots.

use engine::reads::Reads as _;
use maud::{Markup, html};
use queries::sync::lock;
use server::ServerState;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// How often figures are taken, and for how long they are kept: an hour of every five seconds, a day of every two minutes.
const EVERY: Duration = Duration::from_secs(5);
const FINE: usize = 720;
const COARSE: usize = 720;
const FINE_PER_COARSE: u64 = 24;

/// What is plotted.
const SERIES: [(&str, &str); 8] = [
    ("Events here", "events"),
    ("Events applied per second", "per second"),
    ("Held", "events"),
    ("Slowest commit", "ms"),
    ("Database", "MiB"),
    ("Requests per second", "per second"),
    ("Requests that wait for the writer", "requests"),
    ("Live streams", "streams"),
];

/// Figures of one moment.
type Sample = [f64; SERIES.len()];

/// Figures over time.
#[derive(Debug, Default)]
pub(crate) struct Plots(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    fine: VecDeque<Sample>,
    coarse: VecDeque<Sample>,
    taken: u64,
    /// Counters at the last moment: journal number and requests.
    before: Option<(u64, u64)>,
}

impl Plots {
    fn add(&self, mut sample: Sample, counters: (u64, u64)) {
        let mut kept = lock(&self.0);
        let seconds = EVERY.as_secs_f64();
        if let Some((applied, requests)) = kept.before.replace(counters) {
            sample[1] = counters.0.saturating_sub(applied) as f64 / seconds;
            sample[5] = counters.1.saturating_sub(requests) as f64 / seconds;
        }
        if kept.fine.len() == FINE {
            kept.fine.pop_front();
        }
        kept.fine.push_back(sample);
        kept.taken += 1;
        if kept.taken.is_multiple_of(FINE_PER_COARSE) {
            if kept.coarse.len() == COARSE {
                kept.coarse.pop_front();
            }
            kept.coarse.push_back(sample);
        }
    }

    /// One series, the latest hour or day.
    fn series(&self, number: usize, is_day: bool) -> Vec<f64> {
        let kept = lock(&self.0);
        let samples = if is_day { &kept.coarse } else { &kept.fine };
        samples.iter().map(|sample| sample[number]).collect()
    }

    /// All plots.
    pub(crate) fn draw(&self, is_day: bool) -> Markup {
        html! {
            div.plots { @for (number, (name, unit)) in SERIES.iter().enumerate() {
                (plot(name, unit, &self.series(number, is_day)))
            } }
        }
    }
}

/// A number as people read it.
fn short_number(value: f64) -> String {
    match value {
        value if value >= 1e9 => format!("{:.1} G", value / 1e9),
        value if value >= 1e6 => format!("{:.1} M", value / 1e6),
        value if value >= 10_000.0 => format!("{:.1} k", value / 1e3),
        value if value >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        value => format!("{value:.2}"),
    }
}

/// A line over time with its greatest value; the latest is told in words as well.
fn plot(name: &str, unit: &str, values: &[f64]) -> Markup {
    const WIDTH: f64 = 300.0;
    const HEIGHT: f64 = 80.0;
    // A node that was just started fills the plot from the right.
    let full = values.len().max(60);
    let most = values.iter().copied().fold(0.0, f64::max);
    let latest = values.last().copied().unwrap_or(0.0);
    let step = WIDTH / (full - 1) as f64;
    let begin = WIDTH - step * values.len().saturating_sub(1) as f64;
    let point = |(number, value): (usize, &f64)| {
        let height = if most > 0.0 { value / most * (HEIGHT - 4.0) } else { 0.0 };
        format!("{:.1},{:.1}", begin + step * number as f64, HEIGHT - 2.0 - height)
    };
    let points: Vec<String> = values.iter().enumerate().map(point).collect();
    let summary = format!("{name}: now {} {unit}, at most {} {unit}", short_number(latest), short_number(most));
    html! {
        figure.plot {
            figcaption { (name) " " b { (short_number(latest)) } " " span.note { (unit) } }
            svg viewBox="0 0 300 80" role="img" aria-label=(summary) preserveAspectRatio="none" {
                @if points.len() > 1 { polyline points=(points.join(" ")) fill="none" vector-effect="non-scaling-stroke" {} }
            }
            p.note { "at most " (short_number(most)) }
        }
    }
}

/// Takes figures until the server is dropped.
pub(crate) async fn take_samples(state: Weak<ServerState>, plots: Arc<Plots>) {
    loop {
        let Some(strong) = state.upgrade() else { return };
        if let Ok((sample, counters)) = take(&strong) {
            plots.add(sample, counters);
        }
        drop(strong);
        tokio::time::sleep(EVERY).await;
    }
}

fn take(state: &ServerState) -> Result<(Sample, (u64, u64)), server::Problem> {
    let db = state.node.snapshot()?;
    let events: u64 =
        db.stages()?.iter().filter(|(stage, _)| !["refused", "expired"].contains(stage)).map(|(_, n)| n).sum();
    let (requests, slowest) = state.request_metrics.since_last_look();
    let bytes = state.node.store().disk().database_bytes().unwrap_or(0);
    let sample = [
        events as f64,
        0.0,
        db.held_total()? as f64,
        slowest as f64 / 1e6,
        bytes as f64 / f64::from(1 << 20),
        0.0,
        state.node.queue_depth() as f64,
        state.hub.subscribers() as f64,
    ];
    Ok((sample, (db.position()?.number, requests)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_kept_finely_and_a_day_coarsely_and_no_more() {
        let plots = Plots::default();
        for number in 0..(FINE as u64 * 30) {
            plots.add([number as f64; SERIES.len()], (number * 10, number));
        }
        assert_eq!((plots.series(0, false).len(), plots.series(0, true).len()), (FINE, COARSE));
        assert_eq!(plots.series(1, false).last(), Some(&2.0), "ten in five seconds");
        assert!(plots.draw(true).into_string().contains("<polyline"));
    }

    #[test]
    fn numbers_are_told_shortly() {
        for (value, expected) in [(0.0, "0"), (1.5, "1.50"), (150.4, "150"), (12_345.0, "12.3 k"), (2.5e6, "2.5 M")] {
            assert_eq!(short_number(value), expected);
        }
    }
}
