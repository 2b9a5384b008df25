//! Keeps object stores small: what no ref reaches goes, many packs become one, and stores of nobody are deleted.

use super::service::{GitFailure, GitService, GitWake};
use crate::locks;
use crate::nostr::NoteAbsent;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use git::{ObjectStore, StoreName};
use model::nostr::AddressName;
use model::{Nanos, NostrKey};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

/// From so many packs on they become one.
const PACKS_MAX: usize = 24;
/// How often all stores are looked at.
const LOOK: Duration = Duration::from_secs(600);
/// Between two times that a store is repacked.
const REPACK_NANOS: u64 = 600 * Nanos::SECOND;
/// Rows of objects that are looked at in one go.
const OBJECTS_MAX: usize = 1024;

/// Who is at which object store: pushes share it, and what deletes objects has it alone.
#[derive(Debug)]
pub(super) struct StoreLocks {
    locks: Mutex<BTreeMap<StoreName, Arc<RwLock<()>>>>,
    /// Those in which there may be something that no ref reaches.
    noted: Mutex<BTreeSet<StoreName>>,
    wakes: Sender<GitWake>,
}

impl StoreLocks {
    pub(super) fn new(wakes: Sender<GitWake>) -> StoreLocks {
        StoreLocks { locks: Mutex::default(), noted: Mutex::default(), wakes }
    }

    pub(super) fn of(&self, name: StoreName) -> Arc<RwLock<()>> {
        locks::lock(&self.locks).entry(name).or_default().clone()
    }

    /// Has a store looked at.
    pub(super) fn note(&self, name: StoreName) {
        locks::lock(&self.noted).insert(name);
        // One that waits already stands for this one, too.
        let _ = self.wakes.try_send(GitWake::Commit);
    }
}

impl GitService {
    /// The thread.
    pub(super) fn keep_small(&self, woken: &Receiver<GitWake>) {
        let mut repacked = BTreeMap::new();
        loop {
            if let Err(why) = self.collect(&mut repacked) {
                tracing::warn!(%why, "git repositories could not be made smaller");
            }
            match woken.recv_timeout(LOOK) {
                Ok(GitWake::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(GitWake::Commit) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Looks at all stores: deletes those of nobody, and repacks those that have grown or lost refs, each not too often.
    fn collect(&self, repacked: &mut BTreeMap<StoreName, Nanos>) -> Result<(), GitFailure> {
        let noted = std::mem::take(&mut *locks::lock(&self.stores.noted));
        let now = self.node.now();
        for name in self.folder.names()? {
            let store = self.folder.store(name);
            let lock = self.stores.of(name);
            let _alone = locks::write(&lock);
            let all = self.node.snapshot()?.git_repositories()?;
            let users: Vec<_> = all.into_iter().filter(|(_, _, store)| *store == name.0).collect();
            if users.is_empty() {
                store.delete()?;
            } else if noted.contains(&name) || store.pack_count()? >= PACKS_MAX {
                if repacked.get(&name).is_some_and(|at| at.plus(REPACK_NANOS) > now) {
                    locks::lock(&self.stores.noted).insert(name);
                    continue;
                }
                repacked.insert(name, now);
                store.repack()?;
                for (owner, repository, _) in users {
                    self.note_absent(&store, owner, repository)?;
                }
            }
        }
        Ok(())
    }

    /// Forgets which objects were here that are not any more.
    fn note_absent(&self, store: &ObjectStore, owner: NostrKey, name: AddressName) -> Result<(), GitFailure> {
        let mut after = None;
        loop {
            let oids = self.node.snapshot()?.present_objects(&owner, &name, after, OBJECTS_MAX)?;
            let Some(last) = oids.last() else { return Ok(()) };
            after = Some(*last);
            let asked: BTreeSet<_> = oids.into_iter().collect();
            let gone: Vec<_> = asked.difference(&store.existing(&asked)?).copied().collect();
            if !gone.is_empty() {
                self.node.ask(NoteAbsent { owner, name, oids: gone })?;
            }
        }
    }
}
