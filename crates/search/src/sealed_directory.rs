//! The directory that the search engine (tantivy) reads and writes. Files are encrypted when written, and decrypted chunk
//! by chunk when read.

use crate::cipher::{CHUNK_BYTES, FileCipher, FileLayout, HEADER_BYTES, SEALED_CHUNK_BYTES};
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

/// The suffix of files that are not complete yet.
const TEMPORARY_SUFFIX: &str = ".part";

/// A directory of encrypted files.
#[derive(Clone)]
pub(crate) struct SealedDirectory {
    path: Arc<Path>,
    key: Arc<Zeroizing<[u8; 32]>>,
}

impl SealedDirectory {
    /// Creates the directory if it does not exist.
    pub(crate) fn new(path: &Path, key: &[u8; 32]) -> io::Result<SealedDirectory> {
        fs::create_dir_all(path)?;
        Ok(SealedDirectory { path: path.into(), key: Arc::new(Zeroizing::new(*key)) })
    }

    fn full_path(&self, name: &Path) -> PathBuf {
        self.path.join(name)
    }

    fn open(&self, name: &Path) -> io::Result<SealedFile> {
        let mut file = File::open(self.full_path(name))?;
        let layout = FileLayout::from_length(file.metadata()?.len())?;
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header)?;
        let cipher = FileCipher::for_existing_file(&self.key, &name.to_string_lossy(), &header)?;
        Ok(SealedFile { file, cipher, layout })
    }

    fn start_file(&self, name: &Path, mut file: File) -> io::Result<SealingWriter> {
        let (cipher, header) = FileCipher::for_new_file(&self.key, &name.to_string_lossy())?;
        file.write_all(&header)?;
        Ok(SealingWriter { file, cipher, chunk: Vec::with_capacity(CHUNK_BYTES), number: 0 })
    }
}

impl fmt::Debug for SealedDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealedDirectory({})", self.path.display())
    }
}

/// A file opened for reading. It stays readable after it was deleted.
struct SealedFile {
    file: File,
    cipher: FileCipher,
    layout: FileLayout,
}

impl SealedFile {
    fn read_chunk(&self, number: usize) -> io::Result<Vec<u8>> {
        let mut sealed = vec![0; self.layout.sealed_bytes(number)];
        self.file.read_exact_at(&mut sealed, (HEADER_BYTES + number * SEALED_CHUNK_BYTES) as u64)?;
        self.cipher.open_chunk(number, number + 1 == self.layout.chunks, &sealed)
    }

    fn read(&self, range: Range<usize>) -> io::Result<Vec<u8>> {
        if range.end > self.layout.plain_bytes || range.start > range.end {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the range is outside the file"));
        }
        let mut bytes = Vec::with_capacity(range.len());
        let mut at = range.start;
        while at < range.end {
            let number = at / CHUNK_BYTES;
            let first = number * CHUNK_BYTES;
            let chunk = self.read_chunk(number)?;
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
        self.layout.plain_bytes
    }
}

impl FileHandle for SealedFile {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        self.read(range).map(OwnedBytes::new)
    }
}

/// A file opened for writing.
struct SealingWriter {
    file: File,
    cipher: FileCipher,
    chunk: Vec<u8>,
    number: usize,
}

impl SealingWriter {
    fn write_chunk(&mut self, is_last: bool) -> io::Result<()> {
        self.file.write_all(&self.cipher.seal_chunk(self.number, is_last, &self.chunk))?;
        self.number += 1;
        self.chunk.clear();
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write_chunk(true)?;
        self.file.sync_all()
    }
}

impl Write for SealingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full chunk is written only when more bytes follow, because the last chunk is marked as such.
        if self.chunk.len() == CHUNK_BYTES && !bytes.is_empty() {
            self.write_chunk(false)?;
        }
        let taken = bytes.len().min(CHUNK_BYTES - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        // Incomplete chunks cannot be written; `terminate` writes the rest.
        Ok(())
    }
}

impl TerminatingWrite for SealingWriter {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        self.finish()
    }
}

impl Directory for SealedDirectory {
    fn get_file_handle(&self, name: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        Ok(Arc::new(self.open(name).map_err(|why| open_read_error(why, name))?))
    }

    fn delete(&self, name: &Path) -> Result<(), DeleteError> {
        fs::remove_file(self.full_path(name)).map_err(|why| match why.kind() {
            io::ErrorKind::NotFound => DeleteError::FileDoesNotExist(name.to_owned()),
            _ => DeleteError::IoError { io_error: Arc::new(why), filepath: name.to_owned() },
        })
    }

    fn exists(&self, name: &Path) -> Result<bool, OpenReadError> {
        self.full_path(name).try_exists().map_err(|why| open_read_error(why, name))
    }

    fn open_write(&self, name: &Path) -> Result<WritePtr, OpenWriteError> {
        let made = OpenOptions::new().write(true).create_new(true).open(self.full_path(name));
        let writer = made.and_then(|file| self.start_file(name, file)).map_err(|why| match why.kind() {
            io::ErrorKind::AlreadyExists => OpenWriteError::FileAlreadyExists(name.to_owned()),
            _ => OpenWriteError::wrap_io_error(why, name.to_owned()),
        })?;
        Ok(BufWriter::new(Box::new(writer)))
    }

    fn atomic_read(&self, name: &Path) -> Result<Vec<u8>, OpenReadError> {
        let read = self.open(name).and_then(|file| file.read(0..file.layout.plain_bytes));
        read.map_err(|why| open_read_error(why, name))
    }

    fn atomic_write(&self, name: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut temporary = self.full_path(name).into_os_string();
        temporary.push(TEMPORARY_SUFFIX);
        let mut writer = self.start_file(name, File::create(&temporary)?)?;
        writer.write_all(bytes)?;
        writer.finish()?;
        fs::rename(&temporary, self.full_path(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    /// The operating system releases these locks when the process ends, so a crash leaves none behind.
    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        let opened = OpenOptions::new().write(true).create(true).truncate(true).open(self.full_path(&lock.filepath));
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

    /// Not supported: the reader is reloaded explicitly after each commit.
    fn watch(&self, _: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

fn open_read_error(why: io::Error, name: &Path) -> OpenReadError {
    match why.kind() {
        io::ErrorKind::NotFound => OpenReadError::FileDoesNotExist(name.to_owned()),
        _ => OpenReadError::wrap_io_error(why, name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantivy::directory::FileSlice;

    fn write(folder: &SealedDirectory, name: &str, bytes: &[u8]) {
        let mut writer = folder.open_write(Path::new(name)).expect("a writer");
        writer.write_all(bytes).expect("written");
        writer.terminate().expect("ended");
    }

    fn read(folder: &SealedDirectory, name: &str) -> io::Result<Vec<u8>> {
        let slice: FileSlice = folder.open_read(Path::new(name)).map_err(io::Error::other)?;
        Ok(slice.read_bytes()?.to_vec())
    }

    #[test]
    fn files_of_all_lengths_are_read_whole_and_by_range() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = SealedDirectory::new(home.path(), &[1; 32]).expect("a folder");
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
    fn truncated_changed_and_renamed_files_are_not_read() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = SealedDirectory::new(home.path(), &[1; 32]).expect("a folder");
        write(&folder, "whole", &[7; 3 * CHUNK_BYTES]);
        let whole = fs::read(home.path().join("whole")).expect("bytes");
        let mut changed = whole.clone();
        changed[HEADER_BYTES + 5] ^= 1;
        for (name, bytes) in [
            ("changed", changed.as_slice()),
            ("cut", &whole[..HEADER_BYTES + SEALED_CHUNK_BYTES]),
            ("renamed", &whole),
            ("short", &whole[..10]),
        ] {
            fs::write(home.path().join(name), bytes).expect("written");
            assert!(read(&folder, name).is_err(), "{name}");
        }
        assert!(read(&folder, "whole").is_ok());
    }
}
