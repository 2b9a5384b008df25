//! `anteroom recovery-text`: shows the recovery text of the master key again.

use super::CommandResult;
use crate::context::Context;
use crate::failure::Failure;
use crate::master_key_file;
use clap::Args;
use serde::Serialize;
use std::fmt;
use std::process::ExitCode;

/// Show the recovery text of the master key again
///
/// The text is the master key itself: whoever reads it can decrypt the data folder and every backup. It is shown only
/// with --yes. The node may be running.
#[derive(Debug, Args)]
pub(crate) struct RecoveryText {
    /// Show it, on this screen
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Serialize)]
struct ShownText {
    master_key: String,
    recovery_text: String,
}

impl fmt::Display for ShownText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "The recovery text of the master key {}:\n", self.master_key)?;
        master_key_file::write_in_lines(f, &self.recovery_text)
    }
}

impl RecoveryText {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        if !self.yes {
            return Err(Failure::new(
                "the recovery text is the master key: whoever reads it can decrypt the data folder and every backup",
                "run `anteroom recovery-text --yes` where nobody else sees the screen, and write the text down",
            ));
        }
        let source = &context.settings.master_key;
        let secret = source.read_secret()?;
        let master_key = match source.key_file() {
            Some(file) => file.display().to_string(),
            None => format!("in {source}"),
        };
        let recovery_text = master_key_file::format_recovery_text(&secret).to_string();
        context.print(&ShownText { master_key, recovery_text })?;
        Ok(ExitCode::SUCCESS)
    }
}
