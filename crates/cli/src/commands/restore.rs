//! `anteroom restore`: creates a data folder from a backup.

use super::CommandResult;
use crate::context::Context;
use crate::failure::Failure;
use crate::formatting::{format_count, format_time};
use crate::master_key_file;
use crate::master_key_source::MasterKeySource;
use crate::progress::ProgressDisplay;
use clap::Args;
use node::Clock as _;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use store::MasterKey;
use store::maintenance::backup::{Restored, restore};

/// Create a data folder from a backup; the folder must be empty or not exist
///
/// Needs the master key, or --recover with its recovery text. The whole file is checked before anything is written.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The backup file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The recovery text of the master key, which is then written to the key file; `-` reads the text from standard input
    #[arg(long, value_name = "TEXT")]
    recover: Option<String>,
}

#[derive(Debug, Serialize)]
struct Answer {
    data_dir: String,
    master_key: String,
    backup_created_at: u64,
    rows: u64,
    content_files: u64,
    epoch: u64,
    digest: String,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, files) = (format_count(self.rows, "row"), format_count(self.content_files, "content file"));
        writeln!(f, "{} restored from a backup of {}", self.data_dir, format_time(self.backup_created_at))?;
        writeln!(f, "  {rows}, {files}; verified; journal epoch {}", self.epoch)?;
        writeln!(f, "  digest of all views {}", self.digest)?;
        write!(f, "  master key {}", self.master_key)
    }
}

impl Restore {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        super::refuse_pipe(&self.file)?;
        let recovered = self.recover.as_deref().map(master_key_file::read_recovery_argument).transpose()?;
        let source = &context.settings.master_key;
        if recovered.is_some() && source.exists() {
            let what = format!("there is already a master key: {source}");
            return Err(Failure::new(what, "omit --recover to use it, or pass another --master-key"));
        }
        let master = match &recovered {
            Some(secret) => MasterKey::new(secret),
            None => read_existing_key(source)?,
        };
        let total = std::fs::metadata(&self.file).ok().map(|metadata| metadata.len());
        let bar = ProgressDisplay::for_bytes(context.json, "checking the backup", total);
        let options = context.settings.config.store_options();
        let now = context.clock.now();
        let restored = restore(&self.file, context.data_dir(), &master, options, now, &mut |bytes| bar.set(bytes))?;
        drop(bar);
        if let (Some(secret), Some(file)) = (&recovered, source.key_file()) {
            master_key_file::write(file, secret)?;
        }
        context.print(&describe(context, &restored))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn read_existing_key(source: &MasterKeySource) -> Result<MasterKey, Failure> {
    if source.exists() {
        return source.read();
    }
    Err(Failure::new(
        "restoring needs the master key of the backup, and there is none",
        "pass --master-key FILE, or --recover with the recovery text",
    ))
}

fn describe(context: &Context, restored: &Restored) -> Answer {
    Answer {
        data_dir: context.data_dir().display().to_string(),
        master_key: context.settings.master_key.to_string(),
        backup_created_at: restored.created_at.0,
        rows: restored.rows,
        content_files: restored.files,
        epoch: restored.epoch,
        digest: restored.digest.clone(),
    }
}
