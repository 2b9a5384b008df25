//! Whether repositories are what rows and events say, for `anteroom verify`; and bringing those of a damaged folder into a
//! new one.

use super::refs::wanted_refs;
use super::service::GitFailure;
use crate::nostr::{AssignStore, GitArrived};
use crate::writer::WriterCore;
use engine::protocol::nostr::maintainers::announcement;
use engine::reads::NostrReads as _;
use git::{GitFolder, ObjectStore, StoreName};
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
        if let Some(damage) = folder.store(name).find_damage()? {
            problems.push(format!("the git store {} is damaged: {damage}", hex::encode(name.0)));
        }
    }
    for kept in db.git_repositories()? {
        let (name, store) = (StoreName(kept.store), folder.store(StoreName(kept.store)));
        // It is unpacked, and looked at, when the node starts.
        if bundled.contains(&name) {
            continue;
        }
        let called = format!("the git repository {} of {}", kept.identifier, kept.owner);
        if !store.exists() {
            problems.push(format!("{called}: its objects are gone"));
            continue;
        }
        if has_unreached_objects(db, &kept, &store)? {
            problems.push(format!("{called}: objects that are said to be here are not"));
        }
        // Where a row asks for it, refs are about to change.
        if !db.alignments_of(&kept.owner, &AddressName::of(&kept.identifier), 1)?.is_empty() {
            continue;
        }
        let is_announced = announcement(db, &kept.owner, &kept.identifier)?.is_some();
        let wanted = wanted_refs(db, &kept.owner, &kept.identifier)?.refs;
        let mut refs = store.refs(&kept.owner)?;
        refs.retain(|name, _| !name.starts_with("refs/nostr/"));
        if !is_contribution(&kept.identifier) && is_announced && refs != existing(&store, wanted)? {
            problems.push(format!("{called}: its refs are not what its newest state says"));
        }
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

/// Brings what can be read of the repositories of a damaged folder into a new one, whose events are there already. Names
/// what could not be read.
pub fn salvage_repositories(
    from: (&Db<Snapshot>, &GitFolder),
    into: (&WriterCore, &GitFolder),
    now: Nanos,
) -> Result<Vec<String>, GitFailure> {
    let ((db, old), (core, new)) = (from, into);
    let mut damaged = Vec::new();
    for kept in db.git_repositories()? {
        let (owner, identifier) = (kept.owner, kept.identifier.clone());
        let assigned = core.ask(AssignStore { owner, identifier: identifier.clone(), own: kept.store }, now)?;
        let (old, new) = (old.store(StoreName(kept.store)), new.store(StoreName(assigned)));
        new.create()?;
        let own = format!("refs/namespaces/{owner}/refs/");
        for name in old.all_ref_names().unwrap_or_default().iter().filter(|name| name.starts_with(&own)) {
            if new.copy_ref(&old, name).is_err() {
                damaged.push(format!("{name} in the git repository {identifier} of {owner}"));
            }
        }
        let is_authorised = db.has_git_data(&owner, &identifier)?;
        each_present(db, &kept, &mut |oids| {
            let (owners, identifier) = ([owner].into(), identifier.clone());
            let present = new.reached(&[owner].into(), oids)?;
            let is_authorised = is_authorised && !present.is_empty();
            core.ask(GitArrived { owners, identifier, present, is_authorised, looks_anyway: true }, now)?;
            Ok(())
        })?;
    }
    core.settle(now)?;
    Ok(damaged)
}
