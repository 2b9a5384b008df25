//! Makes the refs of pull requests what events say: in announced repositories, and in those of contributors.

use super::align::note_failure;
use super::arrival::ArrivedData;
use super::refs::{contributed_commit, differences, wanted_pull_request};
use super::service::{GitFailure, GitService, HostedRepository};
use crate::nostr::GitArrived;
use engine::reads::NostrReads as _;
use engine::rows::Alignment;
use git::{ObjectStore, StoreName};
use model::need::Oid;
use model::nostr::{NostrId, is_contribution};
use std::collections::{BTreeMap, BTreeSet};

impl GitService {
    /// The refs of those of these that are pull requests, all of one repository and written together: each program costs some
    /// milliseconds. What fails together is tried one by one. Says which of them failed.
    pub(super) fn align_pull_requests(
        &self,
        alignments: &[Alignment],
        (name, store): (StoreName, &ObjectStore),
        arrived: &mut ArrivedData,
    ) -> Vec<Alignment> {
        let (mut refs, mut failed) = (BTreeMap::new(), Vec::new());
        for alignment in alignments {
            let Some(id) = &alignment.pull_request else { continue };
            match self.wanted_commit(alignment, id, (name, store), arrived) {
                Ok(commit) => drop(refs.insert(format!("refs/nostr/{id}"), commit)),
                Err(why) => note_failure(alignment, &why, arrived, &mut failed),
            }
        }
        let Some(first) = alignments.first() else { return failed };
        if self.write_pull_requests(first, refs.clone(), (name, store), arrived).is_ok() {
            return failed;
        }
        for alignment in alignments {
            let Some(name_of_ref) = alignment.pull_request.map(|id| format!("refs/nostr/{id}")) else { continue };
            let Some(commit) = refs.remove(&name_of_ref) else { continue };
            let one = [(name_of_ref, commit)].into();
            if let Err(why) = self.write_pull_requests(alignment, one, (name, store), arrived) {
                note_failure(alignment, &why, arrived, &mut failed);
            }
        }
        failed
    }

    /// Makes these refs of a repository point at these commits, as far as they are here, all or none of them.
    fn write_pull_requests(
        &self,
        first: &Alignment,
        refs: BTreeMap<String, Option<Oid>>,
        (name, store): (StoreName, &ObjectStore),
        arrived: &mut ArrivedData,
    ) -> Result<(), GitFailure> {
        if refs.is_empty() {
            return Ok(());
        }
        let oids: BTreeSet<Oid> = refs.values().flatten().copied().collect();
        let existing = self.bring_objects(&*self.node.snapshot()?, first, store, &oids)?;
        let mut current = store.refs(&first.owner)?;
        current.retain(|name, _| refs.contains_key(name));
        let wanted = refs.into_iter().filter_map(|(name, oid)| Some((name, oid.filter(|oid| existing.contains(oid))?)));
        let mut counted = ArrivedData::default();
        let changes = differences(&current, &wanted.collect(), &mut counted);
        store.change_refs(&first.owner, &changes)?;
        arrived.add_refs(&counted);
        // Commits that a ref pointed at may be reached by none any more.
        if changes.iter().any(|change| current.contains_key(&change.name)) {
            self.stores.note(name);
        }
        Ok(())
    }

    /// The commit of a pull request, if there should be a ref for it; what its author pushed elsewhere on this node is copied.
    fn wanted_commit(
        &self,
        alignment: &Alignment,
        id: &NostrId,
        (name, store): (StoreName, &ObjectStore),
        arrived: &mut ArrivedData,
    ) -> Result<Option<Oid>, GitFailure> {
        if self.is_of_banned_author(&*self.node.snapshot()?, id)? {
            return Ok(None);
        }
        if !is_contribution(&alignment.identifier) {
            self.mirror_contribution(alignment, id, (name, store), arrived)?;
        }
        Ok(wanted_pull_request(&*self.node.snapshot()?, alignment, id)?)
    }

    /// The ref of a pull request in its contributor's own repository, which goes with its last ref.
    pub(super) fn align_contribution(
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
        if !self.align_pull_requests(std::slice::from_ref(alignment), (name, &store), arrived).is_empty() {
            return Ok(false);
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
}
