//! `anteroom completions`: prints shell completions.

use super::CommandResult;
use crate::arguments::Arguments;
use crate::context::Context;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use serde::Serialize;
use std::fmt;
use std::process::ExitCode;

/// Print a completion script for a shell
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

#[derive(Debug, Serialize)]
struct Answer {
    shell: String,
    script: String,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.script)
    }
}

impl Completions {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "anteroom", &mut script);
        let script = String::from_utf8_lossy(&script).into_owned();
        context.print(&Answer { shell: self.shell.to_string(), script })?;
        Ok(ExitCode::SUCCESS)
    }
}
