//! Git repositories in backups, and what is done about them where one was restored.

use super::bans::pull_requests_of;
use super::service::{GitFailure, GitService};
use super::upkeep::StoreLocks;
use crate::locks;
use crate::nostr::{ForgetObjects, LookAtRefs};
use engine::rows::Alignment;
use git::{GitError, GitFolder, StoreName};
use model::nostr::AddressName;
use std::collections::BTreeSet;
use std::io::{self, Read as _};
use store::maintenance::backup::{BackupError, ExtraFiles};
use store::nostr::KeptRepository;

/// Rows of objects that are looked at in one go.
const OBJECTS_MAX: usize = 1024;
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
        let store = self.folder.store(name);
        // It went, or lost its last ref, since the names were listed: nothing is missing then.
        if !store.has_refs().unwrap_or(true) {
            return Ok(true);
        }
        match store.read_bundle::<CopyError>(&mut |bytes| each(bytes).map_err(CopyError::Backup)) {
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
        let mut unpacked = BTreeSet::new();
        for name in self.folder.bundled()? {
            match self.folder.unpack_bundle(name) {
                Ok(()) => drop(unpacked.insert(name)),
                Err(why) => {
                    tracing::error!(%why, store = ?name, "a git store cannot be restored; its bundle is set aside");
                    self.folder.set_bundle_aside(name)?;
                }
            }
        }
        let db = self.node.snapshot()?;
        let mut kept = db.git_repositories()?;
        // Where nothing was pushed yet, nothing is lost.
        for index in (0..kept.len()).rev() {
            if db.present_objects(&kept[index].owner, &AddressName::of(&kept[index].identifier), None, 1)?.is_empty() {
                kept.swap_remove(index);
            }
        }
        drop(db);
        // Before any of them is made again.
        let is_lost = |kept: &KeptRepository| !self.folder.store(StoreName(kept.store)).exists();
        let lost: BTreeSet<StoreName> =
            kept.iter().filter(|kept| is_lost(kept)).map(|kept| StoreName(kept.store)).collect();
        if !lost.is_empty() {
            tracing::error!(stores = lost.len(), "objects of git repositories are gone; pushes bring them again");
        }
        let kept = kept.into_iter().filter(|kept| {
            let name = StoreName(kept.store);
            unpacked.contains(&name) || lost.contains(&name)
        });
        for kept in kept {
            self.look_at_restored(&kept)?;
        }
        for name in unpacked {
            self.folder.delete_bundle(name)?;
        }
        Ok(())
    }

    /// Forgets what a repository lacks, and has all of its refs looked at: they may be newer than its rows.
    fn look_at_restored(&self, kept: &KeptRepository) -> Result<(), GitFailure> {
        let store = self.folder.store(StoreName(kept.store));
        store.create()?;
        let (owner, name, mut after) = (kept.owner, AddressName::of(&kept.identifier), None);
        loop {
            let oids = self.node.snapshot()?.present_objects(&owner, &name, after, OBJECTS_MAX)?;
            after = oids.last().copied();
            let is_last = oids.len() < OBJECTS_MAX;
            let oids: BTreeSet<_> = oids.into_iter().collect();
            let gone: Vec<_> = oids.difference(&store.reached(&[owner].into(), &oids)?).copied().collect();
            self.node.ask(ForgetObjects { owner, name, oids: gone })?;
            if is_last {
                break;
            }
        }
        let pull_requests = pull_requests_of(store.refs(&owner)?.into_keys()).into_iter().map(Some);
        let alignment = |pull_request| Alignment { owner, identifier: kept.identifier.clone(), pull_request };
        self.node.ask(LookAtRefs([None].into_iter().chain(pull_requests).map(alignment).collect()))?;
        Ok(())
    }
}
