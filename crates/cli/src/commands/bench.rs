//! `anteroom bench`: how fast this machine runs the node.

use super::Done;
use crate::bench;
use crate::context::Context;
use crate::failure::Failure;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// Measure how fast the node is on this machine
///
/// Each benchmark prints a table and one line of JSON, with --json or without.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// The benchmark; all of them if none is named
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Smaller and quicker, to see that it works rather than how fast it is
    #[arg(long)]
    quick: bool,
    /// Where to put the stores that are measured; the system's temporary folder if not given
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Bench {
    pub(super) fn run(&self, _context: &Context) -> Done {
        bench::run(self.name.as_deref(), self.quick, self.dir.clone())
            .map_err(|why| Failure::new(format!("{why:#}"), "check the name and that --dir has room"))?;
        Ok(ExitCode::SUCCESS)
    }
}
