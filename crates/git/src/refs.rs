//! The refs of an owner: read, and changed in one transaction.

use crate::command::{GitError, run, with};
use crate::folder::ObjectStore;
use model::NostrKey;
use model::need::Oid;
use std::collections::{BTreeMap, BTreeSet};

/// What a ref becomes; without an object it is deleted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefWrite {
    pub name: String,
    pub to: Option<Oid>,
}

/// Where the refs of an owner begin in a store.
fn namespace(owner: &NostrKey) -> String {
    format!("refs/namespaces/{owner}/")
}

impl ObjectStore {
    /// All refs of an owner.
    pub fn refs(&self, owner: &NostrKey) -> Result<BTreeMap<String, Oid>, GitError> {
        let beginning = namespace(owner);
        let refs = self.refs_under(&format!("{beginning}refs/"))?.into_iter();
        Ok(refs.filter_map(|(name, oid)| Some((name.strip_prefix(&beginning)?.to_owned(), oid))).collect())
    }

    /// What the refs of all owners point at.
    pub(crate) fn tips(&self) -> Result<BTreeSet<Oid>, GitError> {
        Ok(self.refs_under("refs/")?.into_iter().map(|(_, oid)| oid).collect())
    }

    pub(crate) fn refs_under(&self, beginning: &str) -> Result<Vec<(String, Oid)>, GitError> {
        let mut command = self.git(None);
        with(&mut command, &["for-each-ref", "--format=%(objectname) %(refname)"]);
        let told = run("for-each-ref", command.arg("--").arg(beginning), &[])?;
        let read = |line: &str| {
            let (oid, name) = line.split_once(' ')?;
            let mut bytes = [0; 20];
            hex::decode_to_slice(oid, &mut bytes).ok()?;
            Some((name.to_owned(), bytes))
        };
        let lines = String::from_utf8_lossy(&told);
        lines.lines().map(|line| read(line).ok_or(GitError::Answer { what: "for-each-ref" })).collect()
    }

    /// Changes refs of an owner: what is deleted, then the rest, each all or none.
    pub fn change_refs(&self, owner: &NostrKey, changes: &[RefWrite]) -> Result<(), GitError> {
        if changes.is_empty() {
            return Ok(());
        }
        let beginning = namespace(owner);
        let (mut deletions, mut updates) = (Vec::new(), Vec::new());
        for RefWrite { name, to } in changes {
            match to {
                None => deletions.extend(format!("delete {beginning}{name}\0\0").bytes()),
                Some(oid) => updates.extend(format!("update {beginning}{name}\0{}\0\0", hex::encode(oid)).bytes()),
            }
        }
        // Deletions first, by themselves: a ref may be a folder of the one that takes its place.
        for input in [deletions, updates].into_iter().filter(|input| !input.is_empty()) {
            let mut command = self.git(None);
            run("update-ref", with(&mut command, &["update-ref", "--no-deref", "-z", "--stdin"]), &input)?;
        }
        Ok(())
    }

    /// Has no `HEAD` of an owner: one that points nowhere would be taken for damage.
    pub fn clear_head(&self, owner: &NostrKey) -> Result<(), GitError> {
        let head = format!("{}HEAD", namespace(owner));
        if !self.path.join(&head).exists() {
            return Ok(());
        }
        let mut command = self.git(None);
        run("symbolic-ref", with(&mut command, &["symbolic-ref", "--delete", &head]), &[]).map(drop)
    }

    /// Makes `HEAD` of an owner point at a branch, which has to be there.
    pub fn set_head(&self, owner: &NostrKey, branch: &str) -> Result<(), GitError> {
        if !branch.starts_with("refs/heads/") {
            return Err(GitError::Answer { what: "symbolic-ref" });
        }
        let beginning = namespace(owner);
        let kept = std::fs::read_to_string(self.path.join(format!("{beginning}HEAD")));
        if kept.is_ok_and(|kept| kept.trim_end() == format!("ref: {beginning}{branch}")) {
            return Ok(());
        }
        let mut command = self.git(None);
        let (head, branch) = (format!("{beginning}HEAD"), format!("{beginning}{branch}"));
        run("symbolic-ref", with(&mut command, &["symbolic-ref", &head, &branch]), &[]).map(drop)
    }
}
