//! Object stores as one file each: written for backups, and unpacked where a backup was restored.

use crate::command::{GitError, bound_time, run, with};
use crate::folder::{GitFolder, ObjectStore, StoreName};
use std::io::Read as _;
use std::path::PathBuf;
use std::process::Stdio;

/// What is read of a bundle at a time.
const CHUNK_BYTES: usize = 256 * 1024;

impl GitFolder {
    /// The bundle of a store that was restored and not unpacked yet.
    pub fn bundle_path(&self, name: StoreName) -> PathBuf {
        self.path_of(name, "bundle")
    }

    /// Unpacks the bundles that are there, repeatably: they go when whoever asked is done with them.
    pub fn unpack_bundles(&self) -> Result<Vec<StoreName>, GitError> {
        let names = self.names_of("bundle")?;
        for name in &names {
            let store = self.store(*name);
            store.create()?;
            let mut command = store.git(None);
            with(&mut command, &["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--force", "--"]);
            run("fetch", command.arg(self.bundle_path(*name)).arg("refs/*:refs/*"), &[])?;
        }
        Ok(names)
    }

    /// Forgets a bundle that was unpacked.
    pub fn delete_bundle(&self, name: StoreName) -> Result<(), GitError> {
        Ok(std::fs::remove_file(self.bundle_path(name))?)
    }
}

impl ObjectStore {
    /// Whether it has any refs. One without has nothing that has to be kept.
    pub fn has_refs(&self) -> Result<bool, GitError> {
        Ok(self.exists() && !self.tips()?.is_empty())
    }

    /// Hands all refs and what they reach to a function, as a git bundle. Says whether all of it could be read.
    pub fn read_bundle<E: From<GitError>>(&self, each: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<bool, E> {
        let mut command = self.git(None);
        with(&mut command, &["-c", "pack.threads=1", "bundle", "create", "--quiet", "-", "--all"]);
        let mut child = command.stderr(Stdio::null()).spawn().map_err(GitError::Missing)?;
        bound_time(child.id());
        let mut chunk = vec![0; CHUNK_BYTES];
        let copied = loop {
            let Some(stdout) = child.stdout.as_mut() else { break Ok(()) };
            match stdout.read(&mut chunk).map_err(GitError::Folder) {
                Ok(0) => break Ok(()),
                Ok(length) => {
                    if let Err(why) = each(&chunk[..length]) {
                        break Err(why);
                    }
                }
                Err(why) => break Err(why.into()),
            }
        };
        if copied.is_err() {
            let _ = child.kill();
        }
        let status = child.wait().map_err(GitError::Folder)?;
        copied.map(|()| status.success())
    }

    /// What `git fsck` finds wrong with the store, short; nothing if it is whole.
    pub fn find_damage(&self) -> Result<Option<String>, GitError> {
        let mut command = self.git(None);
        with(&mut command, &["fsck", "--no-dangling", "--no-progress"]);
        let output = crate::command::output(&mut command, &[])?;
        if output.status.success() {
            return Ok(None);
        }
        Ok(Some(crate::command::told(&[output.stdout, output.stderr].concat())))
    }

    /// Copies one ref of a damaged store, with what it reaches, under the same name.
    pub fn copy_ref(&self, other: &ObjectStore, name: &str) -> Result<(), GitError> {
        let mut command = self.git(None);
        with(&mut command, &["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--force", "--"]);
        run("fetch", command.arg(&other.path).arg(format!("{name}:{name}")), &[]).map(drop)
    }

    /// The names of all refs, of whichever owner.
    pub fn all_ref_names(&self) -> Result<Vec<String>, GitError> {
        Ok(self.refs_under("refs/")?.into_iter().map(|(name, _)| name).collect())
    }
}
