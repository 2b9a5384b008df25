//! Restoring: everything is checked before anything is written, and put in its place in one step.
//!
//! The data folder is made under a temporary name beside its place, opened, verified, given a new epoch, and renamed.
//! Whatever goes wrong before that leaves the place as it was.

use crate::at_rest::master::MasterKey;
use crate::database::open::{OpenError, Store, StoreOptions};
use crate::disk::{FolderDisk, sync_dir};
use crate::maintenance::backup::extra_files::RestoredFile;
use crate::maintenance::backup::read::{BackupFile, BackupItem, BadBackup, ItemCounts};
use crate::maintenance::backup::write::folder_of;
use crate::tables::{Tables, import_row};
use engine::reads::StoreError;
use model::Nanos;
use objects::{ObjectError, ObjectSink};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One transaction of a restore takes rows of at most this many bytes.
const BYTES_PER_TRANSACTION_MAX: usize = 32 << 20;

/// What a restore came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Restored {
    /// Rows of all tables.
    pub rows: u64,
    /// How many objects: large contents.
    pub objects: u64,
    /// How many files beside them: object stores of git, which are unpacked when the node starts.
    pub extra_files: u64,
    /// When the backup was made.
    pub created_at: Nanos,
    /// The epoch that the journal has now.
    pub epoch: u64,
    /// The digest of the views; empty if something was damaged.
    pub digest: String,
    /// What could not be read when the backup was made.
    pub damaged: Vec<String>,
}

/// Why nothing was restored. The place is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// There is something already.
    #[error("{} is not empty: it holds {first}", folder.display())]
    NotEmpty {
        /// The data folder.
        folder: PathBuf,
        /// The name of something in it.
        first: String,
    },
    /// The backup is not fit.
    #[error(transparent)]
    Backup(#[from] BadBackup),
    /// A table or a row that this release does not have.
    #[error("the backup has rows of a table {0:?} that this release does not know")]
    Table(String),
    /// The folder could not be written or put in its place.
    #[error("cannot restore into {}: {why}", folder.display())]
    Write {
        /// The folder that was to be written.
        folder: PathBuf,
        /// What the operating system said.
        why: io::Error,
    },
    /// What was restored cannot be opened.
    #[error("what was restored cannot be opened: {0}")]
    Open(#[from] OpenError),
    /// Something could not be read when the backup was made, and nobody said that this is accepted.
    #[error("the backup lacks {count} of what was stored; when it was made, {first}")]
    Incomplete {
        count: usize,
        /// The first of them.
        first: String,
    },
    /// What was restored breaks an invariant.
    #[error("what was restored is not in order: {0}")]
    Verify(String),
    /// An object could not be written.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RestoreError {
    /// What whoever asked for it can do.
    pub fn what_to_do(&self) -> &'static str {
        match self {
            RestoreError::NotEmpty { .. } => "restore into an empty or absent folder: pass another --data-dir",
            RestoreError::Backup(why) => why.what_to_do(),
            RestoreError::Table(_) => "use the release that wrote the backup, or a newer one",
            RestoreError::Write { .. } => {
                "check that the folder above it is writable and has room; a mount point cannot be replaced, use a \
                 folder inside it"
            }
            RestoreError::Open(_) | RestoreError::Object(_) | RestoreError::Store(_) => {
                "check the disk, then try again"
            }
            RestoreError::Incomplete { .. } => {
                "use an older backup, or accept that these are missing with --incomplete"
            }
            RestoreError::Verify(_) => "use an older backup, and report this",
        }
    }
}

/// Restores a backup into a folder that is empty or absent. One that lacks what could not be read when it was made is
/// restored only if that is accepted; the folder is then not in order, and for salvaging only.
pub fn restore(
    from: &Path,
    into: &Path,
    master: &MasterKey,
    options: StoreOptions,
    accepts_damage: bool,
    now: Nanos,
    progress: &mut dyn FnMut(u64),
) -> Result<Restored, RestoreError> {
    check_empty(into)?;
    let mut backup = BackupFile::open(from)?;
    backup.check_whole(master, progress)?;
    let failed = |why| RestoreError::Write { folder: into.to_owned(), why };
    let place = absolute(into).map_err(failed)?;
    let parent = folder_of(&place);
    fs::create_dir_all(parent).map_err(failed)?;
    let building = building_name(&place);
    remove_left_behind(&place);
    DirBuilder::new().mode(0o700).create(&building).map_err(failed)?;
    let attempt = build(&mut backup, &building, master, options, accepts_damage, now).and_then(|restored| {
        let placed = fs::rename(&building, &place).and_then(|()| sync_dir(parent));
        placed.map(|()| restored).map_err(failed)
    });
    if attempt.is_err() {
        let _ = fs::remove_dir_all(&building);
    }
    attempt
}

/// An empty folder or none may be restored into; anything else stays as it is.
fn check_empty(folder: &Path) -> Result<(), RestoreError> {
    let failed = |why| RestoreError::Write { folder: folder.to_owned(), why };
    match fs::read_dir(folder) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(why) => Err(failed(why)),
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(entry) => {
                let first = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
                Err(RestoreError::NotEmpty { folder: folder.to_owned(), first })
            }
        },
    }
}

/// The place with its links followed, so that what is renamed is the folder and not a link to it.
fn absolute(place: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(place) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => std::path::absolute(place),
        other => other,
    }
}

const BUILDING: &str = ".restoring-";

fn building_name(place: &Path) -> PathBuf {
    let mut name = place.file_name().unwrap_or_default().to_owned();
    name.push(format!("{BUILDING}{}", std::process::id()));
    place.with_file_name(name)
}

/// Removes what restores into this place have left that were killed: those whose process is gone.
fn remove_left_behind(place: &Path) {
    let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for entry in fs::read_dir(folder_of(place)).into_iter().flatten().flatten() {
        let other = entry.file_name().to_string_lossy().into_owned();
        let process = other.strip_prefix(&name).and_then(|rest| rest.strip_prefix(BUILDING));
        let is_gone = process.is_some_and(|id| id.parse::<u32>().is_ok() && !Path::new("/proc").join(id).exists());
        if is_gone && Path::new("/proc/self").exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn build(
    backup: &mut BackupFile,
    folder: &Path,
    master: &MasterKey,
    options: StoreOptions,
    accepts_damage: bool,
    now: Nanos,
) -> Result<Restored, RestoreError> {
    let open = || -> Result<Store, RestoreError> {
        let failed = |why| RestoreError::Write { folder: folder.to_owned(), why };
        let disk = FolderDisk::new(folder).map_err(failed)?;
        Ok(Store::open(Arc::new(disk), master.clone(), options)?)
    };
    let (counts, damaged) = fill(backup, &open()?, folder)?;
    // Opened anew, so that the keys that were restored are at hand.
    let store = open()?;
    let mut digest = String::new();
    if damaged.is_empty() {
        let report = store.verify(now)?;
        if let Some(problem) = report.problems.first() {
            return Err(RestoreError::Verify(problem.clone()));
        }
        digest = report.digest;
    } else if !accepts_damage {
        return Err(RestoreError::Incomplete { count: damaged.len(), first: damaged[0].clone() });
    }
    let epoch = store.begin_epoch(now)?;
    drop(store);
    sync_dir(folder).map_err(|why| RestoreError::Write { folder: folder.to_owned(), why })?;
    let created_at = backup.header().created_at;
    let ItemCounts { rows, objects, extra_files, .. } = counts;
    Ok(Restored { rows, objects, extra_files, created_at, epoch, digest, damaged })
}

fn fill(backup: &mut BackupFile, store: &Store, folder: &Path) -> Result<(ItemCounts, Vec<String>), RestoreError> {
    let mut rows = Rows { store, waiting: Vec::new(), bytes: 0 };
    let mut damaged = Vec::new();
    let mut open: Option<OpenFile> = None;
    let failed = |why| RestoreError::Write { folder: folder.to_owned(), why };
    let counts = backup.walk::<RestoreError>(&mut |item| match item {
        BackupItem::Row { table, key, value } => rows.put(table, key, value),
        BackupItem::Object { name } => {
            open = Some(OpenFile::Object(store.disk().objects().create(name)?));
            Ok(())
        }
        BackupItem::ExtraFile { name } => {
            open = Some(OpenFile::Extra(RestoredFile::create(folder, name).map_err(failed)?));
            Ok(())
        }
        BackupItem::Piece { bytes } => match &mut open {
            Some(OpenFile::Object(sink)) => Ok(sink.write(bytes)?),
            Some(OpenFile::Extra(file)) => file.write(bytes).map_err(failed),
            None => Ok(()),
        },
        BackupItem::FileEnd { is_whole } => match open.take() {
            Some(OpenFile::Object(sink)) if is_whole => Ok(sink.finish()?),
            Some(OpenFile::Extra(file)) => file.end(is_whole).map_err(failed),
            Some(OpenFile::Object(..)) | None => Ok(()),
        },
        BackupItem::Damaged { what } => {
            damaged.push(what);
            Ok(())
        }
    })?;
    rows.write()?;
    Ok((counts, damaged))
}

/// What the pieces that are read belong to.
enum OpenFile {
    Object(Box<dyn ObjectSink>),
    Extra(RestoredFile),
}

/// Rows gathered into transactions of a bounded size.
struct Rows<'a> {
    store: &'a Store,
    waiting: Vec<(String, Vec<u8>, Vec<u8>)>,
    bytes: usize,
}

impl Rows<'_> {
    fn put(&mut self, table: &str, key: &[u8], value: &[u8]) -> Result<(), RestoreError> {
        self.bytes += table.len() + key.len() + value.len() + 96;
        self.waiting.push((table.to_owned(), key.to_vec(), value.to_vec()));
        if self.bytes > BYTES_PER_TRANSACTION_MAX { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), RestoreError> {
        self.bytes = 0;
        let rows = std::mem::take(&mut self.waiting);
        let unknown = self.store.write_raw(|transaction| {
            let mut tables = Tables::open(transaction)?;
            for (table, key, value) in &rows {
                if !import_row(&mut tables, table, key, value)? {
                    return Ok(Some(table.clone()));
                }
            }
            Ok(None)
        })?;
        unknown.map_or(Ok(()), |table| Err(RestoreError::Table(table)))
    }
}
