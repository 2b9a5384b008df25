//! `anteroom rewrap`: replaces the master key.

use super::CommandResult;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use crate::master_key_file;
use crate::master_key_source::MasterKeySource;
use crate::row_rewrite::{self, ROWS_PER_STEP, RewriteReport};
use clap::Args;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

/// Replace the master key of the data folder
///
/// If interrupted, run it again with the same key file: it resumes where it stopped. With --begin it returns at once, and
/// the node does the rest in the background when it is started with the new key. Older backups still need the old key.
#[derive(Debug, Args)]
pub(crate) struct Rewrap {
    /// The new key file; it is created if it does not exist
    #[arg(long, value_name = "FILE")]
    new_key: PathBuf,
    /// Only switch to the new key; the node does the rest while it serves
    #[arg(long)]
    begin: bool,
}

#[derive(Debug, Serialize)]
struct Answer {
    master_key: String,
    /// Only if the key was created now.
    recovery_text: Option<String>,
    #[serde(flatten)]
    report: RewriteReport,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.report)?;
        writeln!(
            f,
            "the master key is now {}: pass it with --master-key, or replace the old key file with it",
            self.master_key
        )?;
        match &self.recovery_text {
            Some(text) => write!(f, "write down its recovery text: {text}"),
            None => Ok(()),
        }
    }
}

impl Rewrap {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        let folder = context.data_dir();
        if !data_folder::has_database(folder)? {
            let what = format!("{} has no database", folder.display());
            return Err(Failure::new(what, "pass the data folder with --data-dir"));
        }
        // The new key file is synced before any value is encrypted with the key.
        let recovery_text = if self.new_key.exists() { None } else { Some(self.create_key_file()?) };
        let new_source = MasterKeySource::File(self.new_key.clone());
        let new = new_source.read()?;
        // If the new key already opens the folder, an earlier run was interrupted or is complete.
        let begun = data_folder::open_with_key(context, Access::Write, &new_source);
        let (mut store, _lock) = match begun {
            Ok(opened) => opened,
            Err(_) => {
                let (store, lock) = data_folder::open(context, Access::Write)?;
                if !store.begin_rewrap(&new)? {
                    let what = "an earlier change of the master key is not complete";
                    return Err(Failure::new(
                        what,
                        "complete it first: run `anteroom rewrap` with the key file of that change",
                    ));
                }
                drop(lock);
                data_folder::open_with_key(context, Access::Write, &new_source)?
            }
        };
        let report = if self.begin {
            RewriteReport::default()
        } else {
            let report =
                row_rewrite::rewrite_rows(context, &store, "wrapping keys", |batch| batch.rewrap(ROWS_PER_STEP))?;
            row_rewrite::compact_database(&mut store);
            report
        };
        context.print(&Answer { master_key: self.new_key.display().to_string(), recovery_text, report })?;
        Ok(ExitCode::SUCCESS)
    }

    fn create_key_file(&self) -> Result<String, Failure> {
        let secret = master_key_file::generate_secret()?;
        master_key_file::write(&self.new_key, &secret)?;
        Ok(master_key_file::format_recovery_text(&secret).to_string())
    }
}
