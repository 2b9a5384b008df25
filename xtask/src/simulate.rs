//! `cargo xtask simulate`: whole networks on one seed each, by the simulator's own binary.

use crate::process::{cargo, run as run_command};
use anyhow::Result;
use clap::Args;
use std::process::Command;

/// Run the simulator over many seeds, over the planted bugs, or replay one seed.
#[derive(Args, Default)]
pub(crate) struct Simulate {
    /// How many seeds to run.
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// The first of the seeds to run.
    #[arg(long, value_name = "SEED")]
    from: Option<u64>,
    /// Search for this many minutes from a random seed, which is printed.
    #[arg(long, value_name = "M", conflicts_with_all = ["seeds", "from"])]
    minutes: Option<u64>,
    /// Plant each known bug in turn and expect it to be caught.
    #[arg(long)]
    planted: bool,
    /// Plant the bug of this name.
    #[arg(long, value_name = "NAME")]
    bug: Option<String>,
    /// Replay this one seed and print every step; if it fails, the fewest steps that still show it.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,
}

impl Simulate {
    /// A run over that many seeds, without planted bugs.
    pub(crate) fn over_seeds(seeds: u64) -> Self {
        Simulate { seeds: Some(seeds), ..Simulate::default() }
    }

    /// A run that proves each planted bug is caught.
    pub(crate) fn planted() -> Self {
        Simulate { planted: true, ..Simulate::default() }
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        let numbers =
            [("--seeds", self.seeds), ("--from", self.from), ("--seed", self.seed), ("--minutes", self.minutes)];
        for (name, number) in numbers {
            arguments.extend(number.into_iter().flat_map(|number| [name.to_owned(), number.to_string()]));
        }
        if self.planted {
            arguments.push("--planted".to_owned());
        }
        arguments.extend(self.bug.iter().flat_map(|bug| ["--bug".to_owned(), bug.clone()]));
        arguments
    }
}

/// Hands the arguments to the simulator and waits for its verdict.
pub(crate) fn run(simulate: &Simulate) -> Result<()> {
    run_with(cargo(&["run", "-p", "anteroom-simulator", "--bin", "simulate", "--"]), simulate)
}

/// The same, with the command that starts the simulator.
pub(crate) fn run_with(mut simulator: Command, simulate: &Simulate) -> Result<()> {
    run_command(simulator.args(simulate.arguments()))
}

#[cfg(test)]
mod tests {
    use super::Simulate;

    fn check(simulate: Simulate, expected: &str) {
        assert_eq!(simulate.arguments().join(" "), expected);
    }

    #[test]
    fn arguments_are_passed_through() {
        check(Simulate::default(), "");
        check(Simulate::over_seeds(2000), "--seeds 2000");
        check(Simulate::planted(), "--planted");
        check(
            Simulate { seed: Some(7), bug: Some("LostWakeUp".into()), ..Simulate::default() },
            "--seed 7 --bug LostWakeUp",
        );
        check(Simulate { seeds: Some(10), from: Some(3), ..Simulate::default() }, "--seeds 10 --from 3");
        check(Simulate { minutes: Some(10), ..Simulate::default() }, "--minutes 10");
    }
}
