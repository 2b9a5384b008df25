//! Deletion, the whole rule: which delete reaches what, and looking again when that changes.
//!
//! A delete counts like any other event. It reaches a target that its author wrote, or, if its author was an admin at
//! the time, anything deletable in the space; and with the target all of its edits, earlier or later. Whether the target
//! or the delete came first does not matter: the target is looked at when it is opened, and again when a delete of it
//! comes or starts or stops counting.

use super::counting::{acting_role, membership};
use crate::change::{Change, RowChange};
use crate::content::{self, EventDraft};
use crate::policy::Policy;
use crate::reads::{Reads, StoreResult};
use crate::rows::{Meta, SpaceTask};
use model::envelope::Role;
use model::payload::MemberRole;
use model::planted::{PlantedBug, is_planted};
use model::stage::ContentState;
use model::{Envelope, EventId, Kind, Seq, Stamp};

/// How many deletes of a target are read at a time: nearly always the first of them counts, and the rest does not matter.
const TOMBSTONES_PER_LOOK: usize = 8;

/// What a delete names.
pub fn deleted_target(envelope: &Envelope) -> Option<EventId> {
    if envelope.kind == Kind::Delete { envelope.reference(Role::Target) } else { None }
}

/// The least delete that reaches an event, if any does: of itself, or of what it is an edit of.
pub fn deleted_by(db: &impl Reads, id: &EventId, meta: &Meta) -> StoreResult<Option<Stamp>> {
    let own = least_delete(db, id, meta)?;
    let Some(target) = meta.subject.filter(|_| meta.kind == Kind::Edit) else { return Ok(own) };
    let Some(target) = db.event(target)? else {
        return Ok(own);
    };
    let Some(target_meta) = &target.meta else {
        return Ok(own);
    };
    let covering = least_delete(db, &target.id, target_meta)?;
    Ok(match (own, covering) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    })
}

fn least_delete(db: &impl Reads, id: &EventId, meta: &Meta) -> StoreResult<Option<Stamp>> {
    let mut after = Stamp::FIRST;
    loop {
        let tombstones = db.tombstones(id, after, TOMBSTONES_PER_LOOK)?;
        for (stamp, delete) in &tombstones {
            if delete_reaches(db, *delete, *stamp, meta)? {
                return Ok(Some(*stamp));
            }
        }
        match tombstones.last() {
            Some((last, _)) if tombstones.len() == TOMBSTONES_PER_LOOK => after = *last,
            Some(_) | None => return Ok(None),
        }
    }
}

/// Whether a delete reaches a target: it counts, and its author wrote the target or was an admin at the time.
pub fn delete_reaches(db: &impl Reads, delete: Seq, at: Stamp, target: &Meta) -> StoreResult<bool> {
    let Some(meta) = db.event(delete)?.and_then(|row| row.meta) else {
        return Ok(false);
    };
    let is_elsewhere = meta.space != target.space && !is_planted(PlantedBug::DeleteAcrossSpaces);
    if is_elsewhere || !target.kind.space().is_some_and(Kind::is_deletable) {
        return Ok(false);
    }
    if !meta.counts && !is_planted(PlantedBug::RemovedAdminDeleteHonoured) {
        return Ok(false);
    }
    if meta.author == target.author {
        return Ok(true);
    }
    let Some(authority) = meta.authority else { return Ok(false) };
    if is_planted(PlantedBug::RemovedAdminDeleteHonoured) {
        return Ok(membership(db, authority)?.role >= MemberRole::Admin);
    }
    Ok(acting_role(db, authority, at)?.is_some_and(|role| role >= MemberRole::Admin))
}

/// Looks again at a known event after a delete of it started or stopped counting.
pub fn recheck_deletion(db: &impl Reads, policy: &Policy, seq: Seq) -> StoreResult<Vec<Change>> {
    let Some(row) = db.event(seq)? else {
        return Ok(Vec::new());
    };
    let (id, Some(meta)) = (row.id, row.meta.clone()) else { return Ok(Vec::new()) };
    let mut draft = EventDraft::new(seq, row);
    if !content::recheck(db, policy, &mut draft, deleted_by(db, &id, &meta)?)? {
        return Ok(Vec::new());
    }
    if draft.row.content == ContentState::Missing && draft.row.is_applied() {
        content::want(db, &mut draft)?;
    }
    Ok(draft.finish())
}

/// Looks again at the target and at its versions, a bounded number at a time.
pub fn recheck_versions(db: &impl Reads, policy: &Policy, target: Seq, after: Stamp) -> StoreResult<Vec<Change>> {
    let mut changes = vec![Change::Task(RowChange::Remove, SpaceTask::Versions(target, after).into())];
    if after == Stamp::FIRST {
        changes.extend(recheck_deletion(db, policy, target)?);
    }
    let versions = db.edits(target, after, policy.releases_max)?;
    for (_, seq) in &versions {
        if is_planted(PlantedBug::UncountedEditsStayAlive)
            && !db.event(*seq)?.and_then(|row| row.meta).is_some_and(|meta| meta.counts)
        {
            continue;
        }
        changes.extend(recheck_deletion(db, policy, *seq)?);
    }
    if let (Some((last, _)), true) = (versions.last(), versions.len() == policy.releases_max) {
        changes.push(Change::Task(RowChange::Put, SpaceTask::Versions(target, *last).into()));
    }
    Ok(changes)
}

/// A delete came, or what it may reach changed: its target is looked at again, in a step of its own.
pub fn deletion_changed(db: &impl Reads, delete: Seq) -> StoreResult<Vec<Change>> {
    let Some(envelope) = db.opened(delete)? else {
        return Ok(Vec::new());
    };
    let Some(target) = deleted_target(&envelope) else {
        return Ok(Vec::new());
    };
    recheck_task(db, &target)
}

/// The task that looks again at a target, if it is known.
pub fn recheck_task(db: &impl Reads, target: &EventId) -> StoreResult<Vec<Change>> {
    Ok(match db.seq(target)? {
        Some(seq) => vec![Change::Task(RowChange::Put, SpaceTask::Versions(seq, Stamp::FIRST).into())],
        None => Vec::new(),
    })
}
