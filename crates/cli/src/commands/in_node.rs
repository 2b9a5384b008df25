//! Commands that a running node executes for whoever calls them: it has the data folder to itself, and need not be
//! stopped. The same code runs as without a node, so the output is the same.

use super::CommandResult;
use super::clock::Clock;
use super::explain::Explain;
use super::export::{self, Export};
use super::files::dump::DumpArguments;
use super::files::import::ImportArguments;
use super::files::{self, Files, FilesAction, backfill};
use super::held::Held;
use super::import::Import;
use super::repos::archive::ArchiveArguments;
use super::repos::sync;
use super::repos::{Repos, ReposAction};
use super::retry::Retry;
use super::show::Show;
use super::status::Status;
use super::verify::Verify;
use crate::config::Settings;
use crate::context::Context;
use crate::failure::Failure;
use crate::operator_client::OperatorClient;
use crate::output;
use crate::random::random_bytes;
use node::Node;
use serde::{Deserialize, Serialize};
use serde_json::json;
use server::command_runner::{CommandCall, CommandOutcome, CommandRunner};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// A command that a running node can execute.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NodeCommand {
    Status(Status),
    Held(Held),
    Explain(Explain),
    Show(Show),
    Retry(Retry),
    Repos(Repos),
    Files(Files),
    Verify(Verify),
    Clock(Clock),
    Export(Export),
    Import(Import),
}

/// What the node answers.
#[derive(Debug, Deserialize)]
struct Answer {
    output: String,
    errors: String,
    exit_code: u8,
    failure: Option<Failure>,
}

impl NodeCommand {
    /// The file that it reads or writes.
    fn file(&self) -> Option<&Path> {
        match self {
            NodeCommand::Export(Export { out: file, .. }) | NodeCommand::Import(Import { file, .. }) => Some(file),
            NodeCommand::Repos(Repos { action: ReposAction::Archive(ArchiveArguments { file, .. }) }) => Some(file),
            NodeCommand::Files(Files { action: FilesAction::Import(ImportArguments { folder, .. }) }) => Some(folder),
            NodeCommand::Files(Files { action: FilesAction::ImportDump(DumpArguments { file, .. }) }) => Some(file),
            _ => None,
        }
    }

    fn run(&self, context: &Context) -> Result<u8, Failure> {
        match self {
            NodeCommand::Status(command) => command.run(context),
            NodeCommand::Held(command) => command.run(context),
            NodeCommand::Explain(command) => command.run(context),
            NodeCommand::Show(command) => command.run(context),
            NodeCommand::Retry(command) => command.run(context),
            NodeCommand::Repos(command) => command.run(context),
            NodeCommand::Files(command) => command.run(context),
            NodeCommand::Verify(command) => command.run(context),
            NodeCommand::Clock(command) => command.run(context),
            NodeCommand::Export(command) => command.run(context),
            NodeCommand::Import(command) => command.run(context),
        }
    }
}

/// Runs a command on the folder, or has the node run it that uses the folder.
pub(super) fn run_or_ask(context: &Context, mut command: NodeCommand) -> CommandResult {
    match &mut command {
        NodeCommand::Export(export) => export.read_passphrase()?,
        NodeCommand::Import(import) => import.read_passphrase()?,
        _ => {}
    }
    let code = match OperatorClient::find(context) {
        Some(client) => match &command {
            NodeCommand::Repos(Repos { action: ReposAction::Sync(arguments) }) if arguments.wait => {
                sync::run_and_wait(context, &client, arguments)?
            }
            NodeCommand::Files(Files { action: FilesAction::Backfill(arguments) }) => {
                backfill::run_by_parts(context, &client, arguments)?
            }
            NodeCommand::Files(Files { action: FilesAction::Import(arguments) }) => {
                files::import::run_by_parts(context, &client, arguments)?
            }
            NodeCommand::Files(Files { action: FilesAction::ImportDump(arguments) }) => {
                files::dump::run_by_parts(context, &client, arguments)?
            }
            _ => ask(context, &client, command)?,
        },
        None => command.run(context)?,
    };
    Ok(ExitCode::from(code))
}

/// What executes the commands of other processes inside this node.
pub(crate) fn runner(settings: Arc<Settings>, node: Node) -> CommandRunner {
    Arc::new(move |CommandCall { command, is_json }| {
        let command: NodeCommand = serde_json::from_value(command).ok()?;
        // The standard streams of the node are not the caller's.
        if command.file().is_some_and(|file| !file.is_absolute()) {
            return None;
        }
        let context = Context::inside(settings.clone(), node.clone(), is_json);
        let (exit_code, failure) = match command.run(&context) {
            Ok(code) => (code, None),
            Err(failure) => (1, serde_json::to_value(&failure).ok()),
        };
        let printed = context.printed();
        Some(CommandOutcome { output: printed.output, errors: printed.errors, exit_code, failure })
    })
}

/// What the node prints for a command, as JSON.
pub(super) fn ask_for_json(client: &OperatorClient, command: &NodeCommand) -> Result<serde_json::Value, Failure> {
    let answer: Answer = client.post_long("/admin/commands", &json!({ "command": command, "json": true }))?;
    if let Some(failure) = answer.failure {
        return Err(failure);
    }
    serde_json::from_str(&answer.output)
        .map_err(|why| Failure::new(format!("the node answers something that is no JSON: {why}"), "try again"))
}

fn ask(context: &Context, client: &OperatorClient, mut command: NodeCommand) -> Result<u8, Failure> {
    let mut spool = None;
    match &mut command {
        NodeCommand::Export(export) if is_stream(&export.out) => {
            export::refuse_terminal()?;
            export.out = spool.insert(Spool::new(context)?).0.clone();
        }
        NodeCommand::Import(import) if is_stream(&import.file) => {
            let spool = spool.insert(Spool::new(context)?);
            spool.fill(&mut io::stdin().lock())?;
            import.file = spool.0.clone();
        }
        // A pipe under a name is this process's, too.
        NodeCommand::Import(import)
            if fs::metadata(&import.file).is_ok_and(|file| !file.is_file() && !file.is_dir()) =>
        {
            let failed = |why| Failure::file("read the bundle", &import.file, &why);
            let spool = spool.insert(Spool::new(context)?);
            spool.fill(&mut File::open(&import.file).map_err(failed)?)?;
            import.file = spool.0.clone();
        }
        // `/dev/stdin` leads to another file in every process.
        NodeCommand::Import(Import { file, .. }) if file.exists() => {
            *file = fs::canonicalize(&*file).map_err(|why| Failure::file("read the bundle", file, &why))?;
        }
        NodeCommand::Export(Export { out: file, .. }) | NodeCommand::Import(Import { file, .. }) => {
            *file = std::path::absolute(&*file).map_err(|why| Failure::file("use the path", file, &why))?;
        }
        NodeCommand::Repos(Repos { action: ReposAction::Archive(ArchiveArguments { file, .. }) }) => {
            *file = std::path::absolute(&*file).map_err(|why| Failure::file("use the path", file, &why))?;
        }
        NodeCommand::Status(_) | NodeCommand::Held(_) | NodeCommand::Explain(_) => {}
        NodeCommand::Show(_) | NodeCommand::Verify(_) | NodeCommand::Clock(_) => {}
        NodeCommand::Retry(_) | NodeCommand::Repos(_) | NodeCommand::Files(_) => {}
    }
    let is_export = matches!(command, NodeCommand::Export(_));
    let body = json!({ "command": &command, "json": context.json });
    let answer: Answer = client.post_long("/admin/commands", &body)?;
    output::write_stderr(&answer.errors);
    if let Some(failure) = answer.failure {
        return Err(failure);
    }
    match spool.filter(|_| is_export) {
        // The bundle takes standard output.
        Some(spool) => {
            spool.empty(&mut io::stdout().lock())?;
            output::write_stderr(&answer.output);
        }
        None => output::write_stdout(&answer.output)?,
    }
    Ok(answer.exit_code)
}

fn is_stream(path: &Path) -> bool {
    path == Path::new("-")
}

/// What the names of spool files begin with.
const SPOOL: &str = "spool-";

/// Deletes what commands that were killed have left.
pub(super) fn delete_spools(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(SPOOL) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A file in the data folder through which a bundle goes between a pipe and the node, deleted afterwards.
struct Spool(PathBuf);

impl Spool {
    fn new(context: &Context) -> Result<Spool, Failure> {
        let name = format!("{SPOOL}{}", hex::encode(random_bytes::<8>()?));
        let path = std::path::absolute(context.data_dir().join(name));
        path.map(Spool).map_err(|why| Failure::file("use the data folder", context.data_dir(), &why))
    }

    fn fill(&self, from: &mut dyn io::Read) -> Result<(), Failure> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.0);
        let filled = file.and_then(|mut file| io::copy(from, &mut file)).inspect(|_| self.hand_over());
        filled.map(drop).map_err(|why| Failure::file("write the bundle for the node to", &self.0, &why))
    }

    /// The node may run as another user, who owns the data folder.
    fn hand_over(&self) {
        if let Some(Ok(owner)) = self.0.parent().map(fs::metadata) {
            let _ = std::os::unix::fs::chown(&self.0, Some(owner.uid()), Some(owner.gid()));
        }
    }

    fn empty(&self, to: &mut dyn io::Write) -> Result<(), Failure> {
        let failed = |why| Failure::file("read the bundle that the node wrote to", &self.0, &why);
        let mut file = File::open(&self.0).map_err(failed)?;
        io::copy(&mut file, to).and_then(|_| to.flush()).map_err(|why| match why.kind() {
            io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => failed(why),
        })
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
