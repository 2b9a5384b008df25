//! Object stores as one file each: written for backups, and unpacked where a backup was restored.

use crate::command::{GitError, bound_time, git, run, with};
use crate::folder::{GitFolder, ObjectStore, StoreName, write_bare};
use model::NostrKey;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// What is read of a bundle at a time.
const CHUNK_BYTES: usize = 256 * 1024;

impl GitFolder {
    /// The bundle of a store that was restored and not unpacked yet.
    pub fn bundle_path(&self, name: StoreName) -> PathBuf {
        self.path_of(name, "bundle")
    }

    /// Unpacks the bundle of a store, repeatably: it goes when whoever asked is done with it. What was there before is not
    /// used by anybody yet.
    pub fn unpack_bundle(&self, name: StoreName) -> Result<(), GitError> {
        let store = self.store(name);
        store.delete()?;
        store.create()?;
        let mut command = store.git(None);
        with(&mut command, &["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--"]);
        run("fetch", command.arg(self.bundle_path(name)).arg("refs/*:refs/*"), &[])?;
        // What `HEAD` of an owner pointed at follows from events; a bundle has it as a ref like any other.
        let is_head = |name: &String| name.starts_with("refs/namespaces/") && name.ends_with("/HEAD");
        let heads = store.all_ref_names()?.into_iter().filter(is_head);
        let input: String = heads.map(|name| format!("delete {name}\0\0")).collect();
        let mut command = store.git(None);
        run("update-ref", with(&mut command, &["update-ref", "--no-deref", "-z", "--stdin"]), input.as_bytes())
            .map(drop)
    }

    /// Keeps a bundle that cannot be unpacked, under a name by which nobody looks for it.
    pub fn set_bundle_aside(&self, name: StoreName) -> Result<(), GitError> {
        Ok(std::fs::rename(self.bundle_path(name), self.path_of(name, "damaged"))?)
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

    /// Writes the refs of one owner, and what they reach, to a file from which `git clone` makes a copy. Says how many refs it
    /// has; without any there is nothing to write.
    pub fn write_clonable(&self, owner: &NostrKey, head: Option<&str>, file: &Path) -> Result<usize, GitError> {
        let refs = self.refs(owner)?;
        if refs.is_empty() {
            return Ok(0);
        }
        // A repository of its own, with the objects of this one, in which the refs have their own names.
        let view = tempfile::tempdir()?;
        write_bare(view.path(), Some(&self.path.join("objects")))?;
        let mut packed = String::new();
        for (name, oid) in &refs {
            packed.push_str(&format!("{} {name}\n", hex::encode(oid)));
        }
        std::fs::write(view.path().join("packed-refs"), packed)?;
        if let Some(head) = head.filter(|head| refs.contains_key(*head)) {
            std::fs::write(view.path().join("HEAD"), format!("ref: {head}\n"))?;
        }
        let mut command = git(view.path());
        with(&mut command, &["-c", "pack.threads=1", "bundle", "create", "--quiet"]).arg(file);
        run("bundle", with(&mut command, &["--all"]), &[])?;
        Ok(refs.len())
    }

    /// What `git fsck` finds wrong with the store, short; nothing if it is whole.
    pub fn find_damage(&self) -> Result<Option<String>, GitError> {
        let mut command = self.git(None);
        with(&mut command, &["fsck", "--no-dangling", "--no-progress"]);
        let output = crate::command::output(&mut command, &[])?;
        if output.status.success() {
            return Ok(None);
        }
        // It was ended, and has said nothing of the store.
        if output.status.code().is_none() {
            return Err(GitError::Failed { what: "fsck", why: "it took too long".to_owned() });
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
