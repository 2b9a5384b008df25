//! Checking a data folder against the invariants: nothing is changed, everything wrong is named.

mod files;
mod objects;
mod totals;

use crate::database::db::Db;
use crate::database::open::Store;
use crate::encode::{self, Usage, usage_index};
use crate::keys::*;
use crate::maintenance::rebuild::rebuild;
use crate::maintenance::verify_rows::name_row;
use crate::tables::{Snapshot, TableReads as _, export_rows};
use engine::reads::{Reads, StoreError, StoreResult};
use engine::release::owner_of;
use engine::rows::{ContentLocation, EventRow, Meta};
use model::stage::{ContentState, Stage};
use model::{Group, Nanos, Need, Seq, SpaceId};
use std::collections::{HashMap, HashSet};

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// How many events were looked at.
    pub events: u64,
    /// How many contents were looked at.
    pub contents: u64,
    /// The digest of the views as they are.
    pub digest: String,
    /// How many contents and events rest under keys that were destroyed; they are not looked into.
    pub unreadable: u64,
    /// What is wrong; empty if nothing is.
    pub problems: Vec<String>,
    /// Events that are parked: the rows are in order, but somebody should know.
    pub parked: Vec<String>,
}

/// More than this many problems are only counted.
const PROBLEMS_MAX: usize = 100;

struct Check<'a> {
    db: &'a Db<Snapshot>,
    report: VerifyReport,
    more: u64,
    counts: HashMap<ContentKey, u64>,
    usage: HashMap<UsageKey, Usage>,
    owners: HashMap<OwnerKey, u64>,
    waiting: u64,
    held: u64,
    content_waiting: u64,
    file_bytes: u64,
    ready: u64,
    carried: u64,
    unused: u64,
    hunters: HashMap<HunterKey<'static>, u64>,
    hunted: HashSet<HuntedKey<'static>>,
    groups: HashSet<Group>,
    at_rest: bool,
    /// Whether every row can be read.
    is_readable: bool,
}

impl Store {
    /// Checks everything that can be checked without changing anything. No other writes meanwhile.
    pub fn verify(&self, now: Nanos) -> StoreResult<VerifyReport> {
        self.verify_at(Some(now))
    }

    /// Checks what can be checked while others write: all but that the views are those that follow from the events.
    pub fn verify_beside(&self) -> StoreResult<VerifyReport> {
        self.verify_at(None)
    }

    fn verify_at(&self, rebuilding_at: Option<Nanos>) -> StoreResult<VerifyReport> {
        let db = self.snapshot()?;
        let mut check = Check {
            at_rest: db.is_at_rest()?,
            db: &db,
            report: VerifyReport::default(),
            more: 0,
            counts: HashMap::new(),
            usage: HashMap::new(),
            owners: HashMap::new(),
            waiting: 0,
            held: 0,
            content_waiting: 0,
            file_bytes: 0,
            ready: 0,
            carried: 0,
            unused: 0,
            hunters: HashMap::new(),
            hunted: HashSet::new(),
            groups: HashSet::new(),
            is_readable: true,
        };
        check.is_readable = check.rows()?;
        check.events()?;
        check.contents()?;
        check.objects()?;
        check.files()?;
        // What rows say together cannot be told where one of them cannot be read.
        if check.is_readable {
            check.totals()?;
            check.numbers()?;
            check.usage()?;
            check.schedule()?;
            db.check_space(&mut |problem| check.wrong(problem))?;
            db.check_nostr(&mut |problem| check.wrong(problem))?;
            #[cfg(feature = "simulation")]
            db.check_probe(&mut |problem| check.wrong(problem))?;
            let between_rows = db.shared_problems()?.into_iter().chain(db.journal_problems()?);
            between_rows.for_each(|problem| check.wrong(problem));
            check.views(self, rebuilding_at)?;
        }
        let Check { mut report, more, .. } = check;
        if more > 0 {
            report.problems.push(format!("and {more} more problems"));
        }
        Ok(report)
    }
}

impl Check<'_> {
    fn wrong(&mut self, what: String) {
        if self.report.problems.len() < PROBLEMS_MAX {
            self.report.problems.push(what);
        } else {
            self.more += 1;
        }
    }

    fn require(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.wrong(what());
        }
    }

    /// Every row of every table fits its checksum. Answers whether all do.
    fn rows(&mut self) -> StoreResult<bool> {
        let (db, mut is_readable) = (self.db, true);
        export_rows::<StoreError>(&db.tables, &mut |table, key, stored| {
            if stored.is_none() {
                is_readable = false;
                self.wrong(format!("{}{}", name_row(table, key), db.meaning_of_row(table, key)));
            }
            Ok(())
        })?;
        Ok(is_readable)
    }

    fn events(&mut self) -> StoreResult<()> {
        let db = self.db;
        for entry in db.tables.events().iter()? {
            let Some(entry) = self.db.unless_damaged(entry)? else { break };
            self.report.events += 1;
            let seq = entry.key().seq();
            // A row that is damaged was named already.
            let Ok(bytes) = entry.value() else { continue };
            match self.event(seq, bytes) {
                Err(StoreError::Broken(why)) => self.wrong(format!("{seq}: {why}")),
                other => other?,
            }
        }
        let ids = db.tables.ids().len()?;
        let events = self.report.events;
        self.require(ids == events || !self.is_readable, || format!("{ids} ids but {events} events"));
        Ok(())
    }

    fn event(&mut self, seq: Seq, bytes: &[u8]) -> StoreResult<()> {
        let db = self.db;
        let parts = encode::decode_event(bytes)?;
        self.inline(seq, &parts)?;
        let is_own = model::Blob::id_of(parts.blob).is_ok_and(|id| id == parts.row.id);
        self.require(is_own, || format!("{seq}: its blob is that of another event"));
        let row = parts.row;
        let known = db.seq(&row.id)?;
        self.require(known == Some(seq), || format!("{seq}: its id leads to {known:?}"));
        let refused = db.refused(&row.id)?.is_some();
        self.require(!refused, || format!("{seq}: kept although its id was refused"));
        self.stage(seq, &row)?;
        row.meta.as_ref().map_or(Ok(()), |meta| self.content_of(seq, &row, meta))
    }

    /// Inline content that rests protected opens, unless its keys were destroyed.
    fn inline(&mut self, seq: Seq, parts: &encode::EventParts<'_>) -> StoreResult<()> {
        let is_at_rest = parts.inline.as_ref().is_some_and(|inline| inline.is_at_rest);
        match (self.db.open_inline(parts), model::Blob::open_space_of(parts.blob)) {
            (Ok(None), Some(space)) if is_at_rest => {
                self.unreadable(&space, || format!("{seq}: the key of its inline content is gone"))
            }
            (Ok(_), _) => Ok(()),
            (Err(_), _) => {
                self.wrong(format!("{seq}: its inline content cannot be read"));
                Ok(())
            }
        }
    }

    /// What cannot be read because its keys were destroyed is only counted.
    fn unreadable(&mut self, space: &SpaceId, what: impl FnOnce() -> String) -> StoreResult<()> {
        if self.db.is_destroyed(space)? {
            self.report.unreadable += 1;
        } else {
            self.wrong(what());
        }
        Ok(())
    }

    fn stage(&mut self, seq: Seq, row: &EventRow) -> StoreResult<()> {
        let db = self.db;
        match &row.stage {
            Stage::Held { unmet, until, .. } => self.held_event(seq, row, unmet, *until),
            Stage::Ready => {
                self.ready += 1;
                let queued = db.tables.ready().contains(EventNo::new(seq))?;
                self.require(queued, || format!("{seq}: ready but not in the queue"));
                Ok(())
            }
            Stage::Applied { position } => {
                let next = db.next_position()?;
                self.require(*position < next, || format!("{seq}: applied at {position}, beyond the journal"));
                self.require(row.meta.is_some(), || format!("{seq}: applied but never opened"));
                self.journal(seq, *position)
            }
            Stage::Carried => {
                self.carried += 1;
                let carried = match db.space_of(seq)? {
                    Some(space) => db.carried(&space, Seq(seq.0.saturating_sub(1)), 1)?.first() == Some(&seq),
                    None => false,
                };
                self.require(carried, || format!("{seq}: carried but not listed"));
                Ok(())
            }
            Stage::Parked { why } => {
                let what = format!("event {} is parked: {why}; `anteroom retry {0}` looks at it again", row.id);
                if self.report.parked.len() < PROBLEMS_MAX {
                    self.report.parked.push(what);
                }
                let is_listed = db.tables.parked().contains(EventNo::new(seq))?;
                self.require(is_listed, || format!("{seq}: parked but not listed"));
                Ok(())
            }
            Stage::Refused { .. } | Stage::Expired => {
                self.wrong(format!("{seq}: {} but kept", row.stage.word()));
                Ok(())
            }
        }
    }

    /// Entries are trimmed by age, but one that is there speaks of its event.
    fn journal(&mut self, seq: Seq, position: u64) -> StoreResult<()> {
        let fits = match self.db.tables.journal().get(JournalNo::new(position))? {
            Some(entry) => entry.seq == seq,
            None => self.db.tables.journal().first()?.is_none_or(|first| first.key().number() > position),
        };
        self.require(fits, || format!("{seq}: its journal entry {position} is missing or speaks of another event"));
        Ok(())
    }

    fn held_event(&mut self, seq: Seq, row: &EventRow, unmet: &[Need], until: Nanos) -> StoreResult<()> {
        let db = self.db;
        self.held += 1;
        self.require(!unmet.is_empty(), || format!("{seq}: held for nothing"));
        let owner = owner_of(row);
        *self.owners.entry(OwnerKey::new(owner)).or_default() += 1;
        let listed = db.tables.held().contains(HeldKey::new(until, seq))?;
        self.require(listed, || format!("{seq}: held but not listed by its deadline"));
        let space = db.space_of(seq)?;
        for need in unmet {
            self.waiting += 1;
            let reverse = db.waiting(need, Seq(seq.0.saturating_sub(1)), 1)?.first() == Some(&seq);
            self.require(reverse, || format!("{seq}: waits for {need}, which does not know"));
            // A time is over when the writer looks at it, not when a check does.
            let met = engine::release::is_met(db, need, space.as_ref(), Nanos(0))?;
            self.require(!met || !self.at_rest, || format!("{seq}: waits for {need}, which is here"));
            if let Some(space) = space {
                if !need.is_hunted_by_space() {
                    self.groups.extend(Group::of(need, space));
                    continue;
                }
                *self.hunters.entry(HunterKey::new(need, &space)).or_default() += 1;
                let is_here = match need {
                    Need::Event(id) => db.tables.ids().contains(EventIdKey::new(*id))?,
                    _ => false,
                };
                if !is_here {
                    self.hunted.insert(HuntedKey::new(&space, need));
                    self.groups.extend(Group::of(need, space));
                }
            }
        }
        Ok(())
    }

    fn content_of(&mut self, seq: Seq, row: &EventRow, meta: &Meta) -> StoreResult<()> {
        let db = self.db;
        let usage = UsageKey::new(meta.space, meta.author);
        let slot = &mut self.usage.entry(usage).or_default().by_state[usage_index(row.content)];
        *slot = (slot.0 + 1, slot.1.saturating_add(meta.content_len));
        let shared = meta.content_len > db.policy.inline_bytes_max;
        if shared && row.content.holds_reference() {
            *self.counts.entry(ContentKey::new(meta.space, meta.content_hash)).or_default() += 1;
        }
        if row.content == ContentState::Missing && row.is_applied() {
            self.content_waiting += 1;
            let waits = db.waiting_for_content(meta.space, &meta.content_hash, Seq(seq.0.saturating_sub(1)), 1)?;
            self.require(waits.first() == Some(&seq), || format!("{seq}: misses content that does not know"));
            let here =
                db.content(meta.space, &meta.content_hash)?.is_some_and(|row| row.place != ContentLocation::Absent);
            self.require(!(here && shared && self.at_rest), || format!("{seq}: misses content that is here"));
            self.groups.insert(Group::Content(db.space_id(meta.space)?, meta.content_hash));
        }
        self.bytes_of_file(seq, row, meta)?;
        let needs_inline = row.content == ContentState::Processed && !shared && meta.content_len > 0;
        self.require(!needs_inline || row.has_inline, || format!("{seq}: its inline content is gone"));
        self.require(row.content.holds_reference() || !row.has_inline, || {
            format!("{seq}: {} but its inline content is still here", row.content.word())
        });
        Ok(())
    }

    fn contents(&mut self) -> StoreResult<()> {
        let db = self.db;
        for (space, wanted) in db.references_of_files()? {
            match db.space_no(&space)? {
                Some(no) => *self.counts.entry(ContentKey::new(no, wanted.hash)).or_default() += 1,
                None => self.wrong(format!("a file of the unknown space {space} refers to content")),
            }
        }
        let mut counts = std::mem::take(&mut self.counts);
        for entry in db.tables.contents().iter()? {
            let Some(entry) = self.db.unless_damaged(entry)? else { break };
            self.report.contents += 1;
            let (key, Ok(row)) = (entry.key(), entry.value()) else { continue };
            let counted = counts.remove(&key).unwrap_or(0);
            let (space, hash) = (key.space(), key.hash());
            self.require(row.count == counted || !self.is_readable, || {
                format!("content {hash}: {} references noted, {counted} counted", row.count)
            });
            self.require(row.count > 0 || row.place != ContentLocation::Absent, || {
                format!("content {hash}: a row for nothing")
            });
            let unused = match row.unused_since {
                Some(since) => {
                    db.unless_damaged(db.tables.unused().contains(UnusedContentKey::new(since, space, hash)))?
                }
                None => Some(false),
            };
            self.require(unused.is_none_or(|unused| unused == (row.count == 0)), || {
                format!("content {hash}: wrongly listed as used or unused")
            });
            self.unused += u64::from(row.unused_since.is_some());
            self.bytes(space, &hash, row.place, row.len)?;
        }
        let is_readable = self.is_readable;
        for (key, _) in counts.into_iter().filter(|_| is_readable) {
            self.wrong(format!("content {}: referred to without a row", key.hash()));
        }
        Ok(())
    }

    fn views(&mut self, store: &Store, rebuilding_at: Option<Nanos>) -> StoreResult<()> {
        let before = self.db.digest()?;
        self.report.digest = before.to_string();
        let Some(now) = rebuilding_at.filter(|_| self.at_rest) else { return Ok(()) };
        let after = store.try_out(|transaction| {
            let rebuilt = rebuild(store.shared.clone(), transaction, now, &mut |_| ())?;
            let db = &rebuilt.batch.db;
            Ok((rebuilt.unreadable == 0).then_some((
                db.digest()?,
                db.sums_of_views()?,
                db.deletes_missing_in(self.db)?,
            )))
        })?;
        // Events that nobody can open any more stay in the views until these are rebuilt.
        let Some((after, sums, lost)) = after else { return Ok(()) };
        self.require(lost == 0, || {
            format!("{lost} deletes are missing in the table of deletes; `anteroom rebuild-views` puts them back")
        });
        self.require(before == after, || format!("the views have digest {before}, rebuilt they have {after}"));
        for (table, sum) in self.db.sums_of_views()? {
            let is_same = sums.get(table) == Some(&sum);
            self.require(is_same, || {
                format!("the table {table} has other rows when it is rebuilt; `anteroom rebuild-views` does that")
            });
        }
        Ok(())
    }
}
