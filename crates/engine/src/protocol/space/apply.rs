//! What an applied event leaves: its rows in the views, and what follows from it for others.

use super::counting::membership;
use super::rederive::consequences;
use super::{deletion, kinds, validate};
use crate::change::{Change, RowChange, SpaceChange};
use crate::content::ContentCheck;
use crate::fetch;
use crate::protocol::AppliedEvent;
use crate::reads::{Reads, StoreResult};
use crate::rows::{Meta, SpaceTask, Task};
use model::kind::ContentRule;
use model::payload::{MemberRole, Payload};
use model::{EventId, Group, Kind, Seq, Verified, body};

/// Judges the plain bytes of an event's content.
pub fn judge_body(kind: Kind, plain: &[u8]) -> ContentCheck {
    let fits = ContentCheck::Fits(None);
    match kind.content_rule() {
        ContentRule::Json => match body::decode(plain) {
            Ok(body) if kinds::body_fits(kind, &body) => ContentCheck::Fits(kinds::wanted_bytes(kind, &body)),
            Ok(_) | Err(_) => ContentCheck::Unfit,
        },
        ContentRule::Empty if !plain.is_empty() => ContentCheck::Unfit,
        ContentRule::Empty | ContentRule::Any => fits,
    }
}

/// What follows at the moment an event is applied, beside its standing rows.
pub(super) fn effects<R: Reads>(db: &R, event: AppliedEvent<'_, Verified>) -> StoreResult<Vec<Change>> {
    let AppliedEvent { seq, stamp, meta, opened: envelope } = event;
    let mut changes = Vec::new();
    if let Payload::Key(secret) = envelope.payload {
        changes.push(Change::Key(envelope.space, secret));
        changes.push(Change::Joined(envelope.space));
        if !db.joined(&envelope.space)? && !db.carried(&envelope.space, Seq(0), 1)?.is_empty() {
            changes.push(Change::Task(RowChange::Put, Task::Join(envelope.space, Seq(0))));
        }
    }
    if let Some(target) = deletion::deleted_target(envelope) {
        changes.extend(deletion::recheck_task(db, &target)?);
    }
    if meta.counts {
        // Nothing can stand on a membership before it is applied, so a new grant changes nobody's standing by itself.
        let own = |change: &Change| matches!(change, Change::Task(_, Task::Space(SpaceTask::Rederive(other, _))) if *other == seq);
        let others = consequences(meta, RowChange::Put, stamp, seq).into_iter();
        changes.extend(others.filter(|change| !own(change) && !is_limit(change)));
    }
    changes.extend(parents(db, meta, envelope, &stamp.id)?);
    Ok(changes)
}

fn is_limit(change: &Change) -> bool {
    matches!(change, Change::Space(SpaceChange::Limit(..)))
}

/// Whether a delete can reach its target at all: a stranger's delete of a known target leaves no row, so that nobody can
/// pile them up.
fn may_ever_reach<R: Reads>(db: &R, delete: &Meta, target: &EventId) -> StoreResult<bool> {
    let Some(seq) = db.seq(target)? else { return Ok(true) };
    let Some(target) = db.event(seq)?.and_then(|row| row.meta) else { return Ok(true) };
    let is_admin = match delete.authority {
        Some(authority) => membership(db, authority)?.role >= MemberRole::Admin,
        None => false,
    };
    Ok(target.space == delete.space && (target.author == delete.author || is_admin))
}

/// The rows of an applied event that can be dropped and rebuilt: its place in its author's order, the membership, limit
/// or tombstone it is, and its contributions to the views if it counts.
pub(super) fn standing_rows<R: Reads>(db: &R, event: AppliedEvent<'_, Verified>) -> StoreResult<Vec<Change>> {
    let AppliedEvent { seq, stamp, meta, opened: envelope } = event;
    let mut changes = vec![Change::ByAuthor(meta.space, meta.author, stamp, seq)];
    if let Some(membership) = validate::membership_of(db, envelope, meta.authority)? {
        changes.push(SpaceChange::Membership(meta.space, stamp, seq, membership).into());
    }
    if let (true, Some(target)) = (meta.kind == Kind::Edit, meta.subject) {
        changes.push(SpaceChange::Edit(target, stamp, seq).into());
    }
    if let Some(target) = deletion::deleted_target(envelope)
        && may_ever_reach(db, meta, &target)?
    {
        changes.push(SpaceChange::Tombstone(target, stamp, seq).into());
    }
    if meta.counts {
        let rows = kinds::rows(meta, envelope);
        changes.extend(rows.into_iter().map(|view| SpaceChange::View(RowChange::Put, view, stamp, seq).into()));
        changes.extend(consequences(meta, RowChange::Put, stamp, seq).into_iter().filter(is_limit));
    }
    Ok(changes)
}

/// An author's parents are hints for finding gaps: fetched, never held on.
fn parents<R: Reads>(db: &R, meta: &Meta, envelope: &Verified, id: &EventId) -> StoreResult<Vec<Change>> {
    let mut changes = Vec::new();
    for parent in envelope.parents.iter().filter(|parent| **parent != EventId::ZERO) {
        if db.seq(parent)?.is_none() && db.refused(parent)?.is_none() {
            changes.push(Change::Gap(RowChange::Put, meta.space, meta.author, *parent));
            let group = Group::Author(envelope.space, envelope.author);
            changes.push(Change::Wanted(group, fetch::NeedOrigin::PeerOrRelay));
        }
    }
    if db.is_gap(meta.space, meta.author, id)? {
        changes.push(Change::Gap(RowChange::Remove, meta.space, meta.author, *id));
    }
    Ok(changes)
}
