//! Files beside the database that a backup takes along without knowing what is in them: git repositories.

use crate::disk::sync_dir;
use crate::maintenance::backup::write::BackupError;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Where such files come from.
pub trait ExtraFiles {
    /// Their names, which are paths below the data folder.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Hands the bytes of one of them to a function. Says whether all of it could be read.
    fn read(&self, name: &str, each: &mut dyn FnMut(&[u8]) -> Result<(), BackupError>) -> Result<bool, BackupError>;
}

/// A folder without such files.
#[derive(Clone, Copy, Debug)]
pub struct NoExtraFiles;

impl ExtraFiles for NoExtraFiles {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn read(&self, _: &str, _: &mut dyn FnMut(&[u8]) -> Result<(), BackupError>) -> Result<bool, BackupError> {
        Ok(false)
    }
}

/// Whether a file may be called so: a folder and a file of plain letters, so that none is written anywhere else.
pub(super) fn is_extra_name(name: &str) -> bool {
    let is_plain = |part: &str| {
        let is_letter = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'.';
        part.bytes().all(is_letter) && part.starts_with(|first: char| first.is_ascii_alphanumeric()) && part.len() <= 64
    };
    name.split_once('/').is_some_and(|(folder, file)| is_plain(folder) && is_plain(file))
}

/// One of them, as it is restored.
pub(super) struct RestoredFile {
    path: PathBuf,
    file: File,
    is_empty: bool,
}

impl RestoredFile {
    pub(super) fn create(folder: &Path, name: &str) -> io::Result<RestoredFile> {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        Ok(RestoredFile { file: File::create(&path)?, path, is_empty: true })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.is_empty = self.is_empty && bytes.is_empty();
        self.file.write_all(bytes)
    }

    /// What is not whole, or of which nothing was there any more, is not kept.
    pub(super) fn end(self, is_whole: bool) -> io::Result<()> {
        if !is_whole || self.is_empty {
            return std::fs::remove_file(&self.path);
        }
        self.file.sync_all()?;
        self.path.parent().map_or(Ok(()), sync_dir)
    }
}

#[cfg(test)]
mod tests {
    use super::is_extra_name;

    #[test]
    fn only_plain_names_below_one_folder_are_names() {
        assert!(is_extra_name("git/0123456789abcdef0123456789abcdef.bundle"));
        for name in
            ["", "git", "git/", "/x", "../x", "git/../x", "git/x/y", "git/.x", ".git/x", "git/X", "git/a\0", "a b/c"]
        {
            assert!(!is_extra_name(name), "{name}");
        }
    }
}
