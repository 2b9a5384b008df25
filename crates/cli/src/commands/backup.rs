//! `anteroom backup`: writes a backup, with or without a running node.

use super::CommandResult;
use super::salvage::INCOMPLETE;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use crate::formatting::{format_count, format_git_stores, format_list, format_size};
use crate::operator_client::OperatorClient;
use crate::progress::ProgressDisplay;
use clap::Args;
use git::GitFolder;
use node::Clock as _;
use node::git::RepositoryFiles;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use store::maintenance::backup::{ExtraFiles, NoExtraFiles};

/// Back up the data folder to one new file, and verify the file by reading it back
///
/// A running node writes the file itself and continues to serve; the path must be valid for that process. The backup
/// does not contain the master key, which is needed to restore it: keep the recovery text. What is damaged and cannot be
/// read is named and left out; the exit code is then 3.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The file to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Debug, Serialize)]
struct Answer {
    file: String,
    rows: u64,
    objects: u64,
    git_stores: u64,
    bytes: u64,
    damaged: u64,
    first_damaged: Vec<String>,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, files) = (format_count(self.rows, "row"), format_count(self.objects, "object"));
        let git = format_git_stores(self.git_stores);
        writeln!(f, "{} written and verified: {rows}, {files}{git}, {}", self.file, format_size(self.bytes))?;
        write!(f, "to restore it you need the master key or its recovery text, which the backup does not contain")?;
        if self.damaged > 0 {
            let damaged = format_list(&self.first_damaged, "could not be read; the backup lacks:", "");
            let more = self.damaged.saturating_sub(self.first_damaged.len() as u64);
            let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
            write!(f, "\n{damaged}{more}\nkeep your earlier backups; `anteroom verify` says more")?;
        }
        Ok(())
    }
}

impl Backup {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        super::refuse_pipe(&self.file)?;
        let bar = ProgressDisplay::for_bytes(context.json, "backing up", None);
        let answer = match OperatorClient::find(context) {
            Some(client) => self.request_from_node(&client, &bar),
            None => self.write_directly(context, &bar),
        }?;
        drop(bar);
        context.print(&answer)?;
        Ok(if answer.damaged == 0 { ExitCode::SUCCESS } else { ExitCode::from(INCOMPLETE) })
    }

    fn request_from_node(&self, client: &OperatorClient, bar: &ProgressDisplay) -> Result<Answer, Failure> {
        let file = std::path::absolute(&self.file).map_err(|why| Failure::file("use the path", &self.file, &why))?;
        let Some(file) = file.to_str() else {
            let what = format!("the path {} is not valid UTF-8", file.display());
            return Err(Failure::new(what, "choose another name, or stop the node first"));
        };
        let mut progress = |state: &Value| bar.set(state["running"]["bytes"].as_u64().unwrap_or_default());
        let made = client.post_with_progress("/admin/backups", &json!({ "file": file }), &mut progress)?;
        let number = |name: &str| made[name].as_u64().unwrap_or_default();
        Ok(Answer {
            file: file.to_owned(),
            rows: number("rows"),
            objects: number("objects"),
            git_stores: number("git_stores"),
            bytes: number("bytes"),
            damaged: number("damaged"),
            first_damaged: serde_json::from_value(made["first_damaged"].clone()).unwrap_or_default(),
        })
    }

    fn write_directly(&self, context: &Context, bar: &ProgressDisplay) -> Result<Answer, Failure> {
        let (store, _lock) = data_folder::open(context, Access::Read)?;
        let git = GitFolder::open_existing(context.data_dir().join("git"));
        let files = git.as_ref().map(RepositoryFiles::of_folder);
        let extra_files: &dyn ExtraFiles = files.as_ref().map_or(&NoExtraFiles, |files| files);
        let done = store.backup_with(&self.file, context.clock.now(), extra_files, &mut |bytes| {
            bar.set(bytes);
            ControlFlow::Continue(())
        })?;
        Ok(Answer {
            file: self.file.display().to_string(),
            rows: done.rows,
            objects: done.objects,
            git_stores: done.extra_files,
            bytes: done.bytes,
            damaged: done.damaged,
            first_damaged: done.first_damaged,
        })
    }
}
