//! Whether repositories are what rows and events say, for `anteroom verify`; and bringing those of a damaged folder into a
//! new one.

use super::bans::pull_requests_of;
use super::refs::{wanted_pull_request, wanted_refs};
use super::service::GitFailure;
use crate::nostr::{AssignStore, ForgetObjects, GitArrived};
use crate::writer::WriterCore;
use engine::protocol::nostr::maintainers::announcement;
use engine::reads::NostrReads as _;
use engine::rows::Alignment;
use git::{GitError, GitFolder, ObjectStore, StoreName};
use model::Nanos;
use model::need::Oid;
use model::nostr::{AddressName, is_contribution};
use std::collections::{BTreeMap, BTreeSet};
use store::Db;
use store::nostr::KeptRepository;
use store::tables::Snapshot;

/// Rows of objects that are looked at in one go.
const OBJECTS_MAX: usize = 1024;

/// Names everything that is wrong with the repositories of a folder.
pub fn check_repositories(db: &Db<Snapshot>, folder: &GitFolder) -> Result<Vec<String>, GitFailure> {
    let mut problems = Vec::new();
    let bundled = folder.bundled()?;
    for name in folder.names()?.into_iter().filter(|name| !bundled.contains(name)) {
        problems.extend(check_store(folder, name)?);
    }
    for kept in db.git_repositories()? {
        problems.extend(check_repository(db, folder, &kept)?);
    }
    Ok(problems)
}

/// What git finds wrong with an object store.
pub fn check_store(folder: &GitFolder, name: StoreName) -> Result<Option<String>, GitFailure> {
    let damage = folder.store(name).find_damage()?;
    Ok(damage.map(|damage| format!("the git store {} is damaged: {damage}", hex::encode(name.0))))
}

/// What is wrong with one repository, apart from its object store: its refs and what rows say of it.
pub fn check_repository(
    db: &Db<Snapshot>,
    folder: &GitFolder,
    kept: &KeptRepository,
) -> Result<Vec<String>, GitFailure> {
    let mut problems = Vec::new();
    let (name, store) = (StoreName(kept.store), folder.store(StoreName(kept.store)));
    // It is unpacked, and looked at, when the node starts.
    if folder.bundle_path(name).exists() {
        return Ok(problems);
    }
    let called = format!("the git repository {} of {}", kept.identifier, kept.owner);
    if !store.exists() {
        // Nothing was pushed yet, otherwise.
        if !db.present_objects(&kept.owner, &AddressName::of(&kept.identifier), None, 1)?.is_empty() {
            problems.push(format!("{called}: its objects are gone"));
        }
        return Ok(problems);
    }
    if has_unreached_objects(db, kept, &store)? {
        problems.push(format!("{called}: objects that are said to be here are not"));
    }
    // Where a row asks for it, refs are about to change.
    if !db.alignments_of(&kept.owner, &AddressName::of(&kept.identifier), 1)?.is_empty() {
        return Ok(problems);
    }
    let is_announced = announcement(db, &kept.owner, &kept.identifier)?.is_some();
    let wanted = wanted_refs(db, &kept.owner, &kept.identifier)?.refs;
    let mut refs = store.refs(&kept.owner)?;
    for id in pull_requests_of(refs.keys().cloned()) {
        let (owner, identifier) = (kept.owner, kept.identifier.clone());
        let of = Alignment { owner, identifier, pull_request: Some(id) };
        if wanted_pull_request(db, &of, &id)?.as_ref() != refs.get(&format!("refs/nostr/{id}")) {
            problems.push(format!("{called}: the ref of pull request {id} is not what its event says"));
        }
    }
    refs.retain(|name, _| !name.starts_with("refs/nostr/"));
    if !is_contribution(&kept.identifier) && is_announced && refs != existing(&store, wanted)? {
        problems.push(format!("{called}: its refs are not what its newest state says"));
    }
    Ok(problems)
}

/// What cannot be there, because its objects are not, is not missed.
fn existing(store: &ObjectStore, refs: BTreeMap<String, Oid>) -> Result<BTreeMap<String, Oid>, GitFailure> {
    let there = store.existing(&refs.values().copied().collect())?;
    Ok(refs.into_iter().filter(|(_, oid)| there.contains(oid)).collect())
}

fn has_unreached_objects(db: &Db<Snapshot>, kept: &KeptRepository, store: &ObjectStore) -> Result<bool, GitFailure> {
    let mut is_lacking = false;
    each_present(db, kept, &mut |oids| {
        is_lacking = is_lacking || store.existing(oids)? != *oids;
        Ok(())
    })?;
    Ok(is_lacking)
}

/// Hands the objects that rows say a repository has to a function, some at a time.
fn each_present(
    db: &Db<Snapshot>,
    kept: &KeptRepository,
    each: &mut dyn FnMut(&BTreeSet<Oid>) -> Result<(), GitFailure>,
) -> Result<(), GitFailure> {
    let (name, mut after) = (AddressName::of(&kept.identifier), None);
    loop {
        let oids = db.present_objects(&kept.owner, &name, after, OBJECTS_MAX)?;
        after = oids.last().copied();
        let is_last = oids.len() < OBJECTS_MAX;
        each(&oids.into_iter().collect())?;
        if is_last {
            return Ok(());
        }
    }
}

/// Brings what can be read of the repositories of a damaged folder into a new one, whose events are there already: they are
/// applied as they were, and what cannot be read is asked for again. Names it.
pub fn salvage_repositories(
    from: (&Db<Snapshot>, &GitFolder),
    into: (&WriterCore, &GitFolder),
    now: Nanos,
) -> Result<Vec<String>, GitFailure> {
    let ((db, old), (core, new)) = (from, into);
    let (kept, unreadable) = db.readable_git_repositories();
    let mut damaged: Vec<String> = (0..unreadable).map(|_| "a row of a git repository".to_owned()).collect();
    // What was restored and never started is packed still. The old folder is not changed.
    for name in old.bundled().unwrap_or_default() {
        let unpacked = std::fs::copy(old.bundle_path(name), new.bundle_path(name)).map_err(GitError::Folder);
        if let Err(why) = unpacked.and_then(|_| new.unpack_bundle(name)).and_then(|()| new.delete_bundle(name)) {
            damaged.push(format!("the git store {}: {why}", hex::encode(name.0)));
        }
    }
    for kept in &kept {
        if let Err(why) = salvage_repository((db, old), (core, new), kept, now, &mut damaged) {
            damaged.push(format!("the git repository {} of {}: {why}", kept.identifier, kept.owner));
        }
    }
    core.settle(now)?;
    for kept in &kept {
        if let Err(why) = forget_unreached(db, (core, new), kept, now) {
            damaged.push(format!("the git repository {} of {}: {why}", kept.identifier, kept.owner));
        }
    }
    Ok(damaged)
}

fn salvage_repository(
    (db, old): (&Db<Snapshot>, &GitFolder),
    (core, new): (&WriterCore, &GitFolder),
    kept: &KeptRepository,
    now: Nanos,
    damaged: &mut Vec<String>,
) -> Result<(), GitFailure> {
    let (owner, identifier) = (kept.owner, kept.identifier.clone());
    let assigned = core.ask(AssignStore { owner, identifier: identifier.clone(), own: kept.store }, now)?;
    let (from, into) = (old.store(StoreName(kept.store)), new.store(StoreName(assigned)));
    if !into.exists() {
        into.create()?;
    }
    let own = format!("refs/namespaces/{owner}/refs/");
    if from.exists() {
        for name in from.all_ref_names()?.iter().filter(|name| name.starts_with(&own)) {
            if into.copy_ref(&from, name).is_err() {
                damaged.push(format!("{name} in the git repository {identifier} of {owner}"));
            }
        }
    } else if into.refs(&owner)?.is_empty() {
        damaged.push(format!("the objects of the git repository {identifier} of {owner}"));
    }
    let is_authorised = db.has_git_data(&owner, &identifier)?;
    each_present(db, kept, &mut |oids| {
        let (owners, identifier, present) = ([owner].into(), identifier.clone(), oids.clone());
        let (looks_anyway, pull_requests) = (true, BTreeSet::new());
        let all = GitArrived { owners, identifier, present, is_authorised, looks_anyway, pull_requests };
        core.ask(all, now)?;
        Ok(())
    })
}

/// What refs do not reach in the new folder is not here.
fn forget_unreached(
    db: &Db<Snapshot>,
    (core, new): (&WriterCore, &GitFolder),
    kept: &KeptRepository,
    now: Nanos,
) -> Result<(), GitFailure> {
    let Some(store) = core.store().snapshot()?.git_store(&kept.owner, &kept.identifier)? else { return Ok(()) };
    let store = new.store(StoreName(store));
    each_present(db, kept, &mut |oids| {
        let gone = oids.difference(&store.reached(&[kept.owner].into(), oids)?).copied().collect();
        let (owner, name) = (kept.owner, AddressName::of(&kept.identifier));
        Ok(core.ask(ForgetObjects { owner, name, oids: gone }, now)?)
    })
}
