//! Files of a folder, and lists of objects as git reads them.

use crate::command::GitError;
use model::need::Oid;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Objects as git reads them.
pub(crate) fn lines(oids: &BTreeSet<Oid>) -> String {
    oids.iter().map(|oid| hex::encode(oid) + "\n").collect()
}

/// The files of a folder that end so.
pub(crate) fn files_of(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, GitError> {
    let files = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    Ok(files.filter(|file| file.extension().is_some_and(|other| other == extension)).collect())
}
