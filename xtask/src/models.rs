//! `cargo xtask models`: the tests that play random commands against a naive model, with new randomness each time.
//!
//! A normal test run plays the same commands every time (`.cargo/config.toml` sets the seed), so that it fails because of
//! a change and not by chance. This is the search.

use crate::process::{cargo, run as run_command};
use anyhow::{Context as _, Result};
use clap::Args;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const MINUTES_DEFAULT: u64 = 5;

/// The tests that are played, by name, and the crates they are in.
const PACKAGES: [&str; 3] = ["anteroom-node", "anteroom-queries", "anteroom-server"];
const TESTS: [&str; 8] = [
    "requests_are_repeated_for_a_day",
    "what_retention_takes_is_what_its_rules_say",
    "jobs_end_and_do_once_what_they_are_for",
    "only_those_come_in_who_may",
    "how_things_rest_changes_nothing_that_they_say",
    "what_is_found_follows_what_is_said",
    "a_webhook_receives_everything_in_order",
    "streams_bring_what_their_readers_may_see",
];

/// Play the model tests again and again with new randomness.
#[derive(Args)]
pub(crate) struct Models {
    /// How long to search, in minutes.
    #[arg(long, value_name = "M", default_value_t = MINUTES_DEFAULT)]
    minutes: u64,
    /// Play only this seed, which a failed search has printed.
    #[arg(long, value_name = "SEED", conflicts_with = "minutes")]
    seed: Option<u64>,
}

pub(crate) fn run(models: &Models) -> Result<()> {
    if let Some(seed) = models.seed {
        return play(seed);
    }
    let until = Instant::now() + Duration::from_secs(60 * models.minutes);
    let mut seed = u64::from(SystemTime::now().duration_since(UNIX_EPOCH)?.subsec_nanos());
    while Instant::now() < until {
        play(seed).with_context(|| format!("`cargo xtask models --seed {seed}` shows this again"))?;
        seed += 1;
    }
    Ok(())
}

fn play(seed: u64) -> Result<()> {
    eprintln!("seed {seed}");
    let mut command = cargo(&["test", "--quiet"]);
    for package in PACKAGES {
        command.args(["--package", package]);
    }
    command.arg("--").args(TESTS).env("PROPTEST_RNG_SEED", seed.to_string());
    run_command(&mut command)
}

#[cfg(test)]
mod tests {
    use super::TESTS;
    use crate::process::{output, program};

    /// A test that is renamed would silently not be played any more.
    #[test]
    fn every_model_exists() -> anyhow::Result<()> {
        for name in TESTS {
            output(&mut program("git", &["grep", "--untracked", "-l", &format!("fn {name}("), "--", "crates"]))?;
        }
        Ok(())
    }
}
