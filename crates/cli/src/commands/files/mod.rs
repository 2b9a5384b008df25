//! `anteroom files`: how files stand, what is missing of them, and folders that become files.

pub(super) mod backfill;
pub(super) mod dump;
mod dumped;
pub(super) mod import;
mod status;

use self::backfill::BackfillArguments;
use self::dump::DumpArguments;
use self::import::ImportArguments;
use crate::commands::retry::Hunting;
use crate::context::Context;
use crate::failure::Failure;
use clap::{Args, Subcommand};
use model::{FileId, SpaceId};
use node::AskError;
use node::commands::files::{FileCommand, FileError, FileRequest};
use node::commands::{Caller, CallerKind};
use serde::{Deserialize, Serialize};
use std::fmt;
use store::Db;
use store::tables::TableReads;

/// Show how files stand, bring renditions and statuses in order, import folders
#[derive(Debug, Args, Serialize, Deserialize)]
pub(crate) struct Files {
    #[command(subcommand)]
    pub(super) action: FilesAction,
}

#[derive(Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FilesAction {
    /// Count files, objects and derived files by status; list what is stuck, what has failed and what does not fit
    Status,
    /// Look at all originals again: make renditions that are missing, and report what does not fit
    Backfill(BackfillArguments),
    /// Process a file again whose processing has failed
    Retry(FileArgument),
    /// Stop processing a file, and say why
    Fail(FailArguments),
    /// Upload the files of a folder; those that are here already are skipped. The node must be running
    Import(ImportArguments),
    /// Take over files that another system kept, from a dump of its records. The node must be running
    ImportDump(DumpArguments),
}

#[derive(Debug, Args, Serialize, Deserialize)]
pub(super) struct FileArgument {
    /// The file: file- and 32 digits
    #[arg(value_name = "ID", value_parser = check_id)]
    file: String,
}

#[derive(Debug, Args, Serialize, Deserialize)]
pub(super) struct FailArguments {
    #[command(flatten)]
    file: FileArgument,
    /// Why, for whoever looks at the file later
    #[arg(long, value_name = "TEXT")]
    why: String,
}

fn check_id(text: &str) -> Result<String, String> {
    FileId::from_name(text).map(|_| text.to_owned()).ok_or_else(|| NOT_ONE.to_owned())
}

const NOT_ONE: &str = "a file is written file- and 32 hexadecimal digits, as the API and the pages show it";

impl Files {
    pub(super) fn run(&self, context: &Context) -> Result<u8, Failure> {
        match &self.action {
            FilesAction::Status => status::run(context),
            FilesAction::Backfill(arguments) => backfill::run(context, arguments),
            FilesAction::Retry(file) => change(context, file, FileCommand::Retry, "will be processed again"),
            FilesAction::Fail(FailArguments { file, why }) => {
                change(context, file, FileCommand::FailWork(why.clone()), "is not processed any more")
            }
            FilesAction::Import(arguments) => import::run(context, arguments),
            FilesAction::ImportDump(arguments) => dumped::run(context, arguments),
        }
    }
}

/// What became of a file.
#[derive(Debug, Serialize)]
struct FileChanged {
    file: String,
    name: String,
    status: &'static str,
    #[serde(skip)]
    what: &'static str,
}

impl fmt::Display for FileChanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = crate::formatting::escape_controls(&self.name);
        writeln!(f, "{} ({name}) {}; its status is {}", self.file, self.what, self.status)
    }
}

fn change(context: &Context, named: &FileArgument, command: FileCommand, what: &'static str) -> Result<u8, Failure> {
    let file = FileId::from_name(&named.file).ok_or_else(|| Failure::new(NOT_ONE, "see `anteroom help files`"))?;
    let node = Hunting::open(context)?;
    let space = space_of(&*node.snapshot()?, file)?.ok_or_else(|| {
        Failure::new(format!("there is no file {}", named.file), "the API and the pages show the ids of files")
    })?;
    let caller = Caller { kind: CallerKind::Operator, user: None, audit_name: "operator".to_owned() };
    let random = crate::random::random_bytes()?;
    let changed = node.ask(FileRequest { space, caller, file, command, idempotency: None, random });
    let changed = changed.map_err(failure_of_file)?;
    let (name, status) = (changed.record.name, changed.record.status.word());
    context.print(&FileChanged { file: named.file.clone(), name, status, what })?;
    Ok(0)
}

fn failure_of_file(why: AskError<FileError>) -> Failure {
    match why {
        AskError::Refused(why) => Failure::new(why.to_string(), "`anteroom files status` shows how files stand"),
        AskError::NotRun(why) => why.into(),
    }
}

/// The space of a file.
fn space_of<V: TableReads>(db: &Db<V>, file: FileId) -> Result<Option<SpaceId>, Failure> {
    for (space, _) in db.hosted_spaces()? {
        if db.file(&space, file)?.is_some() {
            return Ok(Some(space));
        }
    }
    Ok(None)
}
