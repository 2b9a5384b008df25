//! The folder of an index, as the search engine reaches it: every file is sealed on its way out and opened chunk by
//! chunk on its way in.

use crate::cipher::{CHUNK_BYTES, FileCipher, HEADER_BYTES, Layout, SEALED_BYTES};
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Read as _, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tantivy::HasLen;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, Directory, DirectoryLock, FileHandle, Lock, OwnedBytes, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};
use zeroize::Zeroizing;

/// The ending of a file that has not got its name yet.
const TEMPORARY: &str = ".part";

/// A folder of sealed files.
#[derive(Clone)]
pub(crate) struct Folder {
    path: Arc<Path>,
    key: Arc<Zeroizing<[u8; 32]>>,
}

impl Folder {
    /// Uses that folder, creating it.
    pub(crate) fn new(path: &Path, key: &[u8; 32]) -> io::Result<Folder> {
        fs::create_dir_all(path)?;
        Ok(Folder { path: path.into(), key: Arc::new(Zeroizing::new(*key)) })
    }

    fn place(&self, name: &Path) -> PathBuf {
        self.path.join(name)
    }

    fn open(&self, name: &Path) -> io::Result<SealedFile> {
        let mut file = File::open(self.place(name))?;
        let layout = Layout::of(file.metadata()?.len())?;
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header)?;
        let cipher = FileCipher::resume(&self.key, &name.to_string_lossy(), &header)?;
        Ok(SealedFile { file, cipher, layout })
    }

    fn begin(&self, name: &Path, mut file: File) -> io::Result<SealingWriter> {
        let (cipher, header) = FileCipher::begin(&self.key, &name.to_string_lossy())?;
        file.write_all(&header)?;
        Ok(SealingWriter { file, cipher, chunk: Vec::with_capacity(CHUNK_BYTES), number: 0 })
    }
}

impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Folder({})", self.path.display())
    }
}

/// A file that is read. It stays readable after its name has gone.
struct SealedFile {
    file: File,
    cipher: FileCipher,
    layout: Layout,
}

impl SealedFile {
    fn chunk(&self, number: usize) -> io::Result<Vec<u8>> {
        let mut sealed = vec![0; self.layout.sealed_bytes(number)];
        self.file.read_exact_at(&mut sealed, (HEADER_BYTES + number * SEALED_BYTES) as u64)?;
        self.cipher.open(number, number + 1 == self.layout.chunks, &sealed)
    }

    fn read(&self, range: Range<usize>) -> io::Result<Vec<u8>> {
        if range.end > self.layout.plain || range.start > range.end {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the range is not in the file"));
        }
        let mut bytes = Vec::with_capacity(range.len());
        let mut at = range.start;
        while at < range.end {
            let number = at / CHUNK_BYTES;
            let first = number * CHUNK_BYTES;
            let chunk = self.chunk(number)?;
            bytes.extend_from_slice(&chunk[at - first..chunk.len().min(range.end - first)]);
            at = first + CHUNK_BYTES;
        }
        Ok(bytes)
    }
}

impl fmt::Debug for SealedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealedFile({:?})", self.layout)
    }
}

impl HasLen for SealedFile {
    fn len(&self) -> usize {
        self.layout.plain
    }
}

impl FileHandle for SealedFile {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        self.read(range).map(OwnedBytes::new)
    }
}

/// A file that is written.
struct SealingWriter {
    file: File,
    cipher: FileCipher,
    chunk: Vec<u8>,
    number: usize,
}

impl SealingWriter {
    fn seal(&mut self, is_last: bool) -> io::Result<()> {
        self.file.write_all(&self.cipher.seal(self.number, is_last, &self.chunk))?;
        self.number += 1;
        self.chunk.clear();
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.seal(true)?;
        self.file.sync_all()
    }
}

impl Write for SealingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full chunk waits until there is more, since the last one is sealed as such.
        if self.chunk.len() == CHUNK_BYTES && !bytes.is_empty() {
            self.seal(false)?;
        }
        let taken = bytes.len().min(CHUNK_BYTES - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        // Half a chunk cannot be written; `terminate` writes the rest.
        Ok(())
    }
}

impl TerminatingWrite for SealingWriter {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        self.finish()
    }
}

impl Directory for Folder {
    fn get_file_handle(&self, name: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        Ok(Arc::new(self.open(name).map_err(|why| cannot_read(why, name))?))
    }

    fn delete(&self, name: &Path) -> Result<(), DeleteError> {
        fs::remove_file(self.place(name)).map_err(|why| match why.kind() {
            io::ErrorKind::NotFound => DeleteError::FileDoesNotExist(name.to_owned()),
            _ => DeleteError::IoError { io_error: Arc::new(why), filepath: name.to_owned() },
        })
    }

    fn exists(&self, name: &Path) -> Result<bool, OpenReadError> {
        self.place(name).try_exists().map_err(|why| cannot_read(why, name))
    }

    fn open_write(&self, name: &Path) -> Result<WritePtr, OpenWriteError> {
        let made = OpenOptions::new().write(true).create_new(true).open(self.place(name));
        let writer = made.and_then(|file| self.begin(name, file)).map_err(|why| match why.kind() {
            io::ErrorKind::AlreadyExists => OpenWriteError::FileAlreadyExists(name.to_owned()),
            _ => OpenWriteError::wrap_io_error(why, name.to_owned()),
        })?;
        Ok(BufWriter::new(Box::new(writer)))
    }

    fn atomic_read(&self, name: &Path) -> Result<Vec<u8>, OpenReadError> {
        let read = self.open(name).and_then(|file| file.read(0..file.layout.plain));
        read.map_err(|why| cannot_read(why, name))
    }

    fn atomic_write(&self, name: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut temporary = self.place(name).into_os_string();
        temporary.push(TEMPORARY);
        let mut writer = self.begin(name, File::create(&temporary)?)?;
        writer.write_all(bytes)?;
        writer.finish()?;
        fs::rename(&temporary, self.place(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    /// Locks belong to the process and go with it, so that a crash leaves none behind.
    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        let opened = OpenOptions::new().write(true).create(true).truncate(true).open(self.place(&lock.filepath));
        let file = opened.map_err(LockError::wrap_io_error)?;
        if lock.is_blocking {
            file.lock().map_err(LockError::wrap_io_error)?;
        } else {
            file.try_lock().map_err(|why| match why {
                TryLockError::WouldBlock => LockError::LockBusy,
                TryLockError::Error(why) => LockError::wrap_io_error(why),
            })?;
        }
        Ok(DirectoryLock::from(Box::new(file)))
    }

    /// Nobody watches: whoever commits tells the reader.
    fn watch(&self, _: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

fn cannot_read(why: io::Error, name: &Path) -> OpenReadError {
    match why.kind() {
        io::ErrorKind::NotFound => OpenReadError::FileDoesNotExist(name.to_owned()),
        _ => OpenReadError::wrap_io_error(why, name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantivy::directory::FileSlice;

    fn write(folder: &Folder, name: &str, bytes: &[u8]) {
        let mut writer = folder.open_write(Path::new(name)).expect("a writer");
        writer.write_all(bytes).expect("written");
        writer.terminate().expect("ended");
    }

    fn read(folder: &Folder, name: &str) -> io::Result<Vec<u8>> {
        let slice: FileSlice = folder.open_read(Path::new(name)).map_err(io::Error::other)?;
        Ok(slice.read_bytes()?.to_vec())
    }

    #[test]
    fn files_of_all_lengths_come_back_whole_and_in_parts() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = Folder::new(home.path(), &[1; 32]).expect("a folder");
        for length in [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES, 3 * CHUNK_BYTES + 5] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let name = format!("f{length}");
            write(&folder, &name, &bytes);
            assert_eq!(read(&folder, &name).expect("read"), bytes);
            let file = folder.open(Path::new(&name)).expect("open");
            for range in [0..length, length / 3..length / 2, length..length] {
                assert_eq!(file.read(range.clone()).expect("read"), bytes[range]);
            }
            assert!(file.read(0..length + 1).is_err());
        }
    }

    #[test]
    fn what_was_cut_changed_or_renamed_is_not_read() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = Folder::new(home.path(), &[1; 32]).expect("a folder");
        write(&folder, "whole", &[7; 3 * CHUNK_BYTES]);
        let whole = fs::read(home.path().join("whole")).expect("bytes");
        let mut changed = whole.clone();
        changed[HEADER_BYTES + 5] ^= 1;
        for (name, bytes) in [
            ("changed", changed.as_slice()),
            ("cut", &whole[..HEADER_BYTES + SEALED_BYTES]),
            ("renamed", &whole),
            ("short", &whole[..10]),
        ] {
            fs::write(home.path().join(name), bytes).expect("written");
            assert!(read(&folder, name).is_err(), "{name}");
        }
        assert!(read(&folder, "whole").is_ok());
    }
}
