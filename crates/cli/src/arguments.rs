//! The command line, for clap. The doc comments are the help texts.

use crate::commands::Command;
use clap::{Args, Parser};
use std::path::PathBuf;

/// A self-hosted node for conversations, files and code.
///
/// Events may arrive in any order, also before the events they refer to. Anteroom holds each event until everything it
/// needs has arrived, and then applies it exactly once. Without a command, `anteroom` runs the node.
#[derive(Debug, Parser)]
#[command(name = "anteroom", version, max_term_width = 100)]
#[command(
    after_help = "Flags override environment variables, which override the configuration file. `anteroom config` \
                        shows all settings and where each value comes from."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Options for every command")]
pub(crate) struct Global {
    /// The data folder [env: ANTEROOM_DATA_DIR] [default: ./anteroom-data]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The master key file [env: ANTEROOM_MASTER_KEY_FILE, or ANTEROOM_MASTER_KEY for the key itself] [default: the
    /// systemd credential anteroom-master-key, or master.key in the data folder]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) master_key: Option<PathBuf>,
    /// The configuration file, in TOML [env: ANTEROOM_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The address and port to listen on [env: ANTEROOM_LISTEN] [default: 127.0.0.1:7117]
    #[arg(long, global = true, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,
    /// Set a number from the configuration, such as store.cache_mib=64; may be repeated
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// The log level: off, error, warn, info, debug or trace; or a filter such as anteroom_node=debug [env: ANTEROOM_LOG]
    #[arg(long, global = true, value_name = "LEVEL")]
    pub(crate) log: Option<String>,
    /// Write the log as JSON lines
    #[arg(long, global = true)]
    pub(crate) log_json: bool,
    /// Print the result as one JSON document, and errors as JSON on standard error. Turns the log off unless it is
    /// configured
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
