//! Where a push lands before it is known whether it is allowed: a repository of its own, which goes with everything in it.

use crate::command::{GitError, GitLimits, git, run, with};
use model::need::Oid;
use std::collections::BTreeMap;
use std::process::Command;
use tempfile::TempDir;

/// A place for one push.
#[derive(Debug)]
pub struct Staging {
    pub(crate) folder: TempDir,
    pub(crate) limits: GitLimits,
}

impl Staging {
    /// The command that receives the push: it checks objects and whether they are complete.
    pub fn receive_pack(&self) -> Command {
        let mut command = git(self.folder.path(), &self.limits);
        with(&mut command, &["receive-pack", "--stateless-rpc"]).arg(self.folder.path());
        command
    }

    /// The refs as the push left them.
    pub fn refs(&self) -> Result<BTreeMap<String, Oid>, GitError> {
        let mut command = git(self.folder.path(), &self.limits);
        let told =
            run("for-each-ref", with(&mut command, &["for-each-ref", "--format=%(objectname) %(refname)"]), &[])?;
        let mut refs = BTreeMap::new();
        for line in String::from_utf8_lossy(&told).lines() {
            let (oid, name) = line.split_once(' ').ok_or(GitError::Answer { what: "for-each-ref" })?;
            let mut bytes = [0; 20];
            hex::decode_to_slice(oid, &mut bytes).map_err(|_| GitError::Answer { what: "for-each-ref" })?;
            refs.insert(name.to_owned(), bytes);
        }
        Ok(refs)
    }
}
