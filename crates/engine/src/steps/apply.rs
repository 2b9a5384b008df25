//! Applying: an event's effects enter the views, its stage and its journal entry with them, and what waited is woken.

use crate::chains::{EventInPost, StepResult};
use crate::change::{Change, RowChange};
use crate::content;
use crate::content::EventDraft;
use crate::counting::{counts, membership};
use crate::fetch;
use crate::reads::{Reads, StoreError, StoreResult};
use crate::release::{consequences, met, recheck_task};
use crate::rows::{JournalKind, Meta, Outcome, Task};
use crate::space::{rules, views};
use model::crypto::SpaceKey;
use model::payload::{MemberRole, Payload};
use model::planted::{PlantedBug, is_planted};
use model::stage::StageInput;
use model::{Envelope, EventId, Group, Kind, Need, Seq, Stamp};

/// Events made in answer. No kind of the `space` protocol has a reflector yet; replay and rebuild never reflect.
pub(crate) fn reflect<R: Reads>(_db: &R, in_post: EventInPost) -> StoreResult<StepResult> {
    Ok(StepResult::On(in_post))
}

/// Puts the effects of a valid event into the changes.
pub(crate) fn apply<R: Reads>(db: &R, mut in_post: EventInPost) -> StoreResult<StepResult> {
    let envelope = in_post.envelope()?.clone();
    let draft = &mut in_post.draft;
    let Some(mut meta) = draft.row.meta.clone() else {
        return Err(StoreError::Broken("applied without meta".into()));
    };
    let stamp = Stamp { at: meta.at, id: draft.row.id };
    meta.counts = counts(db, &meta, stamp)?;
    draft.row.meta = Some(meta.clone());
    let position = db.next_position()?;
    let stage = draft.row.stage.clone().next(StageInput::Apply(position));
    draft.row.stage = stage.map_err(|edge| StoreError::Broken(edge.to_string()))?;
    if !is_planted(PlantedBug::JournalEntryMissing) || in_post.was_opened {
        draft.changes.push(Change::Journal(meta.space, draft.seq, JournalKind::Applied));
    }
    effects(db, draft, &meta, &envelope, stamp)?;
    parents(db, draft, &meta, &envelope)?;
    content::settle(db, &in_post.context.policy, draft, &envelope, in_post.verdict)?;
    Ok(StepResult::On(in_post))
}

fn effects(db: &impl Reads, draft: &mut EventDraft, meta: &Meta, envelope: &Envelope, stamp: Stamp) -> StoreResult<()> {
    let seq = draft.seq;
    draft.changes.extend(standing_rows(db, seq, meta, envelope, stamp)?);
    if let Payload::Key(secret) = envelope.payload {
        draft.changes.push(Change::Key(envelope.space, secret));
        draft.changes.push(Change::Joined(envelope.space));
        if !db.joined(&envelope.space)? && !db.carried(&envelope.space, Seq(0), 1)?.is_empty() {
            draft.changes.push(Change::Task(RowChange::Put, Task::Join(envelope.space, Seq(0))));
        }
    }
    if let Some(target) = rules::deleted_target(envelope) {
        draft.changes.extend(recheck_task(db, &target)?);
    }
    if meta.counts {
        // Nothing can stand on a membership before it is applied, so a new grant changes nobody's standing by itself.
        let own = |change: &Change| matches!(change, Change::Task(_, Task::Rederive(other, _)) if *other == seq);
        let others = consequences(meta, RowChange::Put, stamp, seq).into_iter();
        draft.changes.extend(others.filter(|change| !own(change) && !matches!(change, Change::Limit(..))));
    }
    Ok(())
}

/// Whether a delete can reach its target at all: a stranger's delete of a known target leaves no row, so that nobody can
/// pile them up.
fn may_ever_reach(db: &impl Reads, delete: &Meta, target: &EventId) -> StoreResult<bool> {
    let Some(seq) = db.seq(target)? else { return Ok(true) };
    let Some(target) = db.event(seq)?.and_then(|row| row.meta) else { return Ok(true) };
    let is_admin = delete.authority != Seq(0) && membership(db, delete.authority)?.role >= MemberRole::Admin;
    Ok(target.space == delete.space && (target.author == delete.author || is_admin))
}

/// The rows of an applied event that can be dropped and rebuilt: its place in its author's order, the membership, limit
/// or tombstone it is, and its contributions to the views if it counts.
pub(crate) fn standing_rows(
    db: &impl Reads,
    seq: Seq,
    meta: &Meta,
    envelope: &Envelope,
    stamp: Stamp,
) -> StoreResult<Vec<Change>> {
    let mut changes = vec![Change::ByAuthor(meta.space, meta.author, stamp, seq)];
    if let Some(membership) = rules::membership_of(db, envelope, meta.authority)? {
        changes.push(Change::Membership(seq, membership));
    }
    if meta.kind == Kind::Edit {
        changes.push(Change::Edit(meta.subject, stamp, seq));
    }
    if let Some(target) = rules::deleted_target(envelope)
        && may_ever_reach(db, meta, &target)?
    {
        changes.push(Change::Tombstone(target, stamp, seq));
    }
    if meta.counts {
        let rows = views::rows(meta, envelope);
        changes.extend(rows.into_iter().map(|view| Change::View(RowChange::Put, view, stamp, seq)));
        let limits = consequences(meta, RowChange::Put, stamp, seq).into_iter();
        changes.extend(limits.filter(|change| matches!(change, Change::Limit(..))));
    }
    Ok(changes)
}

/// An author's parents are hints for finding gaps: fetched, never held on.
fn parents(db: &impl Reads, draft: &mut EventDraft, meta: &Meta, envelope: &Envelope) -> StoreResult<()> {
    for parent in envelope.parents.iter().filter(|parent| **parent != EventId::ZERO) {
        if db.seq(parent)?.is_none() && db.refused(parent)?.is_none() {
            draft.changes.push(Change::Gap(RowChange::Put, meta.space, meta.author, *parent));
            let group = Group::Author(envelope.space, envelope.author);
            draft.changes.push(Change::Wanted(group, fetch::NeedOrigin::PeerOrRelay));
        }
    }
    if db.is_gap(meta.space, meta.author, &draft.row.id)? {
        draft.changes.push(Change::Gap(RowChange::Remove, meta.space, meta.author, draft.row.id));
    }
    Ok(())
}

/// Wakes what waited for this event, and for the key it carries; then the passage is over.
pub(crate) fn respond<R: Reads>(db: &R, in_post: EventInPost) -> StoreResult<StepResult> {
    let seq = in_post.draft.seq;
    let id = in_post.draft.row.id;
    let policy = in_post.context.policy;
    let mut woken = met(db, &policy, Need::Event(id))?;
    let envelope = in_post.envelope()?;
    if let (Kind::Key, Payload::Key(secret)) = (envelope.kind, &envelope.payload) {
        let key = SpaceKey::new(&envelope.space, *secret).id();
        woken.extend(met(db, &policy, Need::Key(key))?);
    }
    let mut changes = in_post.draft.finish();
    changes.extend(woken);
    Ok(StepResult::End(Outcome::Applied(seq), changes))
}
