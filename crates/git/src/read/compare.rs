//! What is different between two commits.

use super::bounded::{BoundedText, run_bounded};
use crate::command::{GitError, with};
use crate::folder::ObjectStore;
use model::need::Oid;
use std::process::Command;

/// What an empty folder is called; git knows it without having it.
const EMPTY_FOLDER: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
/// How much is read of the list of files that differ.
const LIST_BYTES_MAX: usize = 2 * 1024 * 1024;
/// How much is read of the differences.
const PATCH_BYTES_MAX: usize = 512 * 1024;

/// What became of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeKind {
    Added,
    Deleted,
    Changed,
    Renamed,
}

/// A file that differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangedFile {
    pub kind: ChangeKind,
    pub path: String,
    /// What it was called before.
    pub old_path: Option<String>,
}

/// What is different between two commits.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Comparison {
    pub files: Vec<ChangedFile>,
    /// Whether more files differ than are listed.
    pub has_more_files: bool,
    /// The beginning of the differences, as git tells them, in the order of the files.
    pub patch: BoundedText,
}

impl ObjectStore {
    /// What is different in a commit; without another one, what it brings to an empty folder.
    pub fn compare(&self, from: Option<&Oid>, to: &Oid) -> Result<Comparison, GitError> {
        let list = run_bounded("diff-tree", &mut self.diff(&["--raw", "-z"], from, to), &[], LIST_BYTES_MAX)?;
        let files = read_list(&list.parts()).ok_or(GitError::Answer { what: "diff-tree" })?;
        let patch = run_bounded("diff-tree", &mut self.diff(&["--patch"], from, to), &[], PATCH_BYTES_MAX)?;
        Ok(Comparison { files, has_more_files: list.is_cut, patch })
    }

    fn diff(&self, form: &[&str], from: Option<&Oid>, to: &Oid) -> Command {
        let mut command = self.reading();
        with(&mut command, &["diff-tree", "-r", "--no-commit-id", "--find-renames", "--full-index"]);
        with(&mut command, &["--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short"]);
        with(&mut command, form);
        command.arg(from.map_or_else(|| EMPTY_FOLDER.to_owned(), hex::encode)).arg(hex::encode(to));
        command
    }
}

/// The list of `diff-tree --raw -z`: about a file, then its path, or both paths if it was renamed.
fn read_list(parts: &[&[u8]]) -> Option<Vec<ChangedFile>> {
    let mut files = Vec::new();
    let mut parts = parts.iter().map(|part| String::from_utf8_lossy(part).into_owned());
    while let Some(about) = parts.next() {
        let status = about.rsplit(' ').next()?.chars().next()?;
        // The last one may have been cut off.
        let Some(path) = parts.next() else { break };
        // What becomes another kind of thing is told as two: the old one goes, the new one comes.
        if status == 'T' {
            files.push(ChangedFile { kind: ChangeKind::Deleted, path: path.clone(), old_path: None });
        }
        let (kind, path, old_path) = match status {
            'A' | 'T' => (ChangeKind::Added, path, None),
            'D' => (ChangeKind::Deleted, path, None),
            'R' | 'C' => match parts.next() {
                Some(new_path) => (ChangeKind::Renamed, new_path, Some(path)),
                None => break,
            },
            _ => (ChangeKind::Changed, path, None),
        };
        files.push(ChangedFile { kind, path, old_path });
    }
    Some(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_changes_names_both_paths_of_what_was_renamed() {
        let parts: [&[u8]; 9] = [
            b":000000 100644 0 1 A",
            b"new",
            b":100644 100644 1 2 M",
            b"a b",
            b":100644 100644 1 1 R100",
            b"old",
            b"moved",
            b":100644 000000 1 0 D",
            b"gone",
        ];
        let files = read_list(&parts).unwrap_or_default();
        let told: Vec<_> = files.iter().map(|file| (file.kind, file.path.as_str(), file.old_path.as_deref())).collect();
        assert_eq!(
            told,
            [
                (ChangeKind::Added, "new", None),
                (ChangeKind::Changed, "a b", None),
                (ChangeKind::Renamed, "moved", Some("old")),
                (ChangeKind::Deleted, "gone", None),
            ]
        );
        let parts_of_link: [&[u8]; 4] = [b":100644 120000 1 2 T", b"a", b":100644 100644 1 2 M", b"b"];
        let told: Vec<_> = read_list(&parts_of_link).into_iter().flatten().map(|file| (file.kind, file.path)).collect();
        let (a, b) = ("a".to_owned(), "b".to_owned());
        assert_eq!(told, [(ChangeKind::Deleted, a.clone()), (ChangeKind::Added, a), (ChangeKind::Changed, b)]);
        assert_eq!(read_list(&parts[..3]).map(|files| files.len()), Some(1), "one was cut off");
    }
}
