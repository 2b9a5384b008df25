//! `anteroom rewrap`: a new master key.

use super::Done;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use crate::master_key_file;
use crate::master_key_source::KeyPlace;
use crate::row_rewrite::{self, ROWS_PER_STEP, Swept};
use clap::Args;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

/// Move the data folder to a new master key
///
/// May be stopped and run again with the same file: it goes on where it was. With --begin it takes a moment, and the
/// node goes on by itself when it is started with the new key. Backups made before need the old key.
#[derive(Debug, Args)]
pub(crate) struct Rewrap {
    /// The file with the new key; one that is not there is made
    #[arg(long, value_name = "FILE")]
    new_key: PathBuf,
    /// Only make it a folder of the new key; the node does the rest while it serves
    #[arg(long)]
    begin: bool,
}

#[derive(Debug, Serialize)]
struct Answer {
    master_key: String,
    /// Only of a key that was made now.
    recovery_text: Option<String>,
    #[serde(flatten)]
    swept: Swept,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.swept)?;
        writeln!(f, "the master key is {} now: pass it with --master-key, or put it in its place", self.master_key)?;
        match &self.recovery_text {
            Some(text) => write!(f, "write down its recovery text: {text}"),
            None => Ok(()),
        }
    }
}

impl Rewrap {
    pub(super) fn run(&self, context: &Context) -> Done {
        let folder = context.data_dir();
        if !data_folder::database(folder).exists() {
            let what = format!("{} has no database", folder.display());
            return Err(Failure::new(what, "pass the data folder with --data-dir"));
        }
        // The new key is durable before anything rests under it.
        let recovery_text = if self.new_key.exists() { None } else { Some(self.make()?) };
        let new_place = KeyPlace::File(self.new_key.clone());
        let new = new_place.read()?;
        // A folder that is of the new key already was stopped half way, or is done.
        let begun = data_folder::open_with(context, Access::Write, &new_place);
        let (mut store, _lock) = match begun {
            Ok(opened) => opened,
            Err(_) => {
                let (store, lock) = data_folder::open(context, Access::Write)?;
                if !store.begin_rewrap(&new)? {
                    let what = "an earlier change of the master key is not finished";
                    return Err(Failure::new(what, "run `anteroom rewrap` with the key file of that change"));
                }
                drop(lock);
                data_folder::open_with(context, Access::Write, &new_place)?
            }
        };
        let swept = if self.begin {
            Swept::default()
        } else {
            let swept = row_rewrite::run(context, &store, "wrapping keys", |batch| batch.rewrap(ROWS_PER_STEP))?;
            row_rewrite::compact(&mut store);
            swept
        };
        context.show(&Answer { master_key: self.new_key.display().to_string(), recovery_text, swept })?;
        Ok(ExitCode::SUCCESS)
    }

    fn make(&self) -> Result<String, Failure> {
        let secret = master_key_file::make()?;
        master_key_file::write(&self.new_key, &secret)?;
        Ok(master_key_file::recovery_text(&secret).to_string())
    }
}
