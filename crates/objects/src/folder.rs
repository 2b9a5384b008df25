//! Objects as files of one folder: temporary name, sync, rename, sync of the folder.

use crate::backend::{Backend, ObjectError, ObjectSink, ObjectSource};
use model::ObjectName;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The ending of a file that has not got its name yet.
const UNFINISHED: &str = ".part";

/// After so many bytes what was written is sent to the disk, so that the sync at the end is short and pages of the cache
/// are free for others.
const FLUSH_BYTES: u64 = 8 << 20;

/// A folder of the file system.
#[derive(Clone, Debug)]
pub struct FolderBackend {
    folder: PathBuf,
}

impl FolderBackend {
    /// Uses that folder, creating it.
    pub fn new(folder: PathBuf) -> io::Result<FolderBackend> {
        fs::create_dir_all(&folder)?;
        Ok(FolderBackend { folder })
    }

    /// The file of an object.
    pub fn path(&self, name: ObjectName) -> PathBuf {
        self.folder.join(name.to_string())
    }

    fn unfinished(&self, name: ObjectName) -> PathBuf {
        self.folder.join(format!("{name}{UNFINISHED}"))
    }
}

impl Backend for FolderBackend {
    fn word(&self) -> &'static str {
        "folder"
    }

    fn create(&self, name: ObjectName) -> Result<Box<dyn ObjectSink>, ObjectError> {
        let part = self.unfinished(name);
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&part);
        let file = file.map_err(|why| ObjectError::from_io(name, &why))?;
        let sink = FileSink { name, file, part, path: self.path(name), unsent: 0, is_kept: false };
        Ok(Box::new(sink))
    }

    fn create_resumable(&self, name: ObjectName) -> Result<Box<dyn ObjectSink>, ObjectError> {
        self.create(name)
    }

    fn resume(&self, name: ObjectName, len: u64) -> Result<Box<dyn ObjectSink>, ObjectError> {
        let part = self.unfinished(name);
        // It was finished, and the process ended before anybody said so.
        if !part.exists() {
            let _ = fs::rename(self.path(name), &part);
        }
        let open = || -> io::Result<File> {
            let mut file = OpenOptions::new().write(true).open(&part)?;
            let there = file.metadata()?.len();
            if there < len {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("{there} of {len} bytes are there")));
            }
            file.set_len(len)?;
            file.seek(io::SeekFrom::End(0))?;
            Ok(file)
        };
        let file = open().map_err(|why| ObjectError::from_io(name, &why))?;
        Ok(Box::new(FileSink { name, file, part, path: self.path(name), unsent: 0, is_kept: true }))
    }

    fn settle(&self, _: ObjectName) {}

    fn open_unfinished(&self, name: ObjectName) -> Result<Box<dyn ObjectSource>, ObjectError> {
        open_file(name, &self.unfinished(name))
    }

    fn open(&self, name: ObjectName) -> Result<Box<dyn ObjectSource>, ObjectError> {
        open_file(name, &self.path(name))
    }

    fn remove(&self, name: ObjectName) -> Result<(), ObjectError> {
        let mut removed = false;
        for path in [self.path(name), self.unfinished(name)] {
            match fs::remove_file(path) {
                Ok(()) => removed = true,
                Err(why) if why.kind() == io::ErrorKind::NotFound => {}
                Err(why) => return Err(ObjectError::from_io(name, &why)),
            }
        }
        match removed {
            true => sync_folder(&self.folder).map_err(|why| ObjectError::from_io(name, &why)),
            false => Ok(()),
        }
    }
}

fn open_file(name: ObjectName, path: &Path) -> Result<Box<dyn ObjectSource>, ObjectError> {
    let open = || -> io::Result<FileSource> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Ok(FileSource { name, file, len })
    };
    open().map(|source| Box::new(source) as Box<dyn ObjectSource>).map_err(|why| ObjectError::from_io(name, &why))
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

struct FileSink {
    name: ObjectName,
    file: File,
    part: PathBuf,
    path: PathBuf,
    /// Bytes since the disk was last asked to begin.
    unsent: u64,
    /// Whether it has its name, or goes on later: it is not removed.
    is_kept: bool,
}

impl ObjectSink for FileSink {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ObjectError> {
        self.file.write_all(bytes).map_err(|why| ObjectError::from_io(self.name, &why))?;
        self.unsent += bytes.len() as u64;
        if self.unsent >= FLUSH_BYTES {
            self.unsent = 0;
            self.file.sync_data().map_err(|why| ObjectError::from_io(self.name, &why))?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), ObjectError> {
        // Once is enough for the name to be durable.
        let folder = self.path.parent().filter(|_| !self.is_kept);
        let synced = self.file.sync_data().and_then(|()| folder.map_or(Ok(()), sync_folder));
        self.is_kept = true;
        self.unsent = 0;
        synced.map_err(|why| ObjectError::from_io(self.name, &why))
    }

    fn finish(mut self: Box<Self>) -> Result<(), ObjectError> {
        let named = self.file.sync_all().and_then(|()| fs::rename(&self.part, &self.path));
        self.is_kept |= named.is_ok();
        let synced = named.and_then(|()| self.path.parent().map_or(Ok(()), sync_folder));
        synced.map_err(|why| ObjectError::from_io(self.name, &why))
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        if !self.is_kept {
            // If this fails, the row of the object has it removed later.
            let _ = fs::remove_file(&self.part);
        }
    }
}

struct FileSource {
    name: ObjectName,
    file: File,
    len: u64,
}

impl ObjectSource for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<(), ObjectError> {
        self.file.read_exact_at(into, offset).map_err(|why| match why.kind() {
            io::ErrorKind::UnexpectedEof => ObjectError::Damaged(self.name, "it is cut off"),
            _ => ObjectError::from_io(self.name, &why),
        })
    }
}
