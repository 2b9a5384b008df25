//! The disk: one database file and content files, behind a trait so that crashes and faults can be tried out.

use crate::overlay::MemoryOverlay;
use redb::backends::FileBackend;
use redb::{Builder, Database, DatabaseError};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Where the database and the content files are.
///
/// A content file is written in steps that survive a crash between any two of them: temporary name, sync, rename,
/// folder sync; then comes the row that speaks of it.
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
    /// Writes a file under a temporary name and syncs it.
    fn write_temporary(&self, name: &str, bytes: &[u8]) -> io::Result<()>;
    /// Gives a temporary file its name. Durable only after [`Disk::sync_folder`].
    fn rename_temporary(&self, name: &str) -> io::Result<()>;
    /// Makes renames and removals durable.
    fn sync_folder(&self) -> io::Result<()>;
    /// Reads a whole file.
    fn read_file(&self, name: &str) -> io::Result<Vec<u8>>;
    /// Removes a file; one that is not there is removed already.
    fn remove_file(&self, name: &str) -> io::Result<()>;
    /// The names of all content files, temporary ones included.
    fn list_files(&self) -> io::Result<Vec<String>>;
    /// How many bytes are free.
    fn free_bytes(&self) -> io::Result<u64>;
    /// How large the database is, where that is known.
    fn database_bytes(&self) -> io::Result<u64> {
        Ok(0)
    }
}

/// The ending of a file that has not got its name yet.
pub const TEMPORARY: &str = ".part";

/// A folder of the file system.
#[derive(Debug)]
pub struct FolderDisk {
    folder: PathBuf,
    content: PathBuf,
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
    /// Uses that folder, creating it and its parts.
    pub fn new(folder: &Path) -> io::Result<FolderDisk> {
        let content = folder.join("content");
        fs::create_dir_all(&content)?;
        Ok(FolderDisk { folder: folder.to_owned(), content, opened: OnceLock::new() })
    }

    /// The path of the database file.
    pub fn database_path(&self) -> PathBuf {
        FolderDisk::database_path_in(&self.folder)
    }

    /// The path of the database file of a data folder.
    pub fn database_path_in(folder: &Path) -> PathBuf {
        folder.join("anteroom.redb")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.content.join(name)
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

    fn write_temporary(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(&format!("{name}{TEMPORARY}"));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn rename_temporary(&self, name: &str) -> io::Result<()> {
        fs::rename(self.path(&format!("{name}{TEMPORARY}")), self.path(name))
    }

    fn sync_folder(&self) -> io::Result<()> {
        sync_dir(&self.content)
    }

    fn read_file(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.path(name))
    }

    fn remove_file(&self, name: &str) -> io::Result<()> {
        remove_if_there(&self.path(name))
    }

    fn list_files(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.content)? {
            let entry = entry?;
            // Folders and the like are not ours, and are left alone.
            if entry.file_type()?.is_file() {
                names.extend(entry.file_name().into_string().ok());
            }
        }
        names.sort();
        Ok(names)
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
