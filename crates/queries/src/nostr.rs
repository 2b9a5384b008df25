//! Nostr events that are served: by filter, and live from the journal.
//!
//! An event is served if it is applied, not deleted, not expired, and the one that counts at its address. A filter reads
//! the narrowest lists that hold all it asks for, merges them from the latest on, and looks at each event it meets; the
//! work of one filter is bounded, whatever it asks for.

use crate::error::QueryError;
use engine::reads::{NostrReads as _, Reads as _, StoreResult};
use engine::rows::JournalKind;
use model::nostr::{Address, AddressName, NostrFilter, NostrId, VerifiedNostr};
use model::{AuthorKey, Nanos, NostrKey, Seq, SpaceId, Stamp};
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;
use store::Db;
use store::nostr::NostrIndex;
use store::tables::TableReads;

/// The most events that one filter brings.
pub const EVENTS_PER_FILTER_MAX: usize = 500;
/// The most events that one filter looks at, whether it asks for them or not.
const CANDIDATES_MAX: usize = 20_000;
/// Rows that are read of a list at a time.
const CHUNK: usize = 64;

/// An event that is served, with its JSON.
#[derive(Clone, Debug)]
pub struct ServedEvent {
    pub event: VerifiedNostr,
    pub json: Arc<str>,
}

/// What a filter brings.
#[derive(Clone, Debug, Default)]
pub struct FoundEvents {
    /// The latest first.
    pub events: Vec<ServedEvent>,
    /// Whether there may be more that it asks for.
    pub has_more: bool,
}

/// The latest events that a filter asks for.
pub fn find_events<V: TableReads>(
    db: &Db<V>,
    filter: &NostrFilter,
    banned: &BTreeSet<NostrKey>,
    now: Nanos,
) -> Result<FoundEvents, QueryError> {
    let most = filter.limit.unwrap_or(EVENTS_PER_FILTER_MAX).min(EVENTS_PER_FILTER_MAX);
    let mut found = FoundEvents::default();
    let is_cut = visit_matches(db, filter, banned, now, &mut |served| {
        if found.events.len() == most {
            found.has_more = true;
            return false;
        }
        found.events.push(served);
        true
    })?;
    found.has_more |= is_cut;
    Ok(found)
}

/// The event that counts at an address, if it is served.
pub fn find_at<V: TableReads>(
    db: &Db<V>,
    address: &Address,
    banned: &BTreeSet<NostrKey>,
    now: Nanos,
) -> Result<Option<VerifiedNostr>, QueryError> {
    let Some(author) = db.number_of(&AuthorKey::Nostr(address.author))? else { return Ok(None) };
    let winner = db.address_winner(address.kind, author, &AddressName::of(&address.identifier))?;
    let Some((_, seq)) = winner.filter(|_| !banned.contains(&address.author)) else { return Ok(None) };
    Ok(served(db, seq, now)?.map(|served| served.event))
}

/// How many events a filter asks for, and whether there may be more than were counted.
pub fn count_events<V: TableReads>(
    db: &Db<V>,
    filter: &NostrFilter,
    banned: &BTreeSet<NostrKey>,
    now: Nanos,
) -> Result<(usize, bool), QueryError> {
    let mut count = 0;
    let is_cut = visit_matches(db, filter, banned, now, &mut |_| {
        count += 1;
        true
    })?;
    Ok((count, is_cut))
}

/// The time and id of every event that a filter asks for, for set reconciliation; none if there are too many.
pub fn list_ids<V: TableReads>(
    db: &Db<V>,
    filter: &NostrFilter,
    banned: &BTreeSet<NostrKey>,
    now: Nanos,
) -> Result<Option<Vec<(u64, NostrId)>>, QueryError> {
    let mut ids = Vec::new();
    let is_cut = visit_matches(db, filter, banned, now, &mut |served| {
        ids.push((served.event.created_at, served.event.id));
        true
    })?;
    Ok((!is_cut).then_some(ids))
}

/// Hands every event that a filter asks for, but those of banned authors, to a function, the latest first, until that says no. Says whether it ended
/// because it had looked at enough.
fn visit_matches<V: TableReads>(
    db: &Db<V>,
    filter: &NostrFilter,
    banned: &BTreeSet<NostrKey>,
    now: Nanos,
    visit: &mut dyn FnMut(ServedEvent) -> bool,
) -> Result<bool, QueryError> {
    let matches = |served: &ServedEvent| filter.matches(&served.event) && !banned.contains(&served.event.author);
    if let Some(ids) = &filter.ids {
        let mut found = Vec::new();
        for id in ids {
            let Some(seq) = db.seq(&id.short())? else { continue };
            found.extend(served(db, seq, now)?.filter(matches));
        }
        found.sort_by_key(|served| std::cmp::Reverse((served.event.created_at, served.event.id)));
        let _ = found.into_iter().all(visit);
        return Ok(false);
    }
    let mut lists = Merged::new(db, filter)?;
    for _ in 0..CANDIDATES_MAX {
        let Some((_, seq)) = lists.next(db)? else { return Ok(false) };
        if let Some(served) = served(db, seq, now)?
            && matches(&served)
            && !visit(served)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A list of events that is read a part at a time.
struct EventList {
    index: NostrIndex,
    /// Rows that were read and not used yet.
    rows: VecDeque<(Stamp, Seq)>,
    /// Where reading goes on.
    before: Stamp,
}

/// Lists of events, merged from the latest on, each event once.
struct Merged {
    lists: Vec<EventList>,
    heads: BinaryHeap<(Stamp, usize)>,
    since: Nanos,
    last: Option<Stamp>,
}

impl Merged {
    fn new<V: TableReads>(db: &Db<V>, filter: &NostrFilter) -> StoreResult<Merged> {
        let nanos = |seconds: u64| Nanos(seconds.saturating_mul(Nanos::SECOND));
        let before = filter
            .until
            .map_or(Stamp::LAST, |until| Stamp { at: nanos(until.saturating_add(1)), id: model::EventId::ZERO });
        let list = |index| EventList { index, rows: VecDeque::new(), before };
        let lists = indexes(db, filter)?.into_iter().map(list).collect();
        let since = filter.since.map_or(Nanos(0), nanos);
        let mut merged = Merged { lists, heads: BinaryHeap::new(), since, last: None };
        for number in 0..merged.lists.len() {
            merged.refill(db, number)?;
        }
        Ok(merged)
    }

    /// Reads on in a list whose rows are used up, and puts its next one among the heads.
    fn refill<V: TableReads>(&mut self, db: &Db<V>, number: usize) -> StoreResult<()> {
        let Some(EventList { index, rows, before }) = self.lists.get_mut(number) else { return Ok(()) };
        if rows.is_empty() {
            rows.extend(db.nostr_events(*index, self.since, *before, CHUNK)?);
            *before = rows.back().map_or(Stamp::FIRST, |(stamp, _)| *stamp);
        }
        self.heads.extend(rows.front().map(|(stamp, _)| (*stamp, number)));
        Ok(())
    }

    fn next<V: TableReads>(&mut self, db: &Db<V>) -> StoreResult<Option<(Stamp, Seq)>> {
        while let Some((stamp, number)) = self.heads.pop() {
            let row = self.lists.get_mut(number).and_then(|list| list.rows.pop_front());
            self.refill(db, number)?;
            if self.last.replace(stamp) != Some(stamp) {
                return Ok(row);
            }
        }
        Ok(None)
    }
}

/// The lists that together hold everything that a filter asks for.
fn indexes<V: TableReads>(db: &Db<V>, filter: &NostrFilter) -> StoreResult<Vec<NostrIndex>> {
    if let Some(tag) = filter.tags.iter().min_by_key(|tag| tag.values.len()) {
        let index = |value: &String| NostrIndex::Tag(tag.letter as u8, AddressName::of(value));
        return Ok(tag.values.iter().map(index).collect());
    }
    if let Some(authors) = &filter.authors {
        let Some(commons) = db.space_no(&SpaceId::COMMONS)? else { return Ok(Vec::new()) };
        let mut lists = Vec::new();
        for author in authors {
            lists.extend(db.number_of(&AuthorKey::Nostr(*author))?.map(|number| NostrIndex::Author(commons, number)));
        }
        return Ok(lists);
    }
    Ok(match &filter.kinds {
        Some(kinds) => kinds.iter().map(|kind| NostrIndex::Kind(*kind)).collect(),
        None => vec![NostrIndex::Times],
    })
}

/// An event, if it is served.
fn served<V: TableReads>(db: &Db<V>, seq: Seq, now: Nanos) -> StoreResult<Option<ServedEvent>> {
    let Some((event, json)) = db.shown_nostr_event(seq)? else { return Ok(None) };
    if event.expires_at().is_some_and(|at| at <= now.0 / Nanos::SECOND) {
        return Ok(None);
    }
    if let Some(address) = Address::of(&event) {
        let Some(author) = db.number_of(&AuthorKey::Nostr(address.author))? else { return Ok(None) };
        let winner = db.address_winner(address.kind, author, &AddressName::of(&address.identifier))?;
        if winner.is_none_or(|(_, winner)| winner != seq) {
            return Ok(None);
        }
    }
    Ok(Some(ServedEvent { event, json: json.into() }))
}

/// The events that journal entries after one number, up to another, made visible, with the numbers of the entries.
pub fn served_since<V: TableReads>(
    db: &Db<V>,
    mut from: u64,
    to: u64,
    now: Nanos,
) -> Result<Vec<(u64, ServedEvent)>, QueryError> {
    let Some(commons) = db.space_no(&SpaceId::COMMONS)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    while from < to {
        let entries = db.journal(Some(commons), from, CHUNK)?;
        let Some((last, _)) = entries.last() else { break };
        from = *last;
        for (number, entry) in entries.iter().filter(|(number, _)| *number <= to) {
            if entry.kind == JournalKind::Applied
                && let Some(served) = served(db, entry.seq, now)?
            {
                found.push((*number, served));
            }
        }
    }
    Ok(found)
}
