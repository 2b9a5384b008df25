//! One file per command. Each reads its arguments, calls the libraries, and prints one result.

mod admin;
mod backup;
mod bench;
mod clock;
mod collect;
mod compact;
mod completions;
mod config;
mod demo;
mod encrypt;
mod explain;
mod export;
mod files;
mod held;
mod import;
pub(crate) mod in_node;
mod init;
mod key;
mod link;
mod man;
mod objects;
mod prune;
mod ready;
mod rebuild_views;
mod recovery_text;
mod repos;
mod restore;
mod retry;
mod rewrap;
mod rotate;
mod salvage;
mod show;
mod start;
mod status;
mod verify;

use crate::context::Context;
use crate::failure::Failure;
use clap::Subcommand;
use in_node::NodeCommand;
use std::process::ExitCode;

/// The exit code, or an error to print.
pub(crate) type CommandResult = Result<ExitCode, Failure>;

/// The first line of each command's doc comment is its help text.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(init::Init),
    Import(import::Import),
    Export(export::Export),
    Status(status::Status),
    Held(held::Held),
    Explain(explain::Explain),
    Show(show::Show),
    Retry(retry::Retry),
    Repos(repos::Repos),
    Files(files::Files),
    Prune(prune::Prune),
    Collect(collect::Collect),
    Compact(compact::Compact),
    Verify(verify::Verify),
    Clock(clock::Clock),
    RebuildViews(rebuild_views::RebuildViews),
    Backup(backup::Backup),
    Objects(objects::Objects),
    Restore(restore::Restore),
    Salvage(salvage::Salvage),
    Encrypt(encrypt::Encrypt),
    Rotate(rotate::Rotate),
    Rewrap(rewrap::Rewrap),
    Key(key::Key),
    Admin(admin::Admin),
    Link(link::Link),
    Ready(ready::Ready),
    RecoveryText(recovery_text::RecoveryText),
    Config(config::ShowConfig),
    Demo(demo::Demo),
    Bench(bench::Bench),
    Completions(completions::Completions),
    Man(man::Man),
}

/// Without a command, runs the node.
pub(crate) fn run(context: &Context, command: Option<Command>) -> CommandResult {
    let Some(command) = command else { return start::run(context) };
    match command {
        Command::Init(command) => command.run(context),
        Command::Import(command) => in_node::run_or_ask(context, NodeCommand::Import(command)),
        Command::Export(command) => in_node::run_or_ask(context, NodeCommand::Export(command)),
        Command::Status(command) => in_node::run_or_ask(context, NodeCommand::Status(command)),
        Command::Held(command) => in_node::run_or_ask(context, NodeCommand::Held(command)),
        Command::Explain(command) => in_node::run_or_ask(context, NodeCommand::Explain(command)),
        Command::Show(command) => in_node::run_or_ask(context, NodeCommand::Show(command)),
        Command::Retry(command) => in_node::run_or_ask(context, NodeCommand::Retry(command)),
        Command::Repos(command) => in_node::run_or_ask(context, NodeCommand::Repos(command)),
        Command::Files(command) => in_node::run_or_ask(context, NodeCommand::Files(command)),
        Command::Prune(command) => command.run(context),
        Command::Collect(command) => command.run(context),
        Command::Compact(command) => command.run(context),
        Command::Verify(command) => in_node::run_or_ask(context, NodeCommand::Verify(command)),
        Command::Clock(command) => in_node::run_or_ask(context, NodeCommand::Clock(command)),
        Command::RebuildViews(command) => command.run(context),
        Command::Backup(command) => command.run(context),
        Command::Objects(command) => command.run(context),
        Command::Restore(command) => command.run(context),
        Command::Salvage(command) => command.run(context),
        Command::Encrypt(command) => command.run(context),
        Command::Rotate(command) => command.run(context),
        Command::Rewrap(command) => command.run(context),
        Command::Key(command) => command.run(context),
        Command::Admin(command) => command.run(context),
        Command::Link(command) => command.run(context),
        Command::Ready(command) => command.run(context),
        Command::RecoveryText(command) => command.run(context),
        Command::Config(command) => command.run(context),
        Command::Demo(command) => command.run(context),
        Command::Bench(command) => command.run(context),
        Command::Completions(command) => command.run(context),
        Command::Man(command) => command.run(context),
    }
}

/// A backup is verified by reading it back, so it cannot be a pipe.
fn refuse_pipe(file: &std::path::Path) -> Result<(), crate::failure::Failure> {
    if file == std::path::Path::new("-") {
        let what = "a backup must be a file, not a pipe, because it is verified by reading it back";
        return Err(crate::failure::Failure::new(
            what,
            "pass a file name; to transfer data through a pipe, use `anteroom export` and `anteroom import`",
        ));
    }
    Ok(())
}
