//! Opens the data folder with its master key, and locks it: one process uses it at a time.

use crate::context::Context;
use crate::failure::Failure;
use crate::master_key_source::MasterKeySource;
use node::Node;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::tables::Snapshot;
use store::{Db, FolderDisk, Store};

/// A process that uses the folder holds a lock on this file, which contains its process id.
const LOCK_FILE: &str = "lock";

/// The lock on a data folder, released on drop.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _file: File,
}

/// What a command does with the folder. Only the error message for a locked folder depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Fails with the process id of the owner if another process has the lock.
pub(crate) fn lock(folder: &Path, access: Access) -> Result<FolderLock, Failure> {
    let path = folder.join(LOCK_FILE);
    let failed = |why| Failure::file("lock the data folder with", &path, &why);
    // A symbolic link here could make us overwrite another file.
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).custom_flags(flags);
    let mut file = options.open(&path).map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Err(locked_failure(folder, &mut file, access)),
        Err(why) => return Err(failed(why.into())),
    }
    let written = file
        .set_len(0)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .and_then(|_| file.write_all(format!("{}\n", std::process::id()).as_bytes()));
    written.map_err(failed)?;
    Ok(FolderLock { _file: file })
}

fn locked_failure(folder: &Path, file: &mut File, access: Access) -> Failure {
    let mut holder = String::new();
    let _ = file.take(32).read_to_string(&mut holder);
    let who = match holder.trim().parse::<u32>() {
        Ok(process) => format!("another anteroom process ({process})"),
        Err(_) => "another anteroom process".to_owned(),
    };
    let what_to_do = match access {
        Access::Write => "stop it first, or use another --data-dir",
        Access::Read => "if it is a node that starts or stops, try again in a moment; otherwise wait for it to end",
    };
    Failure::new(format!("{who} is using {}", folder.display()), what_to_do)
}

pub(crate) fn is_in_use(folder: &Path) -> bool {
    let Ok(file) = File::open(folder.join(LOCK_FILE)) else { return false };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
}

pub(crate) fn database_path(folder: &Path) -> PathBuf {
    FolderDisk::database_path_in(folder)
}

/// Whether there is a database in the folder. One that cannot be looked at is not absent.
pub(crate) fn has_database(folder: &Path) -> Result<bool, Failure> {
    let path = database_path(folder);
    path.try_exists().map_err(|why| Failure::file("access the database", &path, &why))
}

/// Creates the folder so that only its owner can use it.
pub(crate) fn create(folder: &Path) -> Result<(), Failure> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    created.map_err(|why| Failure::file("create the data folder", folder, &why))
}

/// Opens an existing data folder.
pub(crate) fn open(context: &Context, access: Access) -> Result<(Store, FolderLock), Failure> {
    open_with_key(context, access, &context.settings.master_key)
}

/// As [`open`], with another master key.
pub(crate) fn open_with_key(
    context: &Context,
    access: Access,
    key: &MasterKeySource,
) -> Result<(Store, FolderLock), Failure> {
    let folder = context.data_dir();
    match fs::metadata(folder) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => {
            let what = format!("{} is a file, not a data folder", folder.display());
            return Err(Failure::new(what, "pass another --data-dir"));
        }
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => {
            let what = format!("there is no data folder at {}", folder.display());
            return Err(Failure::new(what, "run `anteroom init` to create one, or pass --data-dir"));
        }
        Err(why) => return Err(Failure::file("access the data folder", folder, &why)),
    }
    let has_database = has_database(folder)?;
    if !has_database && !context.settings.master_key.exists() {
        let what = format!("{} is not an Anteroom data folder", folder.display());
        return Err(Failure::new(what, "run `anteroom init` to create one there, or pass another --data-dir"));
    }
    if !has_database && context.settings.master_key.key_file().and_then(Path::parent) == Some(folder) {
        let what = format!("{} has a master key but no database", folder.display());
        return Err(Failure::new(
            what,
            "the database was deleted or moved: put anteroom.redb back, or restore a backup into another folder",
        ));
    }
    let lock = lock(folder, access)?;
    Ok((open_store(context, key)?, lock))
}

fn open_store(context: &Context, key: &MasterKeySource) -> Result<Store, Failure> {
    let (folder, key) = (context.data_dir(), key.read()?);
    let disk = FolderDisk::new(folder).map_err(|why| Failure::file("use the data folder", folder, &why))?;
    let mut options = context.settings.config.store_options();
    options.policy.service = context.service.get().copied();
    Ok(Store::open(Arc::new(disk), key, options)?)
}

/// As [`open`] for writing. If most of the database file is unused, that is given back first.
pub(crate) fn open_compacted(context: &Context) -> Result<(Store, FolderLock), Failure> {
    let (store, lock) = open(context, Access::Write)?;
    // What cannot be told or done now can be done at the next start.
    if !store.is_mostly_free().unwrap_or(false) {
        return Ok((store, lock));
    }
    tracing::info!("more than half of the database file is unused; compacting it");
    match store.compact_folder(context.data_dir()) {
        Ok(done) => tracing::info!(bytes_before = done.before, bytes = done.after, "the database was compacted"),
        Err(why) => tracing::warn!(%why, "the database could not be compacted"),
    }
    Ok((open_store(context, &context.settings.master_key)?, lock))
}

/// A store that a command only reads: opened by it, or of the node that executes it.
#[derive(Debug)]
pub(crate) enum ReadStore {
    Opened(Box<Store>, FolderLock),
    Running(Node),
}

impl std::ops::Deref for ReadStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        match self {
            ReadStore::Opened(store, _) => store,
            ReadStore::Running(node) => node.store(),
        }
    }
}

/// As [`open`], for commands that only read; inside a node it is the node's own.
pub(crate) fn open_to_read(context: &Context) -> Result<ReadStore, Failure> {
    if let Some(inside) = &context.inside {
        return Ok(ReadStore::Running(inside.node.clone()));
    }
    let (store, lock) = open(context, Access::Read)?;
    Ok(ReadStore::Opened(Box::new(store), lock))
}

/// As [`open_to_read`], with a snapshot.
pub(crate) fn open_snapshot(context: &Context) -> Result<(Arc<Db<Snapshot>>, ReadStore), Failure> {
    let store = open_to_read(context)?;
    Ok((store.snapshot()?, store))
}
