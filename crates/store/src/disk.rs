//! The disk: one database file and content files, behind a trait so that crashes and faults can be tried out.

use redb::{Builder, Database, DatabaseError};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Where the database and the content files are.
///
/// A content file is written in steps that survive a crash between any two of them: temporary name, sync, rename,
/// folder sync; then comes the row that speaks of it.
pub trait Disk: Send + Sync + std::fmt::Debug + 'static {
    /// Opens the database. One that is not there is made under another name and renamed when it is whole, so that a
    /// crash in between leaves nothing that cannot be opened.
    fn open_database(&self, builder: &Builder) -> Result<Database, DatabaseError>;
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
}

impl FolderDisk {
    /// Uses that folder, creating it and its parts.
    pub fn new(folder: &Path) -> io::Result<FolderDisk> {
        let content = folder.join("content");
        fs::create_dir_all(&content)?;
        Ok(FolderDisk { folder: folder.to_owned(), content })
    }

    /// The path of the database file.
    pub fn database_path(&self) -> PathBuf {
        self.folder.join("anteroom.redb")
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
        if !path.exists() {
            let unfinished = path.with_extension("redb.part");
            if unfinished.exists() {
                fs::remove_file(&unfinished)?;
            }
            drop(builder.create(&unfinished)?);
            File::open(&unfinished)?.sync_all()?;
            fs::rename(&unfinished, &path)?;
            sync_dir(&self.folder)?;
        }
        // An empty file is no new database: something cut it off.
        if fs::metadata(&path)?.len() == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the database file is empty").into());
        }
        builder.create(path)
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
        match fs::remove_file(self.path(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
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

/// Makes what happened in a folder durable.
pub fn sync_dir(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
