//! `anteroom salvage`: brings everything readable of a damaged data folder into a new one.

use super::CommandResult;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use crate::formatting::{format_count, format_list};
use crate::master_key_file;
use crate::progress::ProgressDisplay;
use clap::Args;
use engine::reads::Reads as _;
use git::{GitFolder, GitLimits};
use node::git::{GitFailure, salvage_repositories};
use node::salvage::{Salvaged, salvage};
use node::{Clock as _, WriterCore};
use serde::Serialize;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use store::disk::sync_dir;
use store::tables::Snapshot;
use store::{Db, FolderDisk, MasterKey, Store};

/// Bring everything readable of a damaged data folder into a new folder; the old one is not changed
///
/// Events are checked and applied anew, so that the new folder is in order: an event whose need was lost waits for it.
/// The journal begins anew. The exit code is 3 if something could not be read.
#[derive(Debug, Args)]
pub(crate) struct Salvage {
    /// The new folder, which must be empty or not exist
    #[arg(value_name = "FOLDER")]
    into: PathBuf,
}

/// The exit code when something could not be read.
pub(super) const INCOMPLETE: u8 = 3;

#[derive(Debug, Serialize)]
struct Answer {
    folder: String,
    #[serde(flatten)]
    salvaged: Salvaged,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Salvaged { events, contents, held, damaged } = &self.salvaged;
        let (events, contents) = (format_count(*events, "event"), format_count(*contents, "content"));
        writeln!(f, "{events} and {contents} brought into {}", self.folder)?;
        if *held > 0 {
            writeln!(f, "{} held there; `anteroom held` shows what they wait for", format_count(*held, "event"))?;
        }
        write!(f, "{}", format_list(damaged, "could not be read:", "everything could be read"))
    }
}

impl Salvage {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        let (store, _lock) = data_folder::open(context, Access::Write)?;
        let secret = context.settings.master_key.read_secret()?;
        let salvaged = salvage_into(context, (&store, context.data_dir()), &self.into, &MasterKey::new(&secret))?;
        // A key that is in the old folder would be missed when that is deleted.
        let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if let Some(file) = context.settings.master_key.key_file()
            && real(file).starts_with(real(context.data_dir()))
            && let Some(name) = file.file_name()
        {
            master_key_file::write(&self.into.join(name), &secret)?;
        }
        let code = if salvaged.damaged.is_empty() { 0 } else { INCOMPLETE };
        context.print(&Answer { folder: self.into.display().to_string(), salvaged })?;
        Ok(ExitCode::from(code))
    }
}

/// What is there already is not replaced.
pub(super) fn refuse_used(folder: &Path) -> Result<(), Failure> {
    let is_used = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(why) => why.kind() != std::io::ErrorKind::NotFound,
    };
    if is_used {
        let what = format!("{} is not empty, or not a folder", folder.display());
        return Err(Failure::new(what, "pass a folder that is empty or does not exist"));
    }
    Ok(())
}

/// Builds the new folder under another name and renames it when it is whole.
pub(super) fn salvage_into(
    context: &Context,
    (from, folder): (&Store, &Path),
    into: &Path,
    master: &MasterKey,
) -> Result<Salvaged, Failure> {
    let failed = |why| Failure::file("salvage into", into, &why);
    refuse_used(into)?;
    // Without a slash at its end.
    let into: PathBuf = std::path::absolute(into).map_err(failed)?.components().collect();
    let mut name = into.file_name().unwrap_or_default().to_owned();
    name.push(format!(".salvaging-{}", std::process::id()));
    let building = into.with_file_name(name);
    data_folder::create(&building)?;
    let salvaged = build(context, (from, folder), &building, master).and_then(|salvaged| {
        let placed = fs::rename(&building, &into).and_then(|()| into.parent().map_or(Ok(()), sync_dir));
        placed.map(|()| salvaged).map_err(failed)
    });
    if salvaged.is_err() {
        let _ = fs::remove_dir_all(&building);
    }
    salvaged
}

/// Brings git repositories along, if there are any.
fn salvage_git(
    context: &Context,
    (db, from): (&Db<Snapshot>, &Path),
    (core, building): (&WriterCore, &Path),
) -> Result<Vec<String>, Failure> {
    let Some(old) = GitFolder::open_existing(from.join("git")) else { return Ok(Vec::new()) };
    let what_to_do = "install git, and look at the folder `git` of the data folder";
    let failed = |why: GitFailure| Failure::new(format!("git repositories cannot be salvaged: {why}"), what_to_do);
    let new = GitFolder::open(building.join("git"), GitLimits::default()).map_err(|why| failed(why.into()))?;
    salvage_repositories((db, &old), (core, &new), context.clock.now()).map_err(failed)
}

fn build(
    context: &Context,
    (from, folder): (&Store, &Path),
    building: &Path,
    master: &MasterKey,
) -> Result<Salvaged, Failure> {
    let failed = |why| Failure::file("salvage into", building, &why);
    let open = || -> Result<Store, Failure> {
        let disk = FolderDisk::new(building).map_err(failed)?;
        Ok(Store::open(Arc::new(disk), master.clone(), context.settings.config.store_options())?)
    };
    let db = from.snapshot()?;
    let taken = open()?.take_over(&db)?;
    let core = WriterCore::new(open()?);
    let bar = ProgressDisplay::for_count(context.json, "salvaging events");
    let mut salvaged = salvage(&db, &core, context.clock.now(), &mut |done| bar.set(done.events))?;
    drop(bar);
    salvaged.damaged.splice(..0, taken.damaged);
    salvaged.damaged.extend(salvage_git(context, (&db, folder), (&core, building))?);
    // Git data has released what waited for it.
    salvaged.held = core.store().snapshot()?.held_total()?;
    // What lacks its counterpart, because that was damaged, is named too.
    salvaged.damaged.extend(core.store().verify(context.clock.now())?.problems);
    drop(core);
    Ok(salvaged)
}
