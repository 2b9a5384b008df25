//! Commits: one, and those that came before it.

use super::bounded::run_bounded;
use super::tree::{is_path, read_oid};
use crate::command::{GitError, with};
use crate::files::lines_beyond;
use crate::folder::ObjectStore;
use model::NostrKey;
use model::need::Oid;
use std::collections::BTreeSet;
use std::process::Command;

/// What is read of a list of commits.
const HISTORY_BYTES_MAX: usize = 1024 * 1024;
/// The first line of a message, cut: some have megabytes.
const SUBJECT: &str = "%<(250,trunc)%s";
/// Fields that git tells of a commit.
const FIELDS: usize = 7;

/// A commit, as far as people read it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Commit {
    pub oid: Oid,
    pub parents: Vec<Oid>,
    pub author: String,
    /// Seconds; before 1970 they are negative.
    pub authored_at: i64,
    pub committer: String,
    pub committed_at: i64,
    /// The whole message; in a list only its first paragraph.
    pub message: String,
}

/// Some commits, the latest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct History {
    pub commits: Vec<Commit>,
    /// Whether there are more than these.
    pub has_more: bool,
}

impl ObjectStore {
    /// Whether the refs of an owner reach a commit. Of what is no commit that cannot be said, so they do not.
    pub fn is_reached(&self, owner: &NostrKey, commit: &Oid) -> Result<bool, GitError> {
        if self.commit_at(commit)? != Some(*commit) {
            return Ok(false);
        }
        let tips: BTreeSet<Oid> = self.refs(owner)?.into_values().collect();
        if tips.contains(commit) {
            return Ok(true);
        }
        let input = lines_beyond(&[*commit].into(), &self.existing(&tips)?);
        let mut command = self.reading();
        with(&mut command, &["rev-list", "--max-count=1", "--stdin"]);
        // One commit that they do not reach is enough to know.
        Ok(run_bounded("rev-list", &mut command, input.as_bytes(), 64)?.bytes.is_empty())
    }

    /// A commit with its whole message.
    pub fn read_commit(&self, commit: &Oid) -> Result<Option<Commit>, GitError> {
        let found = self.log("%B", &[hex::encode(commit)], None, 0, 1)?;
        Ok(found.commits.into_iter().next())
    }

    /// Commits that a commit follows, itself included, the latest first; with a path, those that changed something there.
    pub fn history(&self, from: &Oid, path: &str, skip: usize, most: usize) -> Result<History, GitError> {
        if !is_path(path) {
            return Ok(History::default());
        }
        self.log(SUBJECT, &[hex::encode(from)], Some(path).filter(|path| !path.is_empty()), skip, most)
    }

    /// Commits that a commit follows and another one does not, the latest first.
    pub fn commits_since(&self, base: Option<&Oid>, tip: &Oid, most: usize) -> Result<History, GitError> {
        let mut revisions = vec![hex::encode(tip)];
        revisions.extend(base.map(|base| format!("^{}", hex::encode(base))));
        self.log(SUBJECT, &revisions, None, 0, most)
    }

    fn log(
        &self,
        message: &str,
        revisions: &[String],
        path: Option<&str>,
        skip: usize,
        most: usize,
    ) -> Result<History, GitError> {
        let mut command = self.reading();
        with(&mut command, &["log", "-z", "--no-color", "--no-decorate", "--no-show-signature", "--encoding=UTF-8"]);
        command.arg(format!("--format=%H%x00%P%x00%<(100,trunc)%an%x00%at%x00%<(100,trunc)%cn%x00%ct%x00{message}"));
        command.arg(format!("--skip={skip}")).arg(format!("--max-count={}", most + 1)).args(revisions).arg("--");
        command.args(path);
        let told = run_bounded("log", &mut command, &[], HISTORY_BYTES_MAX)?;
        // The message stands last, so that one that was cut off is still a message.
        let fields: Vec<&[u8]> = told.bytes.split(|byte| *byte == 0).collect();
        let commits: Option<Vec<Commit>> = fields.chunks_exact(FIELDS).map(read_fields).collect();
        let mut commits = commits.ok_or(GitError::Answer { what: "log" })?;
        let has_more = told.is_cut || commits.len() > most;
        commits.truncate(most);
        Ok(History { commits, has_more })
    }

    /// The latest commit from which two commits both come, if there is one.
    pub fn merge_base(&self, one: &Oid, other: &Oid) -> Result<Option<Oid>, GitError> {
        let mut command = self.reading();
        with(&mut command, &["merge-base"]).arg(hex::encode(one)).arg(hex::encode(other));
        match run_bounded("merge-base", &mut command, &[], 64) {
            Ok(told) => Ok(read_oid(told.text().trim())),
            // It says nothing where there is none.
            Err(GitError::Failed { why, .. }) if why.is_empty() => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// The command that writes a commit as a mail with its patch; that of a merge is against its first parent.
    pub fn write_patch(&self, commit: &Oid) -> Command {
        let mut command = self.reading();
        with(&mut command, &["log", "-1", "--format=email", "--stat", "--patch", "--first-parent", "-m", "--no-color"]);
        with(&mut command, &["--no-ext-diff", "--no-textconv"]).arg(hex::encode(commit)).arg("--");
        command
    }
}

fn read_fields(fields: &[&[u8]]) -> Option<Commit> {
    let text = |at: usize| fields.get(at).map(|field| String::from_utf8_lossy(field).trim_end().to_owned());
    Some(Commit {
        oid: read_oid(&text(0)?)?,
        parents: text(1)?.split_whitespace().map(read_oid).collect::<Option<_>>()?,
        author: text(2)?,
        authored_at: text(3)?.parse().unwrap_or_default(),
        committer: text(4)?,
        committed_at: text(5)?.parse().unwrap_or_default(),
        message: text(6)?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]
    use super::*;

    #[test]
    fn the_fields_of_a_commit_are_read_in_their_order() {
        let (oid, parent) = ("11".repeat(20), "22".repeat(20));
        let fields = [&oid, &parent, "Ann", "-5", "Bob", "7", "why\n\nbecause"];
        let fields: Vec<&[u8]> = fields.iter().map(|field| field.as_bytes()).collect();
        let commit = read_fields(&fields).expect("a commit");
        assert_eq!((commit.oid, commit.parents), ([0x11; 20], vec![[0x22; 20]]));
        assert_eq!((commit.author.as_str(), commit.authored_at), ("Ann", -5));
        assert_eq!((commit.committer.as_str(), commit.committed_at), ("Bob", 7));
        assert_eq!(commit.message, "why\n\nbecause");
        assert_eq!(read_fields(&[b"xyz"]), None);
    }
}
