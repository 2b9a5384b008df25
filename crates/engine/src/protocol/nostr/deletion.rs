//! Deletion (NIP-09) and vanishing (NIP-62): an author's own events, by id, by address, or all of them up to a time. A
//! delete finds its targets whether they came before it or come later.

use crate::change::{Change, NostrChange, RowChange};
use crate::content::{self, EventDraft};
use crate::opened::Opened;
use crate::policy::Policy;
use crate::protocol::AppliedEvent;
use crate::reads::{Reads, StoreResult};
use crate::rows::{DeleteTarget, NostrTask};
use model::nostr::{Address, AddressName, DELETION, NostrId, VANISH, VerifiedNostr};
use model::planted::{PlantedBug, is_planted};
use model::{AuthorNo, EventId, Seq, Stamp};
use std::collections::BTreeSet;

/// Held events of an author that a delete looks at, the latest to have come first.
const HELD_MAX: usize = 1024;

/// What a delete names, each once.
fn targets(event: &VerifiedNostr) -> BTreeSet<DeleteTarget> {
    match event.kind {
        DELETION => {
            let first = |tag: &'static str| event.tags_of(tag).filter_map(|values| values.first());
            let ids = first("e").filter_map(|id| id.parse::<NostrId>().ok()).map(|id| DeleteTarget::event(id.short()));
            let own = |address: &Address| address.author == event.author;
            let addresses = first("a").filter_map(|text| text.parse().ok()).filter(own);
            ids.chain(addresses.map(|address| DeleteTarget::address(&address))).collect()
        }
        VANISH => [DeleteTarget::EVERYTHING].into(),
        _ => BTreeSet::new(),
    }
}

pub(super) fn delete_rows(author: AuthorNo, stamp: Stamp, event: &VerifiedNostr, seq: Seq) -> Vec<Change> {
    targets(event).into_iter().map(|target| NostrChange::Delete(author, target, stamp, seq).into()).collect()
}

/// The least delete that reaches an event, if any does. Deletes themselves cannot be deleted.
pub(super) fn deleted_by(
    db: &impl Reads,
    id: &EventId,
    author: AuthorNo,
    event: &VerifiedNostr,
) -> StoreResult<Option<Stamp>> {
    if matches!(event.kind, DELETION | VANISH) {
        return Ok(None);
    }
    // By address, and by vanishing, only what is not later than the delete.
    let from = Stamp { at: event.at(), id: EventId::ZERO };
    let mut least = db.least_delete(author, &DeleteTarget::event(*id), Stamp::FIRST)?;
    let address = Address::of(event).map(|address| DeleteTarget::address(&address));
    for target in address.into_iter().chain([DeleteTarget::EVERYTHING]) {
        least = [least, db.least_delete(author, &target, from)?].into_iter().flatten().min();
    }
    Ok(least)
}

/// A delete has what it names looked at again.
pub(super) fn effects<R: Reads>(db: &R, event: AppliedEvent<'_, VerifiedNostr>) -> StoreResult<Vec<Change>> {
    let AppliedEvent { meta, opened, .. } = event;
    let mut tasks = Vec::new();
    match opened.kind {
        DELETION => {
            let ids = opened.tags_of("e").filter_map(|values| values.first()?.parse::<NostrId>().ok());
            for id in ids.map(|id| id.short()).collect::<BTreeSet<_>>() {
                if db.seq(&id)?.is_some() {
                    tasks.push(NostrTask::Event { author: meta.author, id });
                }
            }
            let addresses = opened.tags_of("a").filter_map(|values| values.first()?.parse::<Address>().ok());
            let own = addresses.filter(|address| address.author == opened.author).collect::<BTreeSet<_>>();
            if !own.is_empty() {
                let is_named = |held: &VerifiedNostr| Address::of(held).is_some_and(|address| own.contains(&address));
                tasks.extend(held_events(db, meta.author, is_named)?);
            }
            for address in own {
                let name = AddressName::of(&address.identifier);
                tasks.push(NostrTask::Address { kind: address.kind, name, author: meta.author, after: Stamp::FIRST });
            }
        }
        VANISH => {
            tasks.push(NostrTask::Author { space: meta.space, author: meta.author, after: Stamp::FIRST });
            tasks.extend(held_events(db, meta.author, |_| true)?);
        }
        _ => {}
    }
    Ok(tasks.into_iter().map(|task| Change::Task(RowChange::Put, task.into())).collect())
}

/// What of an author waits and has to be looked at: no row but its own says where it stands.
fn held_events(
    db: &impl Reads,
    author: AuthorNo,
    is_named: impl Fn(&VerifiedNostr) -> bool,
) -> StoreResult<Vec<NostrTask>> {
    let mut tasks = Vec::new();
    if is_planted(PlantedBug::HeldEscapesDeletion) {
        return Ok(tasks);
    }
    for seq in db.held_of(author, HELD_MAX)? {
        if let (Some(row), Some(Opened::Nostr(event))) = (db.event(seq)?, db.open_event(seq)?)
            && is_named(&event)
        {
            tasks.push(NostrTask::Event { author, id: row.id });
        }
    }
    Ok(tasks)
}

/// Looks again at a bounded number of events after a delete came.
pub(super) fn run_task(db: &impl Reads, policy: &Policy, task: NostrTask) -> StoreResult<Vec<Change>> {
    let mut changes = vec![Change::Task(RowChange::Remove, task.into())];
    let most = policy.releases_max;
    let (author, found) = match task {
        NostrTask::Event { author, id } => {
            (author, db.seq(&id)?.map(|seq| (Stamp::LAST, seq)).into_iter().collect::<Vec<_>>())
        }
        NostrTask::Address { kind, name, author, after } => (author, db.at_address(kind, &name, author, after, most)?),
        NostrTask::Author { space, author, after } => (author, db.by_author(space, author, after, most)?),
    };
    for (_, seq) in &found {
        changes.extend(delete_one(db, policy, author, *seq)?);
    }
    let last = found.last().filter(|_| found.len() == most).and_then(|(last, _)| task.after(*last));
    changes.extend(last.map(|rest| Change::Task(RowChange::Put, rest.into())));
    Ok(changes)
}

/// Deletes one event of that author, held or applied, if a delete reaches it.
fn delete_one(db: &impl Reads, policy: &Policy, author: AuthorNo, seq: Seq) -> StoreResult<Vec<Change>> {
    let (Some(row), Some(Opened::Nostr(event))) = (db.event(seq)?, db.open_event(seq)?) else { return Ok(Vec::new()) };
    if row.meta.as_ref().is_none_or(|meta| meta.author != author) {
        return Ok(Vec::new());
    }
    let by = deleted_by(db, &row.id, author, &event)?;
    let mut draft = EventDraft::new(seq, row);
    if by.is_none() || !content::recheck(db, policy, &mut draft, by)? {
        return Ok(Vec::new());
    }
    let mut changes = draft.finish();
    changes.extend(super::rows::alignments(db, &event)?);
    Ok(changes)
}
