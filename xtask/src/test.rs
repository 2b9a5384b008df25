//! `cargo xtask test`: the packages tests need, the tests of all crates, the simulator, the kill test.

use crate::process::{cargo, program, run as run_command, succeeds, target};
use crate::{npm, packages, python, simulate};
use anyhow::Result;
use clap::Args;
use std::process::Command;

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
    npm::install_missing()?;
    run_crate_tests()?;
    if test.fast {
        return Ok(());
    }
    simulate::run_with(built("simulate"), &simulate::Simulate::over_seeds(test.seeds))?;
    simulate::run_with(built("simulate"), &simulate::Simulate::planted())?;
    run_command(built("kill").args(["--rounds", &test.kills.to_string()]))
}

/// A program of the simulator that was built with the tests. Building it by itself would build half the tree again, because
/// the features of one crate are not those of the workspace.
fn built(name: &str) -> Command {
    program(&target().join("debug").join(name).to_string_lossy(), &[])
}

fn run_crate_tests() -> Result<()> {
    if succeeds(&mut cargo(&["nextest", "--version"])) {
        run_command(&mut cargo(&["nextest", "run", "--workspace"]))
    } else {
        run_command(&mut cargo(&["test", "--workspace"]))
    }
}
