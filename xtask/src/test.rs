//! `cargo xtask test`: the packages tests need, the tests of all crates, the simulator, the kill test.

use crate::process::{cargo, run as run_command, succeeds};
use crate::{packages, python, simulate};
use anyhow::Result;
use clap::Args;

/// The budgets of a normal run; a night of testing sets larger ones.
const SEEDS_DEFAULT: u64 = 2000;
const KILLS_DEFAULT: u64 = 50;

/// Run all tests: those of the crates, the simulator, the kill test.
#[derive(Args)]
pub(crate) struct Test {
    /// How many seeds the simulator runs.
    #[arg(long, value_name = "N", default_value_t = SEEDS_DEFAULT)]
    seeds: u64,
    /// How many times the kill test kills the node.
    #[arg(long, value_name = "N", default_value_t = KILLS_DEFAULT)]
    kills: u64,
    /// Run only the tests of the crates.
    #[arg(long, conflicts_with_all = ["seeds", "kills"])]
    fast: bool,
}

impl Default for Test {
    fn default() -> Self {
        Test { seeds: SEEDS_DEFAULT, kills: KILLS_DEFAULT, fast: false }
    }
}

/// Installs what is missing, then runs the tests in order of how quickly they tell of a mistake.
pub(crate) fn run(test: &Test) -> Result<()> {
    packages::install_missing()?;
    python::install_missing()?;
    run_crate_tests()?;
    if test.fast {
        return Ok(());
    }
    simulate::run(&simulate::Simulate::over_seeds(test.seeds))?;
    simulate::run(&simulate::Simulate::planted())?;
    run_kill_test(test.kills)
}

fn run_crate_tests() -> Result<()> {
    if succeeds(&mut cargo(&["nextest", "--version"])) {
        run_command(&mut cargo(&["nextest", "run", "--workspace"]))
    } else {
        run_command(&mut cargo(&["test", "--workspace"]))
    }
}

fn run_kill_test(rounds: u64) -> Result<()> {
    let rounds = rounds.to_string();
    run_command(&mut cargo(&["run", "-p", "anteroom-simulator", "--bin", "kill", "--", "--rounds", &rounds]))
}
