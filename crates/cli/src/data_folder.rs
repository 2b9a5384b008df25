//! The data folder: one process at a time, opened with its master key.

use crate::context::Context;
use crate::failure::Failure;
use crate::master_key_source::KeyPlace;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::tables::Snapshot;
use store::{Db, FolderDisk, Store};

/// The name of the file that is locked while a process uses the folder.
const LOCK: &str = "lock";

/// A data folder that is ours until this is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// What a command wants to do in the folder; it changes what is said when another process has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Read only.
    Read,
    /// Change things.
    Write,
}

/// Makes the folder ours, or says who has it.
pub(crate) fn lock(folder: &Path, access: Access) -> Result<Lock, Failure> {
    let path = folder.join(LOCK);
    let failed = |why| Failure::file("lock the data folder with", &path, &why);
    // A link would let somebody else have another file overwritten.
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).custom_flags(flags);
    let mut file = options.open(&path).map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Err(in_use(folder, &mut file, access)),
        Err(why) => return Err(failed(why.into())),
    }
    let written = file
        .set_len(0)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .and_then(|_| file.write_all(format!("{}\n", std::process::id()).as_bytes()));
    written.map_err(failed)?;
    Ok(Lock { _file: file })
}

fn in_use(folder: &Path, file: &mut File, access: Access) -> Failure {
    let mut holder = String::new();
    let _ = file.take(32).read_to_string(&mut holder);
    let who = match holder.trim().parse::<u32>() {
        Ok(process) => format!("another anteroom (process {process})"),
        Err(_) => "another anteroom".to_owned(),
    };
    let what_to_do = match access {
        Access::Write => "stop it first or use another --data-dir",
        Access::Read => {
            "stop it first or use another --data-dir; for now even commands that only read need the folder to \
             themselves"
        }
    };
    Failure::new(format!("{who} is using {}", folder.display()), what_to_do)
}

/// Whether another process uses the folder now.
pub(crate) fn is_in_use(folder: &Path) -> bool {
    let Ok(file) = File::open(folder.join(LOCK)) else { return false };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
}

/// The path of the database in a data folder.
pub(crate) fn database(folder: &Path) -> PathBuf {
    folder.join("anteroom.redb")
}

/// Creates the folder, for nobody but its owner.
pub(crate) fn create(folder: &Path) -> Result<(), Failure> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    created.map_err(|why| Failure::file("create the data folder", folder, &why))
}

/// The store of the data folder, which must be there already.
pub(crate) fn open(context: &Context, access: Access) -> Result<(Store, Lock), Failure> {
    open_with(context, access, &context.loaded.master_key)
}

/// As [`open`], with the master key from another place.
pub(crate) fn open_with(context: &Context, access: Access, key: &KeyPlace) -> Result<(Store, Lock), Failure> {
    let folder = context.data_dir();
    match fs::metadata(folder) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => {
            let what = format!("{} is a file, not a data folder", folder.display());
            return Err(Failure::new(what, "pass another --data-dir"));
        }
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => {
            let what = format!("there is no data folder at {}", folder.display());
            return Err(Failure::new(what, "run `anteroom init` to make one, or pass --data-dir"));
        }
        Err(why) => return Err(Failure::file("look at the data folder", folder, &why)),
    }
    if !database(folder).exists() && !context.loaded.master_key.exists() {
        let what = format!("{} is not a data folder yet", folder.display());
        return Err(Failure::new(what, "run `anteroom init` to make it one, or pass --data-dir"));
    }
    if !database(folder).exists() && context.loaded.master_key.own_file().and_then(Path::parent) == Some(folder) {
        let what = format!("the database of {} is gone", folder.display());
        return Err(Failure::new(what, "restore a backup into another folder; if there is none, ask for help first"));
    }
    let lock = lock(folder, access)?;
    let key = key.read()?;
    let disk = FolderDisk::new(folder).map_err(|why| Failure::file("use the data folder", folder, &why))?;
    let store = Store::open(Arc::new(disk), key, context.loaded.config.store_options())?;
    Ok((store, lock))
}

/// As [`open`], for commands that only look.
pub(crate) fn read(context: &Context) -> Result<(Arc<Db<Snapshot>>, Store, Lock), Failure> {
    let (store, lock) = open(context, Access::Read)?;
    Ok((store.snapshot()?, store, lock))
}
