//! What can be asked of the command, told to clap. Help is the doc comments.

use crate::commands::Command;
use clap::{Args, Parser};
use std::path::PathBuf;

/// A self-hosted node for conversations, files and code.
///
/// Events may arrive in any order, long before what they refer to: they wait in the anteroom until everything they need
/// is here, and are then applied exactly once. Without a command the node runs.
#[derive(Debug, Parser)]
#[command(name = "anteroom", version, max_term_width = 100)]
#[command(after_help = "Settings come from flags, then the environment, then the configuration file, then defaults; \
                        `anteroom config` shows them.")]
pub(crate) struct Arguments {
    /// Options that every command has.
    #[command(flatten)]
    pub(crate) global: Global,
    /// What to do; without it, run the node.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Options that every command has.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options for every command")]
pub(crate) struct Global {
    /// Where everything is kept [env: ANTEROOM_DATA_DIR] [default: ./anteroom-data]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The file with the master key [env: ANTEROOM_MASTER_KEY_FILE, or ANTEROOM_MASTER_KEY with the key itself] [default:
    /// the systemd credential anteroom-master-key, or master.key in the data folder]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) master_key: Option<PathBuf>,
    /// A configuration file in TOML [env: ANTEROOM_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where the node listens [env: ANTEROOM_LISTEN] [default: 127.0.0.1:7117]
    #[arg(long, global = true, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,
    /// Overrides one setting, such as store.cache_mib=64; may be repeated
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// How much to log: error, warn, info, debug, trace, or a filter such as anteroom_node=debug [env: ANTEROOM_LOG]
    #[arg(long, global = true, value_name = "LEVEL")]
    pub(crate) log: Option<String>,
    /// Log as JSON lines
    #[arg(long, global = true)]
    pub(crate) log_json: bool,
    /// Answer with one JSON document; failures too, on standard error. The log is off unless --log is given
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_fit_together() {
        Arguments::command().debug_assert();
    }
}
