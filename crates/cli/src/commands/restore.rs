//! `anteroom restore`: a data folder from a backup.

use super::Done;
use crate::context::Context;
use crate::failure::Failure;
use crate::formatting::{count, moment};
use crate::master_key_file;
use crate::master_key_source::KeyPlace;
use crate::progress::Bar;
use clap::Args;
use node::Clock as _;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use store::MasterKey;
use store::maintenance::backup::{Restored, restore};

/// Make a data folder from a backup; the folder must be empty or absent
///
/// The master key comes from --master-key or --recover. Nothing is written before the whole file was checked.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The backup
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The recovery text of the master key, which is written to the new folder; `-` reads it from standard input
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
        let (rows, files) = (count(self.rows, "row"), count(self.content_files, "content file"));
        writeln!(f, "{} restored from a backup of {}", self.data_dir, moment(self.backup_created_at))?;
        writeln!(f, "  {rows}, {files}; verified; the journal begins epoch {}", self.epoch)?;
        writeln!(f, "  digest of all views {}", self.digest)?;
        write!(f, "  master key {}", self.master_key)
    }
}

impl Restore {
    pub(super) fn run(&self, context: &Context) -> Done {
        super::refuse_pipe(&self.file)?;
        let recovered = self.recover.as_deref().map(master_key_file::recovery_argument).transpose()?;
        let place = &context.loaded.master_key;
        if recovered.is_some() && place.exists() {
            let what = format!("there is a master key already: {place}");
            return Err(Failure::new(what, "leave out --recover to use it, or pass another --master-key"));
        }
        let master = match &recovered {
            Some(secret) => MasterKey::new(secret),
            None => key_that_is_there(place)?,
        };
        let total = std::fs::metadata(&self.file).ok().map(|metadata| metadata.len());
        let bar = Bar::bytes(context.json, "checking the backup", total);
        let options = context.loaded.config.store_options();
        let now = context.clock.now();
        let restored = restore(&self.file, context.data_dir(), &master, options, now, &mut |bytes| bar.at(bytes))?;
        drop(bar);
        if let (Some(secret), Some(file)) = (&recovered, place.own_file()) {
            master_key_file::write(file, secret)?;
        }
        context.show(&answer(context, &restored))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn key_that_is_there(place: &KeyPlace) -> Result<MasterKey, Failure> {
    if place.exists() {
        return place.read();
    }
    Err(Failure::new(
        "a backup is restored with the master key it was made under, and none was passed",
        "pass --master-key FILE, or --recover with the recovery text",
    ))
}

fn answer(context: &Context, restored: &Restored) -> Answer {
    Answer {
        data_dir: context.data_dir().display().to_string(),
        master_key: context.loaded.master_key.to_string(),
        backup_created_at: restored.created_at.0,
        rows: restored.rows,
        content_files: restored.files,
        epoch: restored.epoch,
        digest: restored.digest.clone(),
    }
}
