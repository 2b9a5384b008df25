//! Git repositories in backups, and what is done about them where one was restored.

use super::service::{GitFailure, GitService};
use super::upkeep::StoreLocks;
use crate::locks;
use crate::nostr::LookAtRefs;
use engine::rows::Alignment;
use git::{GitError, GitFolder, StoreName};
use model::nostr::AddressName;
use std::collections::BTreeSet;
use std::io::{self, Read as _};
use store::maintenance::backup::{BackupError, ExtraFiles};

/// What is read of a file at a time.
const CHUNK_BYTES: usize = 256 * 1024;

/// The object stores of a folder, each as a git bundle. Where the node runs, nothing is deleted from a store meanwhile.
#[derive(Debug)]
pub struct RepositoryFiles<'a> {
    folder: &'a GitFolder,
    stores: Option<&'a StoreLocks>,
}

impl<'a> RepositoryFiles<'a> {
    /// Those of a node that does not run.
    pub fn of_folder(folder: &'a GitFolder) -> RepositoryFiles<'a> {
        RepositoryFiles { folder, stores: None }
    }
}

impl GitService {
    /// Everything that a backup has to have beside the database.
    pub fn files_to_back_up(&self) -> RepositoryFiles<'_> {
        RepositoryFiles { folder: &self.folder, stores: Some(&self.stores) }
    }
}

impl ExtraFiles for RepositoryFiles<'_> {
    fn names(&self) -> io::Result<Vec<String>> {
        let list = || -> Result<BTreeSet<StoreName>, GitError> {
            let mut names: BTreeSet<StoreName> = self.folder.bundled()?.into_iter().collect();
            for name in self.folder.names()? {
                // One whose refs cannot be read is damaged, and named so when it is read.
                if self.folder.store(name).has_refs().unwrap_or(true) {
                    names.insert(name);
                }
            }
            Ok(names)
        };
        let names = list().map_err(io::Error::other)?;
        Ok(names.into_iter().map(|name| format!("git/{}.bundle", hex::encode(name.0))).collect())
    }

    fn read(&self, name: &str, each: &mut dyn FnMut(&[u8]) -> Result<(), BackupError>) -> Result<bool, BackupError> {
        let mut bytes = [0; 16];
        let stem = name.strip_prefix("git/").and_then(|rest| rest.strip_suffix(".bundle")).unwrap_or_default();
        if hex::decode_to_slice(stem, &mut bytes).is_err() {
            return Ok(false);
        }
        let name = StoreName(bytes);
        let lock = self.stores.map(|stores| stores.of(name));
        let _nothing_goes = lock.as_ref().map(|lock| locks::read(&lock.objects));
        let waiting = self.folder.bundle_path(name);
        if waiting.exists() {
            return copy_file(&waiting, each);
        }
        match self.folder.store(name).read_bundle::<CopyError>(&mut |bytes| each(bytes).map_err(CopyError::Backup)) {
            Ok(is_whole) => Ok(is_whole),
            Err(CopyError::Backup(why)) => Err(why),
            Err(CopyError::Git(why)) => {
                tracing::warn!(%why, "a git store could not be read");
                Ok(false)
            }
        }
    }
}

/// Why a bundle was not copied to its end.
enum CopyError {
    Backup(BackupError),
    Git(GitError),
}

impl From<GitError> for CopyError {
    fn from(why: GitError) -> CopyError {
        CopyError::Git(why)
    }
}

fn copy_file(
    path: &std::path::Path,
    each: &mut dyn FnMut(&[u8]) -> Result<(), BackupError>,
) -> Result<bool, BackupError> {
    let Ok(mut file) = std::fs::File::open(path) else { return Ok(false) };
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok(true),
            Ok(length) => each(&chunk[..length])?,
            Err(_) => return Ok(false),
        }
    }
}

impl GitService {
    /// At the start, before anything else: what was restored is unpacked, and of stores that were, or are not there, what
    /// refs do not reach is forgotten, so that it is asked for again.
    pub(super) fn unpack_restored(&self) -> Result<(), GitFailure> {
        let unpacked = self.folder.unpack_bundles()?;
        let kept = self.node.snapshot()?.git_repositories()?;
        let (mut looked_at, mut lost) = (Vec::new(), 0);
        for kept in kept {
            let (name, store) = (StoreName(kept.store), self.folder.store(StoreName(kept.store)));
            if !unpacked.contains(&name) && store.exists() {
                continue;
            }
            lost += usize::from(!store.exists());
            store.create()?;
            // What rows ask for is done first: objects are not forgotten while refs are to be looked at.
            self.align(&mut Default::default())?;
            self.note_absent(&store, kept.owner, AddressName::of(&kept.identifier))?;
            looked_at.push(Alignment { owner: kept.owner, identifier: kept.identifier, pull_request: None });
        }
        if lost > 0 {
            tracing::error!(lost, "objects of git repositories are gone; pushes bring them again");
        }
        if !looked_at.is_empty() {
            self.node.ask(LookAtRefs(looked_at))?;
        }
        for name in unpacked {
            self.folder.delete_bundle(name)?;
        }
        Ok(())
    }
}
