//! Keeps object stores small: what no ref reaches goes, many packs become one, and stores of nobody are deleted.

use super::service::{GitFailure, GitService, GitWake};
use crate::locks;
use crate::nostr::NoteAbsent;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use git::{ObjectStore, StoreName};
use model::nostr::AddressName;
use model::{Nanos, NostrKey};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::time::Duration;

/// From so many packs on they become one.
const PACKS_MAX: usize = 24;
/// How often all stores are looked at.
const LOOK: Duration = Duration::from_secs(600);
/// Between two times that a store is repacked.
const REPACK_NANOS: u64 = 600 * Nanos::SECOND;
/// Rows of objects that are looked at in one go.
const OBJECTS_MAX: usize = 1024;

/// How long it waits when somebody is at a store.
const AFTER_BUSY: Duration = Duration::from_secs(1);

/// What came of looking at a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Collected {
    Done,
    /// Somebody was at it, or its refs are to be looked at.
    Busy,
    /// It was repacked lately.
    Later,
}

/// Who is at which object store.
#[derive(Debug, Default)]
pub(super) struct StoreLock {
    /// Pushes and refs share it, and what deletes objects has it alone.
    pub(super) objects: RwLock<()>,
    /// Packs are taken over one by one, so that each is counted before the next.
    pub(super) adopting: Mutex<()>,
}

impl StoreLock {
    /// Shares the objects with pushes, unless somebody is about to delete some. Whoever shares them already has it.
    pub(super) fn try_share(&self, is_shared: bool) -> Option<Option<RwLockReadGuard<'_, ()>>> {
        match self.objects.try_read() {
            _ if is_shared => Some(None),
            Ok(shared) => Some(Some(shared)),
            // Nothing in it can be half changed: it guards files.
            Err(TryLockError::Poisoned(poisoned)) => Some(Some(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Has the objects alone, unless somebody is at them.
    fn try_alone(&self) -> Option<RwLockWriteGuard<'_, ()>> {
        match self.objects.try_write() {
            Ok(alone) => Some(alone),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// The locks of all object stores.
#[derive(Debug)]
pub(super) struct StoreLocks {
    locks: Mutex<BTreeMap<StoreName, Arc<StoreLock>>>,
    /// Those in which there may be something that no ref reaches.
    noted: Mutex<BTreeSet<StoreName>>,
    wakes: Sender<GitWake>,
}

impl StoreLocks {
    pub(super) fn new(wakes: Sender<GitWake>) -> StoreLocks {
        StoreLocks { locks: Mutex::default(), noted: Mutex::default(), wakes }
    }

    pub(super) fn of(&self, name: StoreName) -> Arc<StoreLock> {
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
    pub(super) fn keep_small(&self, woken: &Receiver<GitWake>, aligner: &Sender<GitWake>) {
        let mut repacked = BTreeMap::new();
        loop {
            let wait = match self.collect(&mut repacked, aligner) {
                Ok(Collected::Busy) => AFTER_BUSY,
                Ok(Collected::Done | Collected::Later) => LOOK,
                Err(why) => {
                    tracing::warn!(%why, "git repositories could not be made smaller");
                    LOOK
                }
            };
            match woken.recv_timeout(wait) {
                Ok(GitWake::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(GitWake::Commit) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Looks at all stores. One that fails does not stop the others. Says whether somebody was at one of them.
    fn collect(
        &self,
        repacked: &mut BTreeMap<StoreName, Nanos>,
        aligner: &Sender<GitWake>,
    ) -> Result<Collected, GitFailure> {
        let mut collected = Collected::Done;
        let noted = std::mem::take(&mut *locks::lock(&self.stores.noted));
        for name in self.folder.names()? {
            match self.collect_one(name, noted.contains(&name), repacked) {
                Ok(Collected::Done) => {}
                Ok(left) => {
                    // It is looked at again, if only because it was noted.
                    if noted.contains(&name) {
                        locks::lock(&self.stores.noted).insert(name);
                    }
                    collected = if left == Collected::Busy { left } else { collected };
                }
                Err(why) => tracing::warn!(%why, store = ?name, "a git store could not be made smaller"),
            }
            // Refs of this store may have waited for it.
            let _ = aligner.try_send(GitWake::Commit);
        }
        Ok(collected)
    }

    /// Deletes a store of nobody, or repacks one that has grown or lost refs, but not too often.
    fn collect_one(
        &self,
        name: StoreName,
        is_noted: bool,
        repacked: &mut BTreeMap<StoreName, Nanos>,
    ) -> Result<Collected, GitFailure> {
        let (store, lock, now) = (self.folder.store(name), self.stores.of(name), self.node.now());
        // Whoever pushes, or makes a backup, is not waited for: others would have to wait for us then.
        let Some(_alone) = lock.try_alone() else { return Ok(Collected::Busy) };
        let all = self.node.snapshot()?.git_repositories()?;
        let users: Vec<_> = all.into_iter().filter(|repository| repository.store == name.0).collect();
        if users.is_empty() {
            store.delete()?;
            return Ok(Collected::Done);
        }
        if !is_noted && store.pack_count()? < PACKS_MAX {
            return Ok(Collected::Done);
        }
        if repacked.get(&name).is_some_and(|at| at.plus(REPACK_NANOS) > now) {
            return Ok(Collected::Later);
        }
        for user in users {
            if !self.note_absent(&store, user.owner, AddressName::of(&user.identifier))? {
                return Ok(Collected::Busy);
            }
        }
        repacked.insert(name, now);
        store.repack()?;
        Ok(Collected::Done)
    }

    /// Forgets objects that no ref of a repository reaches, before they go. Says whether they may.
    pub(super) fn note_absent(
        &self,
        store: &ObjectStore,
        owner: NostrKey,
        name: AddressName,
    ) -> Result<bool, GitFailure> {
        let mut after = None;
        loop {
            let oids = self.node.snapshot()?.present_objects(&owner, &name, after, OBJECTS_MAX)?;
            let is_last = oids.len() < OBJECTS_MAX;
            after = oids.last().copied();
            let asked: BTreeSet<_> = oids.into_iter().collect();
            let gone: Vec<_> = asked.difference(&store.reached(&[owner].into(), &asked)?).copied().collect();
            if !self.node.ask(NoteAbsent { owner, name, oids: gone })? {
                return Ok(false);
            }
            if is_last {
                return Ok(true);
            }
        }
    }
}
