//! Makes the refs of repositories what events say, whenever a row asks for it.

use super::arrival::ArrivedData;
use super::refs::{differences, wanted_refs};
use super::service::{GitFailure, GitService, GitWake};
use crate::locks;
use crate::nostr::{ForgetRepository, GitArrived, NoteAligned};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use engine::protocol::nostr::maintainers::{announcement, confirmed};
use engine::reads::NostrReads as _;
use engine::rows::Alignment;
use git::{ObjectStore, RefWrite, StoreName};
use model::NostrKey;
use model::need::Oid;
use model::nostr::{AddressName, Announcement, is_contribution};
use std::collections::{BTreeMap, BTreeSet};
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

    /// Which of them could not be done. Those of one repository are done together.
    fn align_some(
        &self,
        _: &MutexGuard<'_, ()>,
        asked: Vec<(Alignment, u64)>,
        held: Option<StoreName>,
        arrived: &mut ArrivedData,
    ) -> Result<Vec<Alignment>, GitFailure> {
        let mut repositories: BTreeMap<(NostrKey, String), Vec<Alignment>> = BTreeMap::new();
        for (alignment, _) in &asked {
            let repository = (alignment.owner, alignment.identifier.clone());
            repositories.entry(repository).or_default().push(alignment.clone());
        }
        let mut left = Vec::new();
        for ((owner, identifier), alignments) in repositories {
            match self.align_repository(&alignments, held, arrived) {
                Ok(failed) => left.extend(failed),
                Err(why) => {
                    tracing::warn!(%owner, identifier, %why, "refs could not be changed");
                    arrived.errors.push(why.to_string());
                    left.extend(alignments);
                }
            }
        }
        self.node.ask(NoteAligned(asked.into_iter().filter(|(alignment, _)| !left.contains(alignment)).collect()))?;
        Ok(left)
    }

    /// Makes refs of one repository what rows ask for. Says what is left: everything if the objects are being repacked, after
    /// which it is looked at again, and what failed.
    fn align_repository(
        &self,
        alignments: &[Alignment],
        held: Option<StoreName>,
        arrived: &mut ArrivedData,
    ) -> Result<Vec<Alignment>, GitFailure> {
        let Some(first) = alignments.first() else { return Ok(Vec::new()) };
        let (owner, identifier) = (&first.owner, first.identifier.as_str());
        if is_contribution(identifier) {
            let mut left = Vec::new();
            for alignment in alignments {
                match self.align_contribution(alignment, held, arrived) {
                    Ok(true) => {}
                    Ok(false) => left.push(alignment.clone()),
                    Err(why) => note_failure(alignment, &why, arrived, &mut left),
                }
            }
            return Ok(left);
        }
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
            return Ok(Vec::new());
        }
        drop(db);
        let name = match own {
            Some(name) => StoreName(name),
            None => self.store_of(owner, identifier)?.0,
        };
        let lock = self.stores.of(name);
        let Some(_nothing_goes) = lock.try_share(held == Some(name)) else { return Ok(alignments.to_vec()) };
        if is_gone {
            for alignment in alignments {
                self.forget(alignment, name, arrived)?;
            }
            return Ok(Vec::new());
        }
        let (_, store) = self.store_of(owner, identifier)?;
        self.find_present(first, &store, &maintainers)?;
        let mut failed = Vec::new();
        if let Some(branches) = alignments.iter().find(|alignment| alignment.pull_request.is_none())
            && let Err(why) = self.align_branches(branches, (name, &store), arrived)
        {
            note_failure(branches, &why, arrived, &mut failed);
        }
        failed.extend(self.align_pull_requests(alignments, (name, &store), arrived));
        arrived.repositories_synced += 1;
        Ok(failed)
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
    pub(super) fn find_present(
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
    pub(super) fn bring_objects(
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
    pub(super) fn forget(
        &self,
        alignment: &Alignment,
        name: StoreName,
        arrived: &mut ArrivedData,
    ) -> Result<(), GitFailure> {
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

/// One that fails stops no other; its row stays.
pub(super) fn note_failure(
    alignment: &Alignment,
    why: &GitFailure,
    arrived: &mut ArrivedData,
    failed: &mut Vec<Alignment>,
) {
    let Alignment { owner, identifier, pull_request } = alignment;
    let pull_request = pull_request.as_ref().map(tracing::field::display);
    tracing::warn!(%owner, identifier, pull_request, %why, "refs could not be changed");
    arrived.errors.push(why.to_string());
    failed.push(alignment.clone());
}
