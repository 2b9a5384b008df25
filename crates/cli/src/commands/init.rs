//! `anteroom init`: a new data folder and its master key.

use super::Done;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use crate::master_key_file::{self, Secret};
use clap::Args;
use serde::Serialize;
use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use store::{FolderDisk, MasterKey, Store};

/// Create the data folder and its master key, and print the recovery text
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Recreate the key file from its recovery text; `-` reads the text from standard input
    #[arg(long, value_name = "TEXT")]
    recover: Option<String>,
}

/// What was made.
#[derive(Debug, Serialize)]
pub(super) struct Initialised {
    data_dir: String,
    master_key: String,
    /// Only of a key that was made now.
    recovery_text: Option<String>,
}

impl fmt::Display for Initialised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "The data folder {} is ready; its master key is {}.", self.data_dir, self.master_key)?;
        let Some(text) = &self.recovery_text else { return Ok(()) };
        writeln!(f, "\nWrite down the recovery text and keep it away from this machine. Without the key file or")?;
        writeln!(f, "this text nobody can read what is sealed here, nor restore a backup:\n")?;
        let groups: Vec<&str> = text.split(' ').collect();
        groups.chunks(8).try_for_each(|line| writeln!(f, "    {}", line.join(" ")))
    }
}

impl Init {
    pub(super) fn run(&self, context: &Context) -> Done {
        let secret = self.recover.as_deref().map(master_key_file::recovery_argument).transpose()?;
        let made = make(context, secret)?;
        context.show(&made)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Makes the folder and the key: a new one, or the one that is to be recovered.
pub(super) fn make(context: &Context, recovered: Option<Secret>) -> Result<Initialised, Failure> {
    let (folder, place) = (context.data_dir(), &context.loaded.master_key);
    let has_database = data_folder::database(folder).exists();
    let Some(key) = place.own_file() else { return make_under(context, recovered, has_database) };
    if key.exists() {
        let what = format!("{} has a master key already: {}", folder.display(), key.display());
        return Err(Failure::new(what, "use it as it is, or pass another --data-dir"));
    }
    if has_database && recovered.is_none() {
        let what = format!("{} has a database but its master key is not at {}", folder.display(), key.display());
        let what_to_do = "put the key file back, pass --master-key FILE, or recreate it: init --recover TEXT";
        return Err(Failure::new(what, what_to_do));
    }
    data_folder::create(folder)?;
    let _lock = data_folder::lock(folder, Access::Write)?;
    let is_new = recovered.is_none();
    let secret = recovered.map_or_else(master_key_file::make, Ok)?;
    if has_database {
        try_key(context, &secret)?;
    }
    master_key_file::write(key, &secret)?;
    if !has_database {
        // From now on a folder with a key and no database has lost it.
        try_key(context, &secret)?;
    }
    Ok(Initialised {
        data_dir: folder.display().to_string(),
        master_key: key.display().to_string(),
        recovery_text: is_new.then(|| master_key_file::recovery_text(&secret).to_string()),
    })
}

/// Makes the folder under a key that is handed to us: it is there already, and nothing is written of it.
fn make_under(context: &Context, recovered: Option<Secret>, has_database: bool) -> Result<Initialised, Failure> {
    let (folder, place) = (context.data_dir(), &context.loaded.master_key);
    if recovered.is_some() {
        let what = format!("the master key comes from {place}, so there is no file to recreate");
        return Err(Failure::new(what, "put the recovered key there, or pass --master-key FILE"));
    }
    if has_database {
        let what = format!("{} has a database already", folder.display());
        return Err(Failure::new(what, "use it as it is, or pass another --data-dir"));
    }
    data_folder::create(folder)?;
    let _lock = data_folder::lock(folder, Access::Write)?;
    try_key(context, &place.secret()?)?;
    let (data_dir, master_key) = (folder.display().to_string(), format!("in {place}"));
    Ok(Initialised { data_dir, master_key, recovery_text: None })
}

/// Opens the database with a key, making it if there is none: a key is kept only if it opens what is there.
fn try_key(context: &Context, secret: &Secret) -> Result<(), Failure> {
    let folder = context.data_dir();
    let disk = FolderDisk::new(folder).map_err(|why| Failure::file("use the data folder", folder, &why))?;
    let options = context.loaded.config.store_options();
    match Store::open(Arc::new(disk), MasterKey::new(secret), options) {
        Ok(_) => Ok(()),
        Err(store::OpenError::WrongKey(_)) => Err(Failure::new(
            format!("this recovery text is not that of {}; no key file was written", folder.display()),
            "compare it with what was written down, group by group",
        )),
        Err(why) => Err(why.into()),
    }
}
