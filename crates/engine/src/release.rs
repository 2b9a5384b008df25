//! Waking what waited, ending what waited too long, and the work that goes on from transaction to transaction.

use crate::change::{Change, Turn};
use crate::content;
use crate::content::Work;
use crate::counting::counts;
use crate::policy::Policy;
use crate::reads::{Answer, Fault, Reads};
use crate::rows::{EventRow, JournalKind, Limit, Owner, Task};
use crate::space::{rules, views};
use model::planted::{Bug, is_planted};
use model::stage::{Stage, StageInput, Why};
use model::{AuthorNo, EventId, Kind, Nanos, Need, Seq, SpaceId, SpaceNo, Stamp};

/// Up to this many are woken in the very step that met their need; more are a task of their own.
const WOKEN_AT_ONCE_MAX: usize = 64;

/// What follows when a need is met: those that wait for it are woken, now or as a task.
pub fn met(db: &impl Reads, policy: &Policy, need: Need) -> Answer<Vec<Change>> {
    let at_once = WOKEN_AT_ONCE_MAX.min(policy.releases_max);
    let waiting = db.waiting(&need, Seq(0), at_once + 1)?;
    if waiting.len() > at_once {
        return Ok(vec![Change::Task(Turn::Put, Task::Release(need))]);
    }
    wake_all(db, &need, &waiting)
}

fn wake_all(db: &impl Reads, need: &Need, waiting: &[Seq]) -> Answer<Vec<Change>> {
    let mut changes = Vec::with_capacity(waiting.len() * 4);
    for seq in waiting {
        changes.extend(wake(db, need, *seq)?);
    }
    Ok(changes)
}

fn wake(db: &impl Reads, need: &Need, seq: Seq) -> Answer<Vec<Change>> {
    let mut changes = vec![Change::Waiting(Turn::Remove, need.clone(), seq)];
    let Some(mut row) = db.event(seq)? else {
        return Err(no_row(seq));
    };
    let owner = owner_of(&row);
    row.stage = row
        .stage
        .next(StageInput::Met(need.clone()))
        .map_err(|edge| Fault::Broken(edge.to_string()))?;
    if row.stage == Stage::Ready {
        changes.push(Change::Held(Turn::Remove, owner, seq, row.received_at));
        changes.push(Change::Ready(Turn::Put, seq));
    }
    changes.push(Change::Row(seq, Box::new(row)));
    Ok(changes)
}

fn no_row(seq: Seq) -> Fault {
    Fault::Broken(format!("{seq} waits for something but has no row"))
}

/// Who answers for a held event.
pub fn owner_of(row: &EventRow) -> Owner {
    match &row.meta {
        Some(meta) => Owner::Author(meta.author),
        None => Owner::Door(row.origin),
    }
}

/// Takes an event out of everything that says it waits, and gives back what it holds.
pub(crate) fn withdraw(policy: &Policy, seq: Seq, row: &EventRow) -> Vec<Change> {
    let mut changes = Vec::new();
    if let Stage::Held { unmet } = &row.stage {
        changes.extend(
            unmet
                .iter()
                .map(|need| Change::Waiting(Turn::Remove, need.clone(), seq)),
        );
        changes.push(Change::Held(Turn::Remove, owner_of(row), seq, row.received_at));
    }
    if let Some(meta) = &row.meta {
        changes.push(Change::Usage(
            Turn::Remove,
            meta.space,
            meta.author,
            row.content,
            meta.content_len,
        ));
        if row.content.holds_reference() && meta.content_len > policy.inline_bytes_max {
            changes.push(Change::GiveBack(meta.space, meta.content_hash));
        }
    }
    changes
}

/// Ends the wait of an event: nothing of it is kept, and it may come again.
pub fn expire(db: &impl Reads, policy: &Policy, seq: Seq, now: Nanos) -> Answer<Vec<Change>> {
    let Some(row) = db.event(seq)? else {
        return Err(no_row(seq));
    };
    row.stage
        .clone()
        .next(StageInput::Expire)
        .map_err(|edge| Fault::Broken(edge.to_string()))?;
    let mut changes = withdraw(policy, seq, &row);
    if is_planted(Bug::ExpiredStillKnown) {
        changes.push(Change::Refused(row.id, Why::NeedsRefused));
    }
    changes.push(Change::Forget(seq, row.id));
    changes.push(Change::Expired(row.id, now));
    changes.push(Change::Count("expired"));
    Ok(changes)
}

/// Ends the carrying of an event, by quota.
pub fn drop_carried(db: &impl Reads, space: &SpaceId, seq: Seq, now: Nanos) -> Answer<Vec<Change>> {
    let Some(row) = db.event(seq)? else {
        return Err(no_row(seq));
    };
    Ok(vec![
        Change::Carried(Turn::Remove, *space, seq),
        Change::Forget(seq, row.id),
        Change::Expired(row.id, now),
        Change::Count("carried-dropped"),
    ])
}

/// Refuses an event for ever; what needs it is woken, to be refused in turn.
pub fn refuse(db: &impl Reads, policy: &Policy, work: Work, opened: bool, why: Why) -> Answer<Vec<Change>> {
    let id = work.row.id;
    let mut changes = work.changes;
    if opened {
        changes.extend(withdraw(policy, work.seq, &work.row));
    }
    changes.push(Change::Forget(work.seq, id));
    changes.push(Change::Refused(id, why));
    changes.push(Change::Count("refused"));
    if !is_planted(Bug::RefusalDoesNotSpread) {
        changes.extend(met(db, policy, Need::Event(id))?);
    }
    Ok(changes)
}

/// Does a bounded part of a task; what is left is a task again.
pub fn run(db: &impl Reads, policy: &Policy, task: Task) -> Answer<Vec<Change>> {
    match task {
        Task::Release(need) => release(db, policy, need),
        Task::Content(space, hash) => content::arrived(db, policy, space, hash),
        Task::Rederive(membership, after) => rederive(db, policy, membership, after),
        Task::Versions(target, after) => content::recheck_versions(db, policy, target, after),
        Task::Join(space, after) => join(db, policy, space, after),
    }
}

fn release(db: &impl Reads, policy: &Policy, need: Need) -> Answer<Vec<Change>> {
    let waiting = db.waiting(&need, Seq(0), policy.releases_max)?;
    let mut changes = wake_all(db, &need, &waiting)?;
    let is_last = waiting.len() < policy.releases_max || is_planted(Bug::ReleaseRestForgotten);
    if is_last {
        changes.push(Change::Task(Turn::Remove, Task::Release(need)));
    }
    Ok(changes)
}

fn join(db: &impl Reads, policy: &Policy, space: SpaceId, after: Seq) -> Answer<Vec<Change>> {
    let carried = db.carried(&space, after, policy.releases_max)?;
    let mut changes = vec![Change::Task(Turn::Remove, Task::Join(space, after))];
    for seq in &carried {
        let Some(mut row) = db.event(*seq)? else {
            return Err(no_row(*seq));
        };
        row.stage = row
            .stage
            .next(StageInput::Wake)
            .map_err(|edge| Fault::Broken(edge.to_string()))?;
        changes.push(Change::Carried(Turn::Remove, space, *seq));
        changes.push(Change::Ready(Turn::Put, *seq));
        changes.push(Change::Row(*seq, Box::new(row)));
    }
    if let (Some(last), true) = (carried.last(), carried.len() == policy.releases_max) {
        changes.push(Change::Task(Turn::Put, Task::Join(space, *last)));
    }
    Ok(changes)
}

/// Looks again at a bounded number of events that stand on a membership whose interval changed.
fn rederive(db: &impl Reads, policy: &Policy, membership: Seq, after: Stamp) -> Answer<Vec<Change>> {
    let mut changes = vec![Change::Task(Turn::Remove, Task::Rederive(membership, after))];
    let Some((space, author)) = member_numbers(db, membership)? else {
        return Ok(changes);
    };
    let events = db.by_author(space, author, after, policy.releases_max)?;
    for (stamp, seq) in &events {
        changes.extend(rederive_one(db, membership, *stamp, *seq)?);
    }
    if let (Some((last, _)), true) = (events.last(), events.len() == policy.releases_max) {
        changes.push(Change::Task(Turn::Put, Task::Rederive(membership, *last)));
    }
    Ok(changes)
}

fn member_numbers(db: &impl Reads, membership: Seq) -> Answer<Option<(SpaceNo, AuthorNo)>> {
    let (Some(member), Some(row)) = (db.membership(membership)?, db.event(membership)?) else {
        return Ok(None);
    };
    let author = db.author_no(&member.member)?;
    Ok(row.meta.map(|meta| meta.space).zip(author))
}

fn rederive_one(db: &impl Reads, membership: Seq, stamp: Stamp, seq: Seq) -> Answer<Vec<Change>> {
    let Some(row) = db.event(seq)? else {
        return Err(no_row(seq));
    };
    let Some(mut meta) = row.meta.clone() else {
        return Err(no_row(seq));
    };
    if meta.authority != membership {
        return Ok(Vec::new());
    }
    let now_counts = counts(db, &meta, stamp)?;
    let mut changes = Vec::new();
    if meta.kind == Kind::Delete {
        // Even where it still counts, it may have lost the rank to reach what others wrote.
        changes.extend(deletion_changed(db, seq)?);
    }
    if now_counts == meta.counts {
        return Ok(changes);
    }
    meta.counts = now_counts;
    let turn = if now_counts { Turn::Put } else { Turn::Remove };
    let kind = if now_counts {
        JournalKind::Shown
    } else {
        JournalKind::Hidden
    };
    let Some(envelope) = db.opened(seq)? else {
        return Err(no_row(seq));
    };
    changes.extend(
        views::rows(&meta, &envelope)
            .into_iter()
            .map(|view| Change::View(turn, view, stamp, seq)),
    );
    changes.push(Change::Journal(meta.space, seq, kind));
    changes.extend(consequences(&meta, turn, stamp, seq));
    let row = EventRow {
        meta: Some(meta),
        ..row
    };
    changes.push(Change::Row(seq, Box::new(row)));
    Ok(changes)
}

/// What follows for others when a grant, a replacement or a removal starts or stops counting.
pub fn consequences(meta: &crate::rows::Meta, turn: Turn, stamp: Stamp, seq: Seq) -> Vec<Change> {
    let mut changes = Vec::new();
    if meta.kind == Kind::Member {
        changes.push(Change::Task(Turn::Put, Task::Rederive(seq, Stamp::FIRST)));
    }
    if matches!(meta.kind, Kind::Member | Kind::Removal) && meta.subject != Seq(0) {
        changes.push(Change::Limit(
            turn,
            meta.subject,
            Limit {
                from: stamp,
                cap: meta.grants,
            },
        ));
        changes.push(Change::Task(Turn::Put, Task::Rederive(meta.subject, stamp)));
    }
    changes
}

/// A delete came, or what it may reach changed: its target is looked at again, in a step of its own.
pub fn deletion_changed(db: &impl Reads, delete: Seq) -> Answer<Vec<Change>> {
    let Some(envelope) = db.opened(delete)? else {
        return Ok(Vec::new());
    };
    let Some(target) = rules::deleted_target(&envelope) else {
        return Ok(Vec::new());
    };
    recheck_task(db, &target)
}

/// The task that looks again at a target, if it is known.
pub fn recheck_task(db: &impl Reads, target: &EventId) -> Answer<Vec<Change>> {
    Ok(match db.seq(target)? {
        Some(seq) => vec![Change::Task(Turn::Put, Task::Versions(seq, Stamp::FIRST))],
        None => Vec::new(),
    })
}
