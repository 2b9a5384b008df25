//! Everything a developer or CI runs, as `cargo xtask <command>`: one file per command.
//!
//! Nothing here knows the product's crates: commands start `cargo` and the binaries it builds, and `tidy` reads the
//! sources as text. A failing step ends the whole run with that step's exit code.

mod bench;
mod ci;
mod clients;
mod dist;
mod fuzz;
mod models;
mod mutants;
mod npm;
mod packages;
mod process;
mod python;
mod simulate;
mod test;
mod tidy;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Everything a developer or CI runs.
#[derive(Parser)]
#[command(name = "xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check formatting, lints and tidiness, then run all tests.
    Ci,
    Test(test::Test),
    Simulate(simulate::Simulate),
    Bench(bench::Bench),
    Dist(dist::Dist),
    Tidy(tidy::Tidy),
    Fuzz(fuzz::Fuzz),
    Mutants(mutants::Mutants),
    Models(models::Models),
    Clients(clients::Clients),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Ci => ci::run(),
        Command::Test(test) => test::run(&test),
        Command::Simulate(simulate) => simulate::run(&simulate),
        Command::Bench(bench) => bench::run(&bench),
        Command::Dist(dist) => dist::run(&dist),
        Command::Tidy(tidy) => tidy::run(&tidy),
        Command::Fuzz(fuzz) => fuzz::run(&fuzz),
        Command::Mutants(mutants) => mutants::run(&mutants),
        Command::Models(models) => models::run(&models),
        Command::Clients(clients) => clients::run(&clients),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            process::exit_code(&error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::{CommandFactory, Parser};

    /// Reads a command line and says which part of it clap refuses, or nothing.
    fn check(line: &str, expected: &str) {
        let refusal = match Cli::try_parse_from(line.split_whitespace()) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        assert!(refusal.contains(expected), "`{line}` answered: {refusal}");
        assert_eq!(refusal.is_empty(), expected.is_empty(), "`{line}` answered: {refusal}");
    }

    #[test]
    fn definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn command_lines_are_understood() {
        check("xtask ci", "");
        check("xtask test --fast", "");
        check("xtask test --seeds 10 --kills 1", "");
        check("xtask simulate --seeds 10 --from 7 --bug LostWakeUp", "");
        check("xtask simulate --seed 7", "");
        check("xtask simulate --planted", "");
        check("xtask bench", "");
        check("xtask bench commit --quick", "");
        check("xtask tidy --write-ratchet", "");
        check("xtask tidy --write-arrows", "");
        check("xtask fuzz --seconds 5 envelope", "");
        check("xtask mutants --sample 100 --seed 1 --budget 20", "");
        check("xtask models --minutes 20", "");
        check("xtask models --seed 7", "");
    }

    #[test]
    fn mistakes_are_refused() {
        check("xtask bench everything", "possible values: ingest, release, timeline, open, commit");
        check("xtask simulate --seed 7 --seeds 10", "cannot be used with");
        check("xtask test --fast --seeds 10", "cannot be used with");
    }
}
