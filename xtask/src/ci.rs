//! `cargo xtask ci`: what must pass before a change is merged, cheapest first.

use crate::process::{cargo, run as run_command};
use crate::{test, tidy};
use anyhow::Result;
use std::time::{Duration, Instant};

/// Runs every step in order and stops at the first that fails.
pub(crate) fn run() -> Result<()> {
    step("format", || run_command(&mut cargo(&["fmt", "--all", "--check"])))?;
    step("clippy", || run_command(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])))?;
    step("tidy", || tidy::run(&tidy::Tidy::default()))?;
    step("test", || test::run(&test::Test::default()))
}

fn step(name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    eprintln!("\n== {name}");
    let start = Instant::now();
    let outcome = work();
    let verdict = if outcome.is_ok() { "passed" } else { "failed" };
    eprintln!("== {name} {verdict} in {}", seconds(start.elapsed()));
    outcome
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::{seconds, step};
    use std::time::Duration;

    #[test]
    fn a_step_hands_on_its_outcome() {
        assert!(step("good", || Ok(())).is_ok());
        let outcome = step("bad", || anyhow::bail!("broken"));
        assert_eq!(outcome.err().map(|error| error.to_string()), Some("broken".to_owned()));
    }

    #[test]
    fn durations_are_short_to_read() {
        assert_eq!(seconds(Duration::from_millis(12_340)), "12.3 s");
    }
}
