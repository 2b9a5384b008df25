//! `anteroom bench`: runs the benchmarks.

use super::CommandResult;
use crate::bench;
use crate::context::Context;
use crate::failure::Failure;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// Run benchmarks on this machine
///
/// Each benchmark prints a table and one line of JSON, with or without --json.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// The benchmark; all of them if not given
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Use small data sets; each benchmark ends within a minute, and its figures mean less
    #[arg(long)]
    quick: bool,
    /// Where to create the databases; the system's temporary folder if not given
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Bench {
    pub(super) fn run(&self, _context: &Context) -> CommandResult {
        bench::run(self.name.as_deref(), self.quick, self.dir.clone())
            .map_err(|why| Failure::new(format!("{why:#}"), "check the name, and that there is enough disk space"))?;
        Ok(ExitCode::SUCCESS)
    }
}
