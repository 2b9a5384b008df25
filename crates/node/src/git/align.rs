//! Makes the refs of repositories what events say, whenever a row asks for it.

use super::arrival::ArrivedData;
use super::refs::{contributed_commit, differences, wanted_pull_request, wanted_refs};
use super::service::{GitFailure, GitService, GitWake, HostedRepository};
use crate::locks;
use crate::nostr::{ForgetRepository, GitArrived, NoteAligned};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use engine::protocol::nostr::maintainers::{announcement, confirmed};
use engine::reads::NostrReads as _;
use engine::rows::Alignment;
use git::{ObjectStore, RefWrite, StoreName};
use model::NostrKey;
use model::need::Oid;
use model::nostr::{AddressName, Announcement, NostrId, is_contribution};
use std::collections::BTreeSet;
use std::sync::MutexGuard;
use std::time::Duration;
use store::Db;
use store::tables::Snapshot;

/// Repositories that are looked at in one go.
const ALIGNMENTS_MAX: usize = 64;
/// How often a push looks whether more has to be done for its repository before it leaves that to the thread.
const PASSES_MAX: usize = 8;
/// Rows of objects that are forgotten in one go.
const FORGOTTEN_MAX: usize = 4096;
/// How often it is looked whether a pushed commit has waited long enough.
const LOOK_AT_PUSHED: Duration = Duration::from_secs(60);
/// How long it waits after something failed.
const AFTER_FAILURE: Duration = Duration::from_secs(10);

impl GitService {
    /// Makes refs what rows ask for, until none does. One that fails does not stop the others; its row stays.
    pub fn align(&self, arrived: &mut ArrivedData) -> Result<(), GitFailure> {
        let mut left: BTreeSet<Alignment> = BTreeSet::new();
        loop {
            // Others have their turn in between.
            let alone = locks::lock(&self.aligning);
            let mut asked = self.node.snapshot()?.repositories_to_align(ALIGNMENTS_MAX + left.len())?;
            asked.retain(|(alignment, _)| !left.contains(alignment));
            if asked.is_empty() {
                return Ok(());
            }
            left.extend(self.align_some(&alone, asked, None, arrived)?);
        }
    }

    /// Makes the refs of these owners what rows ask for, as far as they ask now. The caller is at the object store.
    pub(super) fn align_owners(
        &self,
        alone: &MutexGuard<'_, ()>,
        owners: &BTreeSet<NostrKey>,
        identifier: &str,
        held: StoreName,
        arrived: &mut ArrivedData,
    ) -> Result<(), GitFailure> {
        let name = AddressName::of(identifier);
        for _ in 0..PASSES_MAX {
            let mut asked = Vec::new();
            let db = self.node.snapshot()?;
            for owner in owners {
                asked.extend(db.alignments_of(owner, &name, ALIGNMENTS_MAX)?);
            }
            drop(db);
            if asked.is_empty() || !self.align_some(alone, asked, Some(held), arrived)?.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Which of them could not be done.
    fn align_some(
        &self,
        _: &MutexGuard<'_, ()>,
        asked: Vec<(Alignment, u64)>,
        held: Option<StoreName>,
        arrived: &mut ArrivedData,
    ) -> Result<Vec<Alignment>, GitFailure> {
        let (mut done, mut left) = (Vec::new(), Vec::new());
        for (alignment, version) in asked {
            match self.align_one(&alignment, held, arrived) {
                Ok(true) => done.push((alignment, version)),
                Ok(false) => left.push(alignment),
                Err(why) => {
                    tracing::warn!(owner = %alignment.owner, identifier = alignment.identifier, %why, "refs could not be changed");
                    arrived.errors.push(why.to_string());
                    left.push(alignment);
                }
            }
        }
        self.node.ask(NoteAligned(done))?;
        Ok(left)
    }

    /// Says whether it is done; not if the objects are being repacked, after which it is looked at again.
    fn align_one(
        &self,
        alignment: &Alignment,
        held: Option<StoreName>,
        arrived: &mut ArrivedData,
    ) -> Result<bool, GitFailure> {
        if is_contribution(&alignment.identifier) {
            return self.align_contribution(alignment, held, arrived);
        }
        let (owner, identifier) = (&alignment.owner, alignment.identifier.as_str());
        let db = self.node.snapshot()?;
        let announced = announcement(&*db, owner, identifier)?;
        let maintainers = confirmed(&*db, owner, identifier)?;
        let own = db.git_store(owner, identifier)?;
        let mut has_store = own.is_some();
        for other in &maintainers {
            has_store = has_store || db.git_store(other, identifier)?.is_some();
        }
        let lists = |own: Announcement| db.policy().service.is_some_and(|service| own.lists(service));
        let is_gone = announced.is_none() || self.access.is_banned(owner, identifier);
        // Nothing was ever kept of it here, or it is elsewhere now.
        if !has_store
            || !is_gone && !self.access.is_archived(owner, identifier) && !announced.is_some_and(lists)
            || is_gone && own.is_none()
        {
            return Ok(true);
        }
        drop(db);
        let name = match own {
            Some(name) => StoreName(name),
            None => self.store_of(owner, identifier)?.0,
        };
        let lock = self.stores.of(name);
        let Some(_nothing_goes) = lock.try_share(held == Some(name)) else { return Ok(false) };
        if is_gone {
            return self.forget(alignment, name, arrived).map(|()| true);
        }
        let (_, store) = self.store_of(owner, identifier)?;
        self.find_present(alignment, &store, &maintainers)?;
        match &alignment.pull_request {
            Some(id) => self.align_pull_request(alignment, id, (name, &store), arrived)?,
            None => self.align_branches(alignment, (name, &store), arrived)?,
        }
        arrived.repositories_synced += 1;
        Ok(true)
    }

    /// The ref of a pull request in its contributor's own repository, which goes with its last ref.
    fn align_contribution(
        &self,
        alignment: &Alignment,
        held: Option<StoreName>,
        arrived: &mut ArrivedData,
    ) -> Result<bool, GitFailure> {
        let (owner, identifier) = (&alignment.owner, alignment.identifier.as_str());
        let db = self.node.snapshot()?;
        let is_wanted = match &alignment.pull_request {
            Some(id) => wanted_pull_request(&db, alignment, id)?.is_some(),
            None => false,
        };
        // Nothing was ever kept of it here.
        if !is_wanted && db.git_store(owner, identifier)?.is_none() {
            return Ok(true);
        }
        drop(db);
        let name = StoreName::of(owner, identifier);
        let lock = self.stores.of(name);
        let Some(_nothing_goes) = lock.try_share(held == Some(name)) else { return Ok(false) };
        let (_, store) = self.store_of(owner, identifier)?;
        self.find_present(alignment, &store, &[*owner].into())?;
        if let Some(id) = &alignment.pull_request {
            self.align_pull_request(alignment, id, (name, &store), arrived)?;
        }
        arrived.repositories_synced += 1;
        if store.refs(owner)?.is_empty() || self.access.is_banned(owner, identifier) {
            self.forget(alignment, name, arrived)?;
        }
        Ok(true)
    }

    /// What a contributor pushed to a repository of their own is copied into the announced one that it is for.
    fn mirror_contribution(
        &self,
        alignment: &Alignment,
        id: &NostrId,
        (name_of_store, store): (StoreName, &ObjectStore),
        arrived: &mut ArrivedData,
    ) -> Result<(), GitFailure> {
        let db = self.node.snapshot()?;
        let Some((contributor, from, oid)) = contributed_commit(&db, alignment, id)? else { return Ok(()) };
        let Some(name) = db.git_store(&contributor, &from)? else { return Ok(()) };
        drop(db);
        let other = self.folder.store(StoreName(name));
        let (owner, identifier, store_name) = (alignment.owner, alignment.identifier.clone(), name_of_store);
        let announced = HostedRepository { owner, identifier, name: store_name, store: store.clone() };
        if !other.exists() || other.bytes()? > self.room_of(&announced)? {
            tracing::warn!(owner = %alignment.owner, identifier = alignment.identifier, %id, "no room for a pull request");
            return Ok(());
        }
        store.copy_from(&other, &oid)?;
        let (owners, identifier) = ([alignment.owner].into(), alignment.identifier.clone());
        let (present, is_authorised, looks_anyway, pull_requests) = ([oid].into(), false, false, BTreeSet::new());
        let asked = GitArrived { owners, identifier, present, is_authorised, looks_anyway, pull_requests };
        let released = self.node.ask(asked)?;
        arrived.add(&released);
        Ok(())
    }

    /// The ref of a pull request.
    fn align_pull_request(
        &self,
        alignment: &Alignment,
        id: &NostrId,
        (name, store): (StoreName, &ObjectStore),
        arrived: &mut ArrivedData,
    ) -> Result<(), GitFailure> {
        let db = self.node.snapshot()?;
        let is_banned = self.is_of_banned_author(&db, id)?;
        drop(db);
        if !is_contribution(&alignment.identifier) && !is_banned {
            self.mirror_contribution(alignment, id, (name, store), arrived)?;
        }
        let db = self.node.snapshot()?;
        let wanted = wanted_pull_request(&db, alignment, id)?.filter(|_| !is_banned);
        let existing = self.bring_objects(&db, alignment, store, &wanted.into_iter().collect())?;
        let ref_name = format!("refs/nostr/{id}");
        let mut current = store.refs(&alignment.owner)?;
        current.retain(|other, _| *other == ref_name);
        let wanted = wanted.filter(|oid| existing.contains(oid)).map(|oid| (ref_name, oid)).into_iter().collect();
        let changes = differences(&current, &wanted, arrived);
        store.change_refs(&alignment.owner, &changes)?;
        if !changes.is_empty() && !current.is_empty() {
            self.stores.note(name);
        }
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
        match wanted.head.filter(|head| wanted.refs.contains_key(head)) {
            Some(head) => store.set_head(owner, &head)?,
            None => store.clear_head(owner)?,
        }
        let present: BTreeSet<Oid> = wanted.refs.into_values().collect();
        let is_authorised = !present.is_empty();
        let mut is_known = !is_authorised || db.has_git_data(owner, identifier)?;
        for oid in &present {
            is_known = is_known && db.is_git_present(owner, identifier, oid)?;
        }
        if !is_known {
            let (owners, identifier) = ([*owner].into(), alignment.identifier.clone());
            let asked = GitArrived {
                owners,
                identifier,
                present,
                is_authorised,
                looks_anyway: false,
                pull_requests: BTreeSet::new(),
            };
            arrived.add(&self.node.ask(asked)?);
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
            self.node.ask(GitArrived {
                owners,
                identifier,
                present,
                is_authorised: false,
                looks_anyway: false,
                pull_requests: BTreeSet::new(),
            })?;
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
    fn forget(&self, alignment: &Alignment, name: StoreName, arrived: &mut ArrivedData) -> Result<(), GitFailure> {
        let Alignment { owner, identifier, .. } = alignment;
        let (owner, objects_max) = (*owner, FORGOTTEN_MAX);
        let is_banned = self.access.is_banned(&owner, identifier);
        while !self.node.ask(ForgetRepository {
            owner,
            identifier: identifier.clone(),
            objects_max,
            is_banned,
            after: alignment.pull_request,
        })? {}
        let store = self.folder.store(name);
        // Otherwise it was announced again meanwhile.
        if self.node.snapshot()?.git_store(&owner, identifier)?.is_none() && store.exists() {
            let refs = store.refs(&owner)?;
            arrived.refs_deleted += refs.len();
            let gone = refs.into_keys().map(|name| RefWrite { name, to: None });
            store.clear_head(&owner)?;
            store.change_refs(&owner, &gone.collect::<Vec<_>>())?;
            self.stores.note(name);
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
                self.counts.add(&arrived);
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
}
