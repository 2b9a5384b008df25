//! `anteroom man`: writes man pages.

use super::CommandResult;
use crate::arguments::Arguments;
use crate::context::Context;
use crate::failure::Failure;
use clap::{Args, CommandFactory as _};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

/// Write man pages, one per command, to a folder
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The folder; it is created if it does not exist
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

#[derive(Debug, Serialize)]
struct Answer {
    written: Vec<String>,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.written.iter().try_for_each(|path| writeln!(f, "{path}"))
    }
}

impl Man {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        let failed = |why| Failure::file("write man pages to", &self.dir, &why);
        std::fs::create_dir_all(&self.dir).map_err(failed)?;
        let mut root = Arguments::command().disable_help_subcommand(true);
        root.build();
        let mut written = Vec::new();
        for command in std::iter::once(&root).chain(root.get_subcommands()) {
            let path = clap_mangen::Man::new(command.clone()).generate_to(&self.dir).map_err(failed)?;
            written.push(path.display().to_string());
        }
        written.sort();
        context.print(&Answer { written })?;
        Ok(ExitCode::SUCCESS)
    }
}
