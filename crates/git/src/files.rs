//! Files of a folder, and lists of objects as git reads them.

use crate::command::GitError;
use model::need::Oid;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Objects as git reads them.
pub(crate) fn lines(oids: &BTreeSet<Oid>) -> String {
    oids.iter().map(|oid| hex::encode(oid) + "\n").collect()
}

/// What these reach and those do not, as git reads it. Before version 2.42 it knows no `--not` on standard input.
pub(crate) fn lines_beyond(oids: &BTreeSet<Oid>, known: &BTreeSet<Oid>) -> String {
    known.iter().fold(lines(oids), |mut text, oid| {
        text.extend(["^", &hex::encode(oid), "\n"]);
        text
    })
}

/// The files of a folder that end so.
pub(crate) fn files_of(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, GitError> {
    let files = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    Ok(files.filter(|file| file.extension().is_some_and(|other| other == extension)).collect())
}

#[cfg(test)]
mod tests {
    use super::lines_beyond;

    #[test]
    fn what_is_left_out_is_said_as_every_version_of_git_reads_it() {
        let oid = |number: u8| [number; 20];
        let text = lines_beyond(&[oid(1)].into(), &[oid(2), oid(3)].into());
        assert_eq!(text, format!("{}\n^{}\n^{}\n", "01".repeat(20), "02".repeat(20), "03".repeat(20)));
    }
}
