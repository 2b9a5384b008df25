//! `anteroom backup`: everything in one file, whether the node runs or not.

use super::Done;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use crate::formatting::{count, size};
use crate::operator_client::Remote;
use crate::progress::Bar;
use clap::Args;
use node::Clock as _;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

/// Write everything to one new file, and read it back to be sure
///
/// A node that runs goes on meanwhile, and writes the file itself: the path is as that process sees it.
/// Secrets stay wrapped under the master key, which is not in the file: keep its recovery text, it is needed to restore.
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
    content_files: u64,
    bytes: u64,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, files) = (count(self.rows, "row"), count(self.content_files, "content file"));
        writeln!(f, "{} written and read back: {rows}, {files}, {}", self.file, size(self.bytes))?;
        write!(f, "to restore it you need the master key or its recovery text, which is not in the file")
    }
}

impl Backup {
    pub(super) fn run(&self, context: &Context) -> Done {
        super::refuse_pipe(&self.file)?;
        let bar = Bar::bytes(context.json, "backing up", None);
        let answer = match Remote::find(context) {
            Some(remote) => self.ask(&remote, &bar),
            None => self.work(context, &bar),
        }?;
        drop(bar);
        context.show(&answer)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Asks the node that runs, which writes the file itself.
    fn ask(&self, remote: &Remote, bar: &Bar) -> Result<Answer, Failure> {
        let file = std::path::absolute(&self.file).map_err(|why| Failure::file("use the path", &self.file, &why))?;
        let Some(file) = file.to_str() else {
            let what = format!("{} is not a path that a running node can be told", file.display());
            return Err(Failure::new(what, "choose a name in plain text, or stop the node first"));
        };
        let mut progress = |state: &Value| bar.at(state["running"]["bytes"].as_u64().unwrap_or_default());
        let made = remote.ask_for_work("/admin/backups", &json!({ "file": file }), &mut progress)?;
        let number = |name: &str| made[name].as_u64().unwrap_or_default();
        Ok(Answer {
            file: file.to_owned(),
            rows: number("rows"),
            content_files: number("content_files"),
            bytes: number("bytes"),
        })
    }

    /// Writes it without a running node.
    fn work(&self, context: &Context, bar: &Bar) -> Result<Answer, Failure> {
        let (store, _lock) = data_folder::open(context, Access::Read)?;
        let done = store.backup(&self.file, context.clock.now(), &mut |bytes| bar.at(bytes))?;
        Ok(Answer {
            file: self.file.display().to_string(),
            rows: done.rows,
            content_files: done.files,
            bytes: done.bytes,
        })
    }
}
