//! Folders and files of a commit.

use super::bounded::{BoundedText, run_bounded};
use crate::command::{GitError, with};
use crate::folder::ObjectStore;
use model::need::Oid;

/// How much is read of the list of a folder.
const FOLDER_BYTES_MAX: usize = 512 * 1024;
/// The longest path that is looked for.
const PATH_BYTES_MAX: usize = 4096;
/// What is read of the answer to one question.
const ANSWER_BYTES_MAX: usize = 8 * 1024;

/// What stands at a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathKind {
    Folder,
    File,
    /// Another name for a path.
    Link,
    /// A commit of another repository.
    Submodule,
}

/// A path of a commit that is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundPath {
    pub is_folder: bool,
    pub oid: Oid,
    pub bytes: u64,
}

/// One name in a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FolderEntry {
    pub name: String,
    pub kind: PathKind,
    pub oid: Oid,
    /// The size of a file.
    pub bytes: Option<u64>,
}

/// What a folder has; folders stand before files.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Folder {
    pub entries: Vec<FolderEntry>,
    /// Whether there are more than these.
    pub is_cut: bool,
}

impl ObjectStore {
    /// The commit that an object is, or that a tag points at.
    pub fn commit_at(&self, oid: &Oid) -> Result<Option<Oid>, GitError> {
        let answer = self.ask_about(&format!("{}^{{commit}}", hex::encode(oid)))?;
        Ok(answer.filter(|(kind, _, _)| kind == "commit").map(|(_, oid, _)| oid))
    }

    /// What stands at a path of a commit. The path of the whole is empty.
    pub fn find_path(&self, commit: &Oid, path: &str) -> Result<Option<FoundPath>, GitError> {
        if path.is_empty() {
            let root = self.ask_about(&format!("{}^{{tree}}", hex::encode(commit)))?;
            return Ok(root.map(|(_, oid, bytes)| FoundPath { is_folder: true, oid, bytes }));
        }
        if !is_path(path) {
            return Ok(None);
        }
        // Not as `commit:path`: git would read some paths as names of other commits.
        let mut command = self.reading();
        with(&mut command, &["ls-tree", "-z", "--long", "--full-tree"]).arg(hex::encode(commit)).arg("--").arg(path);
        let told = run_bounded("ls-tree", &mut command, &[], ANSWER_BYTES_MAX)?;
        let Some(entry) = told.parts().first().and_then(|line| read_entry(line)) else { return Ok(None) };
        Ok(match entry.kind {
            PathKind::Folder => Some(FoundPath { is_folder: true, oid: entry.oid, bytes: 0 }),
            PathKind::File | PathKind::Link => {
                entry.bytes.map(|bytes| FoundPath { is_folder: false, oid: entry.oid, bytes })
            }
            PathKind::Submodule => None,
        })
    }

    /// What an object is, which object it is, and how large.
    fn ask_about(&self, name: &str) -> Result<Option<(String, Oid, u64)>, GitError> {
        let mut command = self.reading();
        with(&mut command, &["cat-file", "--batch-check=%(objecttype) %(objectname) %(objectsize)"]);
        let told = run_bounded("cat-file", &mut command, format!("{name}\n").as_bytes(), ANSWER_BYTES_MAX)?.text();
        let mut words = told.split_whitespace();
        let (Some(kind), Some(oid), Some(bytes), None) = (words.next(), words.next(), words.next(), words.next())
        else {
            return Ok(None);
        };
        let Some(oid) = read_oid(oid) else { return Ok(None) };
        Ok(bytes.parse().ok().map(|bytes| (kind.to_owned(), oid, bytes)))
    }

    /// What a folder has.
    pub fn read_folder(&self, tree: &Oid) -> Result<Folder, GitError> {
        let mut command = self.reading();
        with(&mut command, &["ls-tree", "-z", "--long"]).arg(hex::encode(tree));
        let told = run_bounded("ls-tree", &mut command, &[], FOLDER_BYTES_MAX)?;
        let entries: Option<Vec<FolderEntry>> = told.parts().into_iter().map(read_entry).collect();
        let mut entries = entries.ok_or(GitError::Answer { what: "ls-tree" })?;
        entries.sort_by_key(|entry| entry.kind != PathKind::Folder);
        Ok(Folder { entries, is_cut: told.is_cut })
    }

    /// The beginning of a file.
    pub fn read_file(&self, blob: &Oid, bytes_max: usize) -> Result<BoundedText, GitError> {
        let mut command = self.reading();
        with(&mut command, &["cat-file", "blob"]).arg(hex::encode(blob));
        run_bounded("cat-file", &mut command, &[], bytes_max)
    }

    /// The command that writes a whole file.
    pub fn write_file(&self, blob: &Oid) -> std::process::Command {
        let mut command = self.reading();
        with(&mut command, &["cat-file", "blob"]).arg(hex::encode(blob));
        command
    }

    /// The command that writes all files of a commit as a compressed archive, in a folder of that name.
    pub fn write_archive(&self, commit: &Oid, folder: &str) -> std::process::Command {
        let mut command = self.reading();
        // Of the commit itself, files could have git tell which refs lead to it, those of other owners too.
        let tree = format!("{}^{{tree}}", hex::encode(commit));
        with(&mut command, &["archive", "--format=tar.gz"]).arg(format!("--prefix={folder}/")).arg(tree);
        command
    }
}

/// Whether there can be such a path in a repository. Git takes dots for steps on its own disk.
pub(super) fn is_path(path: &str) -> bool {
    let is_step = |step: &str| !matches!(step, "" | "." | "..");
    path.len() <= PATH_BYTES_MAX && !path.contains('\0') && (path.is_empty() || path.split('/').all(is_step))
}

pub(super) fn read_oid(text: &str) -> Option<Oid> {
    let mut oid = [0; 20];
    hex::decode_to_slice(text, &mut oid).ok()?;
    Some(oid)
}

/// A line of `ls-tree --long`: mode, kind, object and size, a tab, and the name.
fn read_entry(line: &[u8]) -> Option<FolderEntry> {
    let line = String::from_utf8_lossy(line);
    let (about, name) = line.split_once('\t')?;
    let mut words = about.split_whitespace();
    let (mode, _, oid, bytes) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let kind = match mode {
        "040000" => PathKind::Folder,
        "120000" => PathKind::Link,
        "160000" => PathKind::Submodule,
        _ => PathKind::File,
    };
    Some(FolderEntry { name: name.to_owned(), kind, oid: read_oid(oid)?, bytes: bytes.parse().ok() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]
    use super::*;

    #[test]
    fn paths_stay_in_the_repository() {
        for (path, can_be) in [
            ("", true),
            ("a", true),
            ("a/b c", true),
            ("a/..b", true),
            ("..", false),
            ("a/../b", false),
            ("./a", false),
            ("a//b", false),
            ("/a", false),
            ("a/", false),
            ("a\0", false),
        ] {
            assert_eq!(is_path(path), can_be, "{path:?}");
        }
    }

    #[test]
    fn a_line_of_a_folder_says_what_stands_there() {
        let oid = "ab".repeat(20);
        for (line, name, kind, bytes) in [
            (format!("100644 blob {oid}      12\tREADME.md"), "README.md", PathKind::File, Some(12)),
            (format!("100755 blob {oid}       0\ta b\tc"), "a b\tc", PathKind::File, Some(0)),
            (format!("040000 tree {oid}       -\tsrc"), "src", PathKind::Folder, None),
            (format!("120000 blob {oid}       4\tlink"), "link", PathKind::Link, Some(4)),
            (format!("160000 commit {oid}       -\tother"), "other", PathKind::Submodule, None),
        ] {
            let entry = read_entry(line.as_bytes()).expect(&line);
            assert_eq!((entry.name.as_str(), entry.kind, entry.bytes), (name, kind, bytes), "{line}");
            assert_eq!(entry.oid, [0xab; 20]);
        }
        assert_eq!(read_entry(b"nonsense"), None);
    }
}
