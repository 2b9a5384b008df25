//! Commands of the command line that the running node executes, because it has the data folder to itself. The binary,
//! which knows the commands, brings the function that runs them.

use serde_json::Value;
use std::sync::Arc;

/// How many run at the same time; more are turned away.
pub(crate) const RUNNING_MAX: usize = 4;

/// A command to run.
#[derive(Debug)]
pub struct CommandCall {
    /// The command with its options, as the binary writes it.
    pub command: Value,
    /// Whether its result is wanted as one JSON document.
    pub is_json: bool,
}

/// What a command came to.
#[derive(Default, Debug)]
pub struct CommandOutcome {
    /// What it would have written to standard output.
    pub output: String,
    /// What it would have written to standard error.
    pub errors: String,
    pub exit_code: u8,
    /// Why it failed, as the binary writes it.
    pub failure: Option<Value>,
}

/// Runs a command; none if it is not one.
pub type CommandRunner = Arc<dyn Fn(CommandCall) -> Option<CommandOutcome> + Send + Sync>;
