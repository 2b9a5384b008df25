//! Looking again at what stood on a membership whose interval changed.

use super::counting::counts;
use super::{deletion, kinds};
use crate::change::{Change, RowChange, SpaceChange};
use crate::policy::Policy;
use crate::reads::{Reads, StoreError, StoreResult};
use crate::rows::{EventRow, JournalKind, MembershipLimit, Meta, SpaceTask, Task};
use model::{AuthorNo, Kind, Seq, SpaceNo, Stamp};

fn no_row(seq: Seq) -> StoreError {
    StoreError::Broken(format!("{seq} is applied but has no row"))
}

/// Looks again at events that stand on a membership whose interval changed, a bounded number at a time. All such work
/// goes on in the order of stamps, whichever membership it belongs to: it stops where another task is due first, and
/// after an event whose change concerns others. What an event depends on is then settled before it is looked at, and it
/// is looked at once.
pub fn rederive(db: &impl Reads, policy: &Policy, membership: Seq, after: Stamp) -> StoreResult<Vec<Change>> {
    let mut changes = vec![Change::Task(RowChange::Remove, SpaceTask::Rederive(membership, after).into())];
    let Some((space, author)) = member_numbers(db, membership)? else { return Ok(changes) };
    let horizon = db.next_rederive((membership, after))?.unwrap_or(Stamp::LAST);
    let events = db.by_author(space, author, after, policy.releases_max)?;
    let mut last = None;
    for (stamp, seq) in &events {
        if last.is_some() && *stamp > horizon {
            break;
        }
        last = Some(*stamp);
        let further = rederive_one(db, membership, *stamp, *seq)?;
        let concerns_others =
            further.iter().any(|change| matches!(change, Change::Task(_, Task::Space(SpaceTask::Rederive(..)))));
        changes.extend(further);
        if concerns_others {
            break;
        }
    }
    let is_done = events.len() < policy.releases_max && last == events.last().map(|(stamp, _)| *stamp);
    if let (Some(last), false) = (last, is_done) {
        changes.push(Change::Task(RowChange::Put, SpaceTask::Rederive(membership, last).into()));
    }
    Ok(changes)
}

fn member_numbers(db: &impl Reads, membership: Seq) -> StoreResult<Option<(SpaceNo, AuthorNo)>> {
    let (Some(member), Some(row)) = (db.membership(membership)?, db.event(membership)?) else {
        return Ok(None);
    };
    let author = db.author_no(&member.member)?;
    Ok(row.meta.map(|meta| meta.space).zip(author))
}

fn rederive_one(db: &impl Reads, membership: Seq, stamp: Stamp, seq: Seq) -> StoreResult<Vec<Change>> {
    let Some(row) = db.event(seq)? else {
        return Err(no_row(seq));
    };
    let Some(mut meta) = row.meta.clone() else {
        return Err(no_row(seq));
    };
    if meta.authority != Some(membership) {
        return Ok(Vec::new());
    }
    let now_counts = counts(db, &meta, stamp)?;
    let mut changes = Vec::new();
    if meta.kind == Kind::Edit && now_counts != meta.counts {
        changes.push(Change::Task(RowChange::Put, SpaceTask::Versions(seq, Stamp::FIRST).into()));
    }
    if meta.kind == Kind::Delete {
        // Even where it still counts, it may have lost the rank to reach what others wrote.
        changes.extend(deletion::deletion_changed(db, seq)?);
    }
    if now_counts == meta.counts {
        return Ok(changes);
    }
    meta.counts = now_counts;
    let row_change = if now_counts { RowChange::Put } else { RowChange::Remove };
    let kind = if now_counts { JournalKind::Shown } else { JournalKind::Hidden };
    let Some(envelope) = db.opened(seq)? else {
        return Err(no_row(seq));
    };
    let rows = kinds::rows(&meta, &envelope).into_iter();
    changes.extend(rows.map(|view| SpaceChange::View(row_change, view, stamp, seq).into()));
    changes.push(Change::Journal(meta.space, seq, kind));
    changes.extend(consequences(&meta, row_change, stamp, seq));
    let row = EventRow { meta: Some(meta), ..row };
    changes.push(Change::Row(seq, Box::new(row)));
    Ok(changes)
}

/// What follows for others when a grant, a replacement or a removal starts or stops counting.
pub fn consequences(meta: &Meta, row_change: RowChange, stamp: Stamp, seq: Seq) -> Vec<Change> {
    let mut changes = Vec::new();
    if meta.kind == Kind::Member {
        // Whatever stands on it is later than the grant itself.
        changes.push(Change::Task(RowChange::Put, SpaceTask::Rederive(seq, stamp).into()));
    }
    let is_about_membership = matches!(meta.kind.space(), Some(Kind::Member | Kind::Removal));
    if let Some(subject) = meta.subject.filter(|_| is_about_membership) {
        let limit = MembershipLimit { from: stamp, cap: meta.grants };
        changes.push(SpaceChange::Limit(row_change, subject, limit).into());
        changes.push(Change::Task(RowChange::Put, SpaceTask::Rederive(subject, stamp).into()));
    }
    changes
}
