//! Applying: an event's effects enter the views, its stage and its journal entry with them, and what waited is woken.

use crate::chains::{Next, Passage};
use crate::change::{Change, Turn};
use crate::content;
use crate::content::Work;
use crate::counting::{counts, membership};
use crate::fetch;
use crate::reads::{Answer, Fault, Reads};
use crate::release::{consequences, met, recheck_task};
use crate::rows::{JournalKind, Meta, Outcome, Task};
use crate::space::{rules, views};
use model::crypto::SpaceKey;
use model::payload::{MemberRole, Payload};
use model::planted::{Bug, is_planted};
use model::stage::StageInput;
use model::{Envelope, EventId, Group, Kind, Need, Seq, Stamp};

/// Events made in answer. No kind of the `space` protocol has a reflector yet; replay and rebuild never reflect.
pub(crate) fn reflect<R: Reads>(_db: &R, passage: Passage) -> Answer<Next> {
    Ok(Next::On(passage))
}

/// Puts the effects of a valid event into the changes.
pub(crate) fn apply<R: Reads>(db: &R, mut passage: Passage) -> Answer<Next> {
    let envelope = passage.envelope()?.clone();
    let work = &mut passage.work;
    let Some(mut meta) = work.row.meta.clone() else {
        return Err(Fault::Broken("applied without meta".into()));
    };
    let stamp = Stamp { at: meta.at, id: work.row.id };
    meta.counts = counts(db, &meta, stamp)?;
    work.row.meta = Some(meta.clone());
    let position = db.next_position()?;
    let stage = work.row.stage.clone().next(StageInput::Apply(position));
    work.row.stage = stage.map_err(|edge| Fault::Broken(edge.to_string()))?;
    if !is_planted(Bug::JournalEntryMissing) || passage.was_opened {
        work.changes.push(Change::Journal(meta.space, work.seq, JournalKind::Applied));
    }
    effects(db, work, &meta, &envelope, stamp)?;
    parents(db, work, &meta, &envelope)?;
    content::settle(db, &passage.setting.policy, work, &envelope, passage.verdict)?;
    Ok(Next::On(passage))
}

fn effects(db: &impl Reads, work: &mut Work, meta: &Meta, envelope: &Envelope, stamp: Stamp) -> Answer<()> {
    let seq = work.seq;
    work.changes.extend(standing_rows(db, seq, meta, envelope, stamp)?);
    if let Payload::Key(secret) = envelope.payload {
        work.changes.push(Change::Key(envelope.space, secret));
        work.changes.push(Change::Joined(envelope.space));
        if !db.joined(&envelope.space)? && !db.carried(&envelope.space, Seq(0), 1)?.is_empty() {
            work.changes.push(Change::Task(Turn::Put, Task::Join(envelope.space, Seq(0))));
        }
    }
    if let Some(target) = rules::deleted_target(envelope) {
        work.changes.extend(recheck_task(db, &target)?);
    }
    if meta.counts {
        // Nothing can stand on a membership before it is applied, so a new grant changes nobody's standing by itself.
        let own = |change: &Change| matches!(change, Change::Task(_, Task::Rederive(other, _)) if *other == seq);
        let others = consequences(meta, Turn::Put, stamp, seq).into_iter();
        work.changes.extend(others.filter(|change| !own(change) && !matches!(change, Change::Limit(..))));
    }
    Ok(())
}

/// Whether a delete can reach its target at all: a stranger's delete of a known target leaves no row, so that nobody can
/// pile them up.
fn may_ever_reach(db: &impl Reads, delete: &Meta, target: &EventId) -> Answer<bool> {
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
) -> Answer<Vec<Change>> {
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
        changes.extend(rows.into_iter().map(|view| Change::View(Turn::Put, view, stamp, seq)));
        let limits = consequences(meta, Turn::Put, stamp, seq).into_iter();
        changes.extend(limits.filter(|change| matches!(change, Change::Limit(..))));
    }
    Ok(changes)
}

/// An author's parents are hints for finding gaps: fetched, never held on.
fn parents(db: &impl Reads, work: &mut Work, meta: &Meta, envelope: &Envelope) -> Answer<()> {
    for parent in envelope.parents.iter().filter(|parent| **parent != EventId::ZERO) {
        if db.seq(parent)?.is_none() && db.refused(parent)?.is_none() {
            work.changes.push(Change::Gap(Turn::Put, meta.space, meta.author, *parent));
            let group = Group::Author(envelope.space, envelope.author);
            work.changes.push(Change::Wanted(group, fetch::Origin::PeerOrRelay));
        }
    }
    if db.is_gap(meta.space, meta.author, &work.row.id)? {
        work.changes.push(Change::Gap(Turn::Remove, meta.space, meta.author, work.row.id));
    }
    Ok(())
}

/// Wakes what waited for this event, and for the key it carries; then the passage is over.
pub(crate) fn respond<R: Reads>(db: &R, passage: Passage) -> Answer<Next> {
    let seq = passage.work.seq;
    let id = passage.work.row.id;
    let policy = passage.setting.policy;
    let mut woken = met(db, &policy, Need::Event(id))?;
    let envelope = passage.envelope()?;
    if let (Kind::Key, Payload::Key(secret)) = (envelope.kind, &envelope.payload) {
        let key = SpaceKey::new(&envelope.space, *secret).id();
        woken.extend(met(db, &policy, Need::Key(key))?);
    }
    let mut changes = passage.work.finish();
    changes.extend(woken);
    Ok(Next::End(Outcome::Applied(seq), changes))
}
