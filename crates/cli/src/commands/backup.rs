//! `anteroom backup`: everything in one file.

use super::Done;
use crate::context::Context;
use crate::folder::{self, Access};
use crate::progress::Bar;
use crate::words::{count, size};
use clap::Args;
use node::Clock as _;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

/// Write everything to one new file, and read it back to be sure
///
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
        let (store, _lock) = folder::open(context, Access::Read)?;
        let bar = Bar::bytes(context.json, "backing up", None);
        let done = store.backup(&self.file, context.clock.now(), &mut |bytes| bar.at(bytes))?;
        drop(bar);
        context.show(&Answer {
            file: self.file.display().to_string(),
            rows: done.rows,
            content_files: done.files,
            bytes: done.bytes,
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
