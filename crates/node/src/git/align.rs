//! Makes the refs of repositories what events say, whenever a row asks for it.

use super::refs::{differences, wanted_pull_request, wanted_refs};
use super::service::{ArrivedData, GitFailure, GitService, GitWake};
use crate::locks;
use crate::nostr::{ForgetRepository, GitArrived, NoteAligned, NotePushed};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use engine::change::RowChange;
use engine::protocol::nostr::maintainers::{announcement, confirmed};
use engine::reads::{NostrReads as _, Reads as _};
use engine::rows::Alignment;
use git::{ObjectStore, RefWrite, StoreName};
use model::NostrKey;
use model::need::Oid;
use std::collections::BTreeSet;
use std::sync::MutexGuard;
use std::time::Duration;
use store::Db;
use store::tables::Snapshot;

/// Repositories that are looked at in one go.
const ALIGNMENTS_MAX: usize = 64;
/// Rows of objects that are forgotten in one go.
const FORGOTTEN_MAX: usize = 4096;
/// How often it is looked whether a pushed commit has waited long enough.
const LOOK_AT_PUSHED: Duration = Duration::from_secs(60);
/// How long it waits after something failed.
const AFTER_FAILURE: Duration = Duration::from_secs(10);

impl GitService {
    /// Makes refs what rows ask for, until none does. One that fails does not stop the others; its row stays.
    pub fn align(&self, arrived: &mut ArrivedData) -> Result<(), GitFailure> {
        self.align_alone(&locks::lock(&self.aligning), arrived)
    }

    /// The same for who is the one that changes refs.
    pub(super) fn align_alone(&self, _: &MutexGuard<'_, ()>, arrived: &mut ArrivedData) -> Result<(), GitFailure> {
        let mut failed: BTreeSet<Alignment> = BTreeSet::new();
        loop {
            let mut asked = self.node.snapshot()?.repositories_to_align(ALIGNMENTS_MAX + failed.len())?;
            asked.retain(|(alignment, _)| !failed.contains(alignment));
            if asked.is_empty() {
                return Ok(());
            }
            let mut done = Vec::new();
            for (alignment, version) in asked {
                match self.align_one(&alignment, arrived) {
                    Ok(()) => done.push((alignment, version)),
                    Err(why) => {
                        tracing::warn!(owner = %alignment.owner, identifier = alignment.identifier, %why, "refs could not be changed");
                        arrived.errors.push(why.to_string());
                        failed.insert(alignment);
                    }
                }
            }
            self.node.ask(NoteAligned(done))?;
        }
    }

    fn align_one(&self, alignment: &Alignment, arrived: &mut ArrivedData) -> Result<(), GitFailure> {
        let (owner, identifier) = (&alignment.owner, alignment.identifier.as_str());
        let db = self.node.snapshot()?;
        let Some(announced) = announcement(&*db, owner, identifier)? else { return self.forget(alignment, arrived) };
        let maintainers = confirmed(&*db, owner, identifier)?;
        let mut has_store = false;
        for other in &maintainers {
            has_store = has_store || db.git_store(other, identifier)?.is_some();
        }
        // Nothing was ever kept of it here.
        if !has_store || !db.policy().service.is_some_and(|service| announced.lists(service)) {
            return Ok(());
        }
        drop(db);
        let (name, store) = self.store_of(owner, identifier)?;
        self.find_present(alignment, &store, &maintainers)?;
        match &alignment.pull_request {
            Some(id) => {
                let db = self.node.snapshot()?;
                let wanted = wanted_pull_request(&db, alignment, id)?;
                self.bring_objects(&db, alignment, &store, &wanted.into_iter().collect())?;
                let name = format!("refs/nostr/{id}");
                let mut current = store.refs(owner)?;
                current.retain(|other, _| *other == name);
                let wanted = wanted.map(|oid| (name, oid)).into_iter().collect();
                store.change_refs(owner, &differences(&current, &wanted, arrived))?;
            }
            None => self.align_branches(alignment, (name, &store), arrived)?,
        }
        arrived.repositories_synced += 1;
        Ok(())
    }

    /// Branches, tags and `HEAD`. What is here because a co-maintainer was given it is here for this one, too.
    fn align_branches(
        &self,
        alignment: &Alignment,
        (name, store): (StoreName, &ObjectStore),
        arrived: &mut ArrivedData,
    ) -> Result<(), GitFailure> {
        let (owner, identifier) = (&alignment.owner, alignment.identifier.as_str());
        let db = self.node.snapshot()?;
        let mut wanted = wanted_refs(&db, owner, identifier)?;
        let oids: BTreeSet<Oid> = wanted.refs.values().copied().collect();
        let existing = self.bring_objects(&db, alignment, store, &oids)?;
        // What was deleted with an earlier announcement has to come again.
        wanted.refs.retain(|_, oid| existing.contains(oid));
        let mut current = store.refs(owner)?;
        current.retain(|name, _| !name.starts_with("refs/nostr/"));
        let changes = differences(&current, &wanted.refs, arrived);
        store.change_refs(owner, &changes)?;
        let left: BTreeSet<Oid> = changes.iter().filter_map(|change| current.get(&change.name).copied()).collect();
        if store.reached(&[*owner].into(), &left)? != left {
            self.stores.note(name);
        }
        if let Some(head) = wanted.head {
            store.set_head(owner, &head)?;
        }
        let present: BTreeSet<Oid> = wanted.refs.into_values().collect();
        let is_authorised = !present.is_empty();
        let mut is_known = !is_authorised || db.has_git_data(owner, identifier)?;
        for oid in &present {
            is_known = is_known && db.is_git_present(owner, identifier, oid)?;
        }
        if !is_known {
            let (owners, identifier) = ([*owner].into(), alignment.identifier.clone());
            arrived.released += self.node.ask(GitArrived { owners, identifier, present, is_authorised })?;
        }
        Ok(())
    }

    /// What events wait for may be here already, as part of what refs reach.
    fn find_present(
        &self,
        alignment: &Alignment,
        store: &ObjectStore,
        maintainers: &BTreeSet<NostrKey>,
    ) -> Result<(), GitFailure> {
        let missing = self.missing_objects(&alignment.owner, &alignment.identifier)?;
        if missing.is_empty() {
            return Ok(());
        }
        let present = store.reached(maintainers, &missing)?;
        if !present.is_empty() {
            let (owners, identifier) = ([alignment.owner].into(), alignment.identifier.clone());
            self.node.ask(GitArrived { owners, identifier, present, is_authorised: false })?;
        }
        Ok(())
    }

    /// Where co-maintainers began apart, what one of them was given is copied for the other. Which of these objects are
    /// here then.
    fn bring_objects(
        &self,
        db: &Db<Snapshot>,
        alignment: &Alignment,
        store: &ObjectStore,
        oids: &BTreeSet<Oid>,
    ) -> Result<BTreeSet<Oid>, GitFailure> {
        let mut existing = store.existing(oids)?;
        let missing: BTreeSet<Oid> = oids.difference(&existing).copied().collect();
        if missing.is_empty() {
            return Ok(existing);
        }
        for other in confirmed(db, &alignment.owner, &alignment.identifier)? {
            let Some(name) = db.git_store(&other, &alignment.identifier)? else { continue };
            let other = self.folder.store(StoreName(name));
            if other.exists() {
                for oid in other.existing(&missing)? {
                    store.copy_from(&other, &oid)?;
                    existing.insert(oid);
                }
            }
        }
        Ok(existing)
    }

    /// A repository that is not announced any more goes: its rows, its refs, and its objects when nobody else has them.
    fn forget(&self, alignment: &Alignment, arrived: &mut ArrivedData) -> Result<(), GitFailure> {
        let Alignment { owner, identifier, .. } = alignment;
        let kept = self.node.snapshot()?.git_store(owner, identifier)?;
        let Some(name) = kept else { return Ok(()) };
        let (owner, objects_max) = (*owner, FORGOTTEN_MAX);
        while !self.node.ask(ForgetRepository { owner, identifier: identifier.clone(), objects_max })? {}
        let store = self.folder.store(StoreName(name));
        // Otherwise it was announced again meanwhile.
        if self.node.snapshot()?.git_store(&owner, identifier)?.is_none() && store.exists() {
            let refs = store.refs(&owner)?;
            arrived.refs_deleted += refs.len();
            let gone = refs.into_keys().map(|name| RefWrite { name, to: None });
            store.change_refs(&owner, &gone.collect::<Vec<_>>())?;
            self.stores.note(StoreName(name));
        }
        Ok(())
    }

    /// The thread: whenever something was committed, and at the start.
    pub(super) fn follow_rows(&self, woken: &Receiver<GitWake>) {
        let mut wait = Duration::ZERO;
        loop {
            match woken.recv_timeout(wait) {
                Ok(GitWake::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(GitWake::Commit) | Err(RecvTimeoutError::Timeout) => {}
            }
            let done = self.forget_pushed().and_then(|()| {
                let mut arrived = ArrivedData::default();
                self.align(&mut arrived)?;
                Ok(arrived.errors.is_empty())
            });
            wait = match done {
                Ok(true) => LOOK_AT_PUSHED,
                Ok(false) => AFTER_FAILURE,
                Err(why) => {
                    tracing::warn!(%why, "git repositories could not be looked after");
                    AFTER_FAILURE
                }
            };
        }
    }

    /// Commits whose events came are theirs; those that have waited long enough go.
    fn forget_pushed(&self) -> Result<(), GitFailure> {
        let db = self.node.snapshot()?;
        let now = self.node.now();
        let mut over = Vec::new();
        for pushed in db.pushed_commits()? {
            let is_applied = match db.seq(&pushed.pull_request.short())? {
                Some(seq) => db.event(seq)?.is_some_and(|row| row.is_applied()),
                None => false,
            };
            if is_applied || pushed.until <= now {
                over.push(pushed);
            }
        }
        drop(db);
        if over.is_empty() { Ok(()) } else { Ok(self.node.ask(NotePushed(RowChange::Remove, over))?) }
    }
}
