//! The disk: one database file, and objects beside it or elsewhere, behind a trait so that crashes and faults can be tried
//! out.

use crate::overlay::MemoryOverlay;
use objects::{Backend, FolderBackend};
use redb::backends::FileBackend;
use redb::{Builder, Database, DatabaseError};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Where the database and the objects are.
pub trait Disk: Send + Sync + std::fmt::Debug + 'static {
    /// Opens the database. One that is not there is made under another name and renamed when it is whole, so that a
    /// crash in between leaves nothing that cannot be opened.
    fn open_database(&self, builder: &Builder) -> Result<Database, DatabaseError>;
    /// Opens the database while nothing can be written: what opening it changes stays in memory.
    fn open_for_reading(&self, builder: &Builder) -> Result<Database, DatabaseError>;
    /// Fails if what was opened is not what the name leads to any more, so that nobody would find what is written.
    fn check_in_place(&self) -> io::Result<()> {
        Ok(())
    }
    /// Where large content is.
    fn objects(&self) -> Arc<dyn Backend>;
    /// How many bytes are free.
    fn free_bytes(&self) -> io::Result<u64>;
    /// How large the database is, where that is known.
    fn database_bytes(&self) -> io::Result<u64> {
        Ok(0)
    }
}

/// The ending of a file that has not got its name yet.
pub const TEMPORARY: &str = ".part";
/// The folder of objects in a data folder.
pub const OBJECTS: &str = "objects";

/// A folder of the file system.
#[derive(Debug)]
pub struct FolderDisk {
    folder: PathBuf,
    objects: Arc<dyn Backend>,
    /// Which file the database is, once it was opened.
    opened: OnceLock<FileIdentity>,
}

/// Tells files apart whatever their names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    fn of(path: &Path) -> io::Result<FileIdentity> {
        let metadata = fs::metadata(path)?;
        Ok(FileIdentity { device: metadata.dev(), inode: metadata.ino() })
    }
}

impl FolderDisk {
    /// Uses that folder, creating it and its parts; objects are files in it.
    pub fn new(folder: &Path) -> io::Result<FolderDisk> {
        let objects = FolderBackend::new(folder.join(OBJECTS))?;
        FolderDisk::with_objects(folder, Arc::new(objects))
    }

    /// As [`FolderDisk::new`], with objects elsewhere.
    pub fn with_objects(folder: &Path, objects: Arc<dyn Backend>) -> io::Result<FolderDisk> {
        fs::create_dir_all(folder)?;
        Ok(FolderDisk { folder: folder.to_owned(), objects, opened: OnceLock::new() })
    }

    /// The path of the database file.
    pub fn database_path(&self) -> PathBuf {
        FolderDisk::database_path_in(&self.folder)
    }

    /// The path of the database file of a data folder.
    pub fn database_path_in(folder: &Path) -> PathBuf {
        folder.join("anteroom.redb")
    }
}

impl Disk for FolderDisk {
    fn database_bytes(&self) -> io::Result<u64> {
        fs::metadata(self.database_path()).map(|found| found.len())
    }

    fn open_database(&self, builder: &Builder) -> Result<Database, DatabaseError> {
        let path = self.database_path();
        // A database that is gone or another one is not begun anew under those who had it open.
        self.check_in_place()?;
        // What a compaction left that was killed.
        remove_if_there(&compacting_path(&path))?;
        if !path.try_exists()? {
            let unfinished = path.with_extension("redb.part");
            remove_if_there(&unfinished)?;
            drop(builder.create(&unfinished)?);
            File::open(&unfinished)?.sync_all()?;
            fs::rename(&unfinished, &path)?;
            sync_dir(&self.folder)?;
        }
        // An empty file is no new database: something cut it off.
        if fs::metadata(&path)?.len() == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the database file is empty").into());
        }
        let database = builder.create(&path)?;
        let identity = FileIdentity::of(&path)?;
        self.opened.get_or_init(|| identity);
        Ok(database)
    }

    fn open_for_reading(&self, builder: &Builder) -> Result<Database, DatabaseError> {
        self.check_in_place()?;
        let file = File::open(self.database_path())?;
        builder.create_with_backend(MemoryOverlay::new(FileBackend::new(file)?)?)
    }

    fn check_in_place(&self) -> io::Result<()> {
        let Some(opened) = self.opened.get() else { return Ok(()) };
        match FileIdentity::of(&self.database_path()) {
            Ok(found) if found == *opened => Ok(()),
            Ok(_) => Err(io::Error::other(format!("{} was replaced by another file", self.database_path().display()))),
            Err(why) if why.kind() == io::ErrorKind::NotFound => {
                Err(io::Error::other(format!("{} was removed or moved", self.database_path().display())))
            }
            Err(why) => Err(why),
        }
    }

    fn objects(&self) -> Arc<dyn Backend> {
        self.objects.clone()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(&self.folder)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

/// The copy that takes the place of a database when it is compacted.
pub(crate) fn compacting_path(database: &Path) -> PathBuf {
    database.with_extension("redb.compact")
}

/// Removes a file; one that is not there is removed already.
pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Makes what happened in a folder durable.
pub fn sync_dir(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
