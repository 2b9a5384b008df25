//! `anteroom init`: creates a data folder and its master key.

use super::CommandResult;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use crate::master_key_file::{self, Secret};
use crate::object_store::open_disk;
use clap::Args;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use store::{MasterKey, Store};

/// Create the data folder and its master key, and print the recovery text
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Recreate the key file from its recovery text; `-` reads the text from standard input
    #[arg(long, value_name = "TEXT")]
    recover: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Initialised {
    data_dir: String,
    master_key: String,
    /// Only if the key was created now.
    recovery_text: Option<String>,
}

impl fmt::Display for Initialised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "The data folder {} is ready; its master key is {}.", self.data_dir, self.master_key)?;
        let Some(text) = &self.recovery_text else { return Ok(()) };
        writeln!(f, "\nWrite down the recovery text and keep it somewhere else. Without the key file or this text")?;
        writeln!(f, "nobody can open the data folder or restore a backup:\n")?;
        master_key_file::write_in_lines(f, text)
    }
}

impl Init {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        let secret = self.recover.as_deref().map(master_key_file::read_recovery_argument).transpose()?;
        let made = create_folder_and_key(context, secret)?;
        context.print(&made)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Creates the folder and the key file, from a recovered secret or a new one.
pub(super) fn create_folder_and_key(context: &Context, recovered: Option<Secret>) -> Result<Initialised, Failure> {
    let (folder, source) = (context.data_dir(), &context.settings.master_key);
    let has_database = data_folder::has_database(folder)?;
    let Some(key) = source.key_file() else { return create_folder_only(context, recovered, has_database) };
    let marker = first_start_marker(folder);
    let was_interrupted = marker.exists();
    if key.exists() && !was_interrupted {
        let what = format!("{} already has a master key: {}", folder.display(), key.display());
        return Err(Failure::new(what, "use it as it is, or pass another --data-dir"));
    }
    if has_database && recovered.is_none() && !was_interrupted {
        let what = format!("{} has a database, but its master key is not at {}", folder.display(), key.display());
        let what_to_do =
            "restore the key file, pass --master-key FILE, or recreate it with `anteroom init --recover TEXT`";
        return Err(Failure::new(what, what_to_do));
    }
    data_folder::create(folder)?;
    let _lock = data_folder::lock(folder, Access::Write)?;
    let is_new = recovered.is_none();
    let is_key_written = key.exists();
    let secret = match recovered {
        Some(secret) => secret,
        None if is_key_written => source.read_secret()?,
        None => master_key_file::generate_secret()?,
    };
    if has_database {
        try_key(context, &secret)?;
    } else {
        std::fs::write(&marker, b"").map_err(|why| Failure::file("write", &marker, &why))?;
    }
    if !is_key_written {
        master_key_file::write(key, &secret)?;
    }
    if !has_database {
        // The key is written first: without the marker, a folder with a key but without a database has lost its database.
        try_key(context, &secret)?;
    }
    if marker.exists() {
        std::fs::remove_file(&marker).map_err(|why| Failure::file("remove", &marker, &why))?;
    }
    Ok(Initialised {
        data_dir: folder.display().to_string(),
        master_key: key.display().to_string(),
        recovery_text: is_new.then(|| master_key_file::format_recovery_text(&secret).to_string()),
    })
}

/// A file that is there while a data folder is created for the first time. If it was left behind, the creation was cut
/// off, nobody has seen the recovery text, and it is completed.
pub(super) fn first_start_marker(folder: &Path) -> PathBuf {
    folder.join("first-start")
}

/// Creates the folder with a key from the environment or systemd, which is never written to disk.
fn create_folder_only(
    context: &Context,
    recovered: Option<Secret>,
    has_database: bool,
) -> Result<Initialised, Failure> {
    let (folder, source) = (context.data_dir(), &context.settings.master_key);
    if recovered.is_some() {
        let what = format!("the master key comes from {source}, so there is no key file to recreate");
        return Err(Failure::new(what, "provide the recovered key there, or pass --master-key FILE"));
    }
    if has_database {
        let what = format!("{} already has a database", folder.display());
        return Err(Failure::new(what, "use it as it is, or pass another --data-dir"));
    }
    data_folder::create(folder)?;
    let _lock = data_folder::lock(folder, Access::Write)?;
    try_key(context, &source.read_secret()?)?;
    let (data_dir, master_key) = (folder.display().to_string(), format!("in {source}"));
    Ok(Initialised { data_dir, master_key, recovery_text: None })
}

/// Opens the database, or creates it. A recovered key is written only after it has opened the existing database.
fn try_key(context: &Context, secret: &Secret) -> Result<(), Failure> {
    let (folder, disk) = (context.data_dir(), open_disk(context)?);
    let options = context.settings.config.store_options();
    match Store::open(Arc::new(disk), MasterKey::new(secret), options) {
        Ok(_) => Ok(()),
        Err(store::OpenError::WrongKey(_)) => Err(Failure::new(
            format!("this recovery text does not match {}; no key file was written", folder.display()),
            "compare it with your copy, group by group",
        )),
        Err(why) => Err(why.into()),
    }
}
