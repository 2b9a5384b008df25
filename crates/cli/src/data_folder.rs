//! Opens the data folder with its master key, and locks it: one process uses it at a time.

use crate::context::Context;
use crate::failure::Failure;
use crate::master_key_source::MasterKeySource;
use crate::object_store::open_disk;
use node::Node;
use rustix::fs::{FlockOperation, flock};
use rustix::process::Pid;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::tables::Snapshot;
use store::{Db, FolderDisk, Store};

/// A process that uses the folder holds a lock on this file, which contains its process id.
const LOCK_FILE: &str = "lock";
/// How often a lock is tried again whose holder has ended, and how long after another: a second in all.
const LOCK_TRIES_MAX: u32 = 50;
const BETWEEN_LOCK_TRIES: Duration = Duration::from_millis(20);

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
    match flock_patiently(&mut file, FlockOperation::NonBlockingLockExclusive) {
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

/// Locks the file, if no process that still lives has it. One that was killed may leave a child that is about to run another
/// program, and has the lock until it does: that is waited for.
fn flock_patiently(file: &mut File, operation: FlockOperation) -> rustix::io::Result<()> {
    for _ in 0..LOCK_TRIES_MAX {
        match flock(&*file, operation) {
            Err(rustix::io::Errno::WOULDBLOCK) if holder(file).is_some_and(has_ended) => {
                // A lock of this kind has no timeout.
                std::thread::park_timeout(BETWEEN_LOCK_TRIES);
            }
            other => return other,
        }
    }
    flock(&*file, operation)
}

/// The process that has the lock, by its own word.
fn holder(file: &mut File) -> Option<Pid> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(32).read_to_string(&mut text).ok()?;
    Pid::from_raw(text.trim().parse().ok()?)
}

fn has_ended(process: Pid) -> bool {
    rustix::process::test_kill_process(process) == Err(rustix::io::Errno::SRCH)
}

fn locked_failure(folder: &Path, file: &mut File, access: Access) -> Failure {
    let who = match holder(file) {
        Some(process) => format!("another anteroom process ({})", process.as_raw_nonzero()),
        None => "another anteroom process".to_owned(),
    };
    let what_to_do = match access {
        Access::Write => "stop it first, or use another --data-dir",
        Access::Read => "if it is a node that starts or stops, try again in a moment; otherwise wait for it to end",
    };
    Failure::new(format!("{who} is using {}", folder.display()), what_to_do)
}

pub(crate) fn is_in_use(folder: &Path) -> bool {
    let Ok(mut file) = File::open(folder.join(LOCK_FILE)) else { return false };
    flock_patiently(&mut file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
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
    let key = key.read()?;
    let disk = open_disk(context)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// A folder whose lock a child holds for a moment, through its input; its holder is that process.
    fn held_by_a_child(holder: u32) -> (tempfile::TempDir, std::process::Child) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(LOCK_FILE);
        fs::write(&path, format!("{holder}\n")).expect("written");
        let file = File::open(&path).expect("opened");
        flock(&file, FlockOperation::NonBlockingLockExclusive).expect("locked");
        let child = Command::new("sleep").arg("0.4").stdin(Stdio::from(file)).spawn().expect("a child");
        (folder, child)
    }

    #[test]
    fn the_lock_of_a_process_that_was_killed_is_free_as_soon_as_its_children_are_other_programs() {
        let mut ended = Command::new("true").spawn().expect("a process");
        ended.wait().expect("ended");
        let (folder, mut child) = held_by_a_child(ended.id());
        assert!(!is_in_use(folder.path()));
        child.wait().expect("ended");
        let (folder, mut child) = held_by_a_child(ended.id());
        assert!(lock(folder.path(), Access::Read).is_ok());
        child.wait().expect("ended");
    }

    #[test]
    fn the_lock_of_a_process_that_lives_is_not_waited_for() {
        let (folder, mut child) = held_by_a_child(std::process::id());
        assert!(is_in_use(folder.path()));
        let refused = format!("{:?}", lock(folder.path(), Access::Write).expect_err("it is held"));
        assert!(refused.contains(&std::process::id().to_string()), "{refused}");
        child.kill().expect("killed");
        child.wait().expect("ended");
    }
}
