//! `anteroom restore`: creates a data folder from a backup.

use super::CommandResult;
use super::salvage::{INCOMPLETE, refuse_used, salvage_into};
use crate::context::Context;
use crate::failure::Failure;
use crate::formatting::{format_count, format_git_stores, format_list, format_time};
use crate::master_key_file;
use crate::master_key_source::MasterKeySource;
use crate::progress::ProgressDisplay;
use clap::Args;
use node::Clock as _;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use store::maintenance::backup::{Restored, restore};
use store::{FolderDisk, MasterKey, Store};

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
    /// Restore a backup that lacks what could not be read when it was made, and bring the rest in order as `salvage` does
    #[arg(long)]
    incomplete: bool,
}

#[derive(Debug, Serialize)]
struct Answer {
    data_dir: String,
    master_key: String,
    backup_created_at: u64,
    rows: u64,
    objects: u64,
    git_stores: u64,
    epoch: u64,
    digest: String,
    damaged: Vec<String>,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, files) = (format_count(self.rows, "row"), format_count(self.objects, "object"));
        writeln!(f, "{} restored from a backup of {}", self.data_dir, format_time(self.backup_created_at))?;
        let git = format_git_stores(self.git_stores);
        writeln!(f, "  {rows}, {files}{git}; verified; journal epoch {}", self.epoch)?;
        writeln!(f, "  digest of all views {}", self.digest)?;
        write!(f, "  master key {}", self.master_key)?;
        match self.damaged.as_slice() {
            [] => Ok(()),
            damaged => write!(
                f,
                "\n{}",
                format_list(damaged, "could not be read when the backup was made, or could not be brought in:", "")
            ),
        }
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
        let mut progress = |bytes| bar.set(bytes);
        let folder = context.data_dir();
        let incomplete = incomplete_name(folder)?;
        // What lacks something is put in order beside its place.
        let into = if self.incomplete { incomplete.as_path() } else { folder };
        if self.incomplete {
            refuse_used(folder)?;
        }
        let restored = restore(&self.file, into, &master, options, self.incomplete, now, &mut progress)?;
        drop(bar);
        let mut answer = describe(context, &restored);
        if self.incomplete && restored.damaged.is_empty() {
            let placed = std::fs::rename(&incomplete, folder);
            placed.map_err(|why| Failure::file("restore into", folder, &why))?;
        } else if self.incomplete {
            put_in_order(context, &master, &incomplete, &mut answer)?;
        }
        if let (Some(secret), Some(file)) = (&recovered, source.key_file()) {
            master_key_file::write(file, secret)?;
        }
        context.print(&answer)?;
        Ok(if answer.damaged.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(INCOMPLETE) })
    }
}

fn incomplete_name(folder: &Path) -> Result<PathBuf, Failure> {
    let folder: PathBuf =
        std::path::absolute(folder).map_err(|why| Failure::file("restore into", folder, &why))?.components().collect();
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".incomplete");
    Ok(folder.with_file_name(name))
}

/// Brings what was restored with gaps into the folder, in order.
fn put_in_order(context: &Context, master: &MasterKey, incomplete: &Path, answer: &mut Answer) -> Result<(), Failure> {
    let folder = context.data_dir();
    let failed = |why| Failure::file("put in order", incomplete, &why);
    let disk = FolderDisk::new(incomplete).map_err(failed)?;
    let store = Store::open(Arc::new(disk), master.clone(), context.settings.config.store_options())?;
    let salvaged = salvage_into(context, (&store, incomplete), folder, master)?;
    drop(store);
    std::fs::remove_dir_all(incomplete).map_err(failed)?;
    answer.damaged.extend(salvaged.damaged);
    let disk = FolderDisk::new(folder).map_err(failed)?;
    let store = Store::open(Arc::new(disk), master.clone(), context.settings.config.store_options())?;
    let db = store.snapshot()?;
    answer.epoch = db.position()?.epoch;
    answer.digest = db.digest()?.to_string();
    Ok(())
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
        objects: restored.objects,
        git_stores: restored.extra_files,
        epoch: restored.epoch,
        digest: restored.digest.clone(),
        damaged: restored.damaged.clone(),
    }
}
