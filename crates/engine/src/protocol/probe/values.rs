//! Values and clears: what they need, the rows they leave, and what a clear reaches.

use crate::change::{Change, ProbeChange, RowChange};
use crate::content::{self, EventDraft};
use crate::opened::Opened;
use crate::policy::Policy;
use crate::protocol::AppliedEvent;
use crate::reads::{Reads, StoreResult};
use crate::rows::ProbeTask;
use model::probe::{ProbeKey, ProbeKind, ProbeName, ProbeStatement};
use model::{AuthorKey, AuthorNo, EventId, Need, Seq, Stamp};

/// The value that must be applied before this event: the one a clear is about, or the one that a value comes after.
pub(super) fn needed_value(event: &ProbeStatement) -> Option<Need> {
    let name = match event.kind {
        ProbeKind::Value if event.after.is_empty() => return None,
        ProbeKind::Value => &event.after,
        ProbeKind::Clear => &event.name,
    };
    Some(Need::Probe { author: event.author, name: name.clone() })
}

/// Whether an author has a value under a name.
pub(super) fn has_value(db: &impl Reads, author: &ProbeKey, name: &str) -> StoreResult<bool> {
    let Some(author) = db.number_of(&AuthorKey::Probe(*author))? else { return Ok(false) };
    Ok(!db.probe_values(author, &ProbeName::of(name), Stamp::FIRST, 1)?.is_empty())
}

/// Where a value stands among those of its name: by time, and at the same time the least id last. The last wins.
pub(super) fn winning_place(stamp: Stamp) -> Stamp {
    use model::planted::{PlantedBug, is_planted};
    if is_planted(PlantedBug::ProbeGreatestIdWins) {
        return stamp;
    }
    Stamp { id: EventId(stamp.id.0.map(|byte| !byte)), ..stamp }
}

pub(super) fn standing_rows(event: AppliedEvent<'_, ProbeStatement>) -> Vec<Change> {
    let AppliedEvent { seq, stamp, meta, opened } = event;
    let name = ProbeName::of(&opened.name);
    let own = match opened.kind {
        ProbeKind::Value => ProbeChange::Value(meta.author, name, winning_place(stamp), seq),
        ProbeKind::Clear => ProbeChange::Clear(meta.author, name, stamp, seq),
    };
    vec![Change::ByAuthor(meta.space, meta.author, stamp, seq), own.into()]
}

/// A clear has its author's values under the name looked at again.
pub(super) fn effects(event: AppliedEvent<'_, ProbeStatement>) -> Vec<Change> {
    match event.opened.kind {
        ProbeKind::Value => Vec::new(),
        ProbeKind::Clear => {
            let (author, name) = (event.meta.author, ProbeName::of(&event.opened.name));
            vec![Change::Task(RowChange::Put, ProbeTask { author, name, after: Stamp::FIRST }.into())]
        }
    }
}

/// The least clear after a value, if there is one.
pub(super) fn cleared_by(
    db: &impl Reads,
    author: AuthorNo,
    event: &ProbeStatement,
    stamp: Stamp,
) -> StoreResult<Option<Stamp>> {
    match event.kind {
        ProbeKind::Value => db.least_clear(author, &ProbeName::of(&event.name), stamp),
        ProbeKind::Clear => Ok(None),
    }
}

/// Looks again at a bounded number of values after a clear came.
pub(super) fn recheck(db: &impl Reads, policy: &Policy, task: ProbeTask) -> StoreResult<Vec<Change>> {
    let mut changes = vec![Change::Task(RowChange::Remove, task.into())];
    let values = db.probe_values(task.author, &task.name, task.after, policy.releases_max)?;
    for (_, seq) in &values {
        changes.extend(recheck_one(db, policy, *seq)?);
    }
    if let (Some((last, _)), true) = (values.last(), values.len() == policy.releases_max) {
        changes.push(Change::Task(RowChange::Put, ProbeTask { after: *last, ..task }.into()));
    }
    Ok(changes)
}

fn recheck_one(db: &impl Reads, policy: &Policy, seq: Seq) -> StoreResult<Vec<Change>> {
    let (Some(row), Some(Opened::Probe(event))) = (db.event(seq)?, db.open_event(seq)?) else { return Ok(Vec::new()) };
    let (Some(meta), Some(stamp)) = (&row.meta, row.stamp()) else { return Ok(Vec::new()) };
    let by = cleared_by(db, meta.author, &event, stamp)?;
    let mut draft = EventDraft::new(seq, row);
    Ok(if by.is_some() && content::recheck(db, policy, &mut draft, by)? { draft.finish() } else { Vec::new() })
}
