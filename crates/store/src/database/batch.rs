//! The writer's transaction: changes go in, one commit comes out, and nothing leaves the process before it.
//!
//! Rows that change several times in a batch (events, usage, held counts, schedule) are gathered and written once, in
//! order, at the end. The engine reads through the batch, so that each step sees what the ones before it did.

use crate::at_rest::Inline;
use crate::database::db::{Db, Pending, PendingRow};
use crate::database::keyring::KeyringSecrets;
use crate::database::latest_times::{GREATEST_TIME, HELD_TIME};
use crate::database::numbering::{NEXT_AUTHOR, NEXT_SPACE};
use crate::database::open::StoreShared;
use crate::database::packing::SparseAuthors;
use crate::database::quota::QuotaClaims;
use crate::database::writing_at_rest::Writing;
use crate::encode::{self, JournalEntry, ReceivedAgain};
use crate::keys::*;
use crate::tables::{RowValue, Rows, Stored, Tables};
use engine::change::RowChange;
use engine::fetch;
use engine::reads::{Reads, StoreError, StoreResult};
use engine::rows::{EventRow, JournalKind, Origin, Task};
use engine::{Change, receive::Arrival};
use model::{EventId, Group, Nanos, Seq, SpaceId, SpaceNo};
use redb::WriteTransaction;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// How many journal numbers share one row of the index by space.
pub(crate) const JOURNAL_BLOCK: u64 = 1024;

/// An open transaction of the one writer.
#[derive(Debug)]
pub struct Batch<'t> {
    pub(crate) db: Db<Tables<'t>>,
    pub(crate) now: Nanos,
    pub(crate) shared: Arc<StoreShared>,
    /// The number of the first event that this batch stores.
    first_seq: u64,
    next_seq: u64,
    pub(crate) next_space: u32,
    pub(crate) next_author: u32,
    pub(crate) next_refused: u64,
    pub(crate) next_expired: u64,
    pub(crate) next_version: u64,
    pub(crate) greatest_time: u64,
    held_time_before: u64,
    /// The time that counts for what is held.
    pub(crate) held_time: u64,
    /// How many more shared rows are written before a test cuts the write off.
    #[cfg(test)]
    pub(crate) shared_writes_left: Option<usize>,
    pub(crate) wanted: BTreeMap<Group, fetch::NeedOrigin>,
    counts: BTreeMap<&'static str, u64>,
    pub(super) journal: Vec<(JournalNo, JournalEntry)>,
    pub(super) sparse_authors: SparseAuthors,
    journal_blocks: BTreeSet<JournalBlockKey>,
    pub(crate) perhaps_met: BTreeSet<Group>,
    pub(crate) touched_threads: BTreeSet<Seq>,
    pub(crate) arrived: Vec<(Seq, u64)>,
    received_again: BTreeMap<Seq, ReceivedAgain>,
    pub(crate) writing: HashMap<SpaceId, Arc<Writing>>,
    pub(crate) quota: QuotaClaims,
    pub(crate) perhaps_unused: BTreeSet<SpaceNo>,
    pub(crate) is_changed: bool,
}

impl<'t> Batch<'t> {
    pub(crate) fn begin(
        shared: Arc<StoreShared>,
        transaction: &'t WriteTransaction,
        now: Nanos,
    ) -> StoreResult<Batch<'t>> {
        let tables = Tables::open(transaction)?;
        let db = Db {
            tables,
            keys: shared.keys.clone(),
            disk: shared.disk.clone(),
            policy: shared.policy,
            is_settled: false,
            shared: shared.clone(),
            pending: Pending::default(),
            held_total: 0,
            next_position: 0,
        };
        let last_seq = db.tables.events.last()?.map_or(0, |row| row.key().seq().0);
        let last_space = db.tables.space_ids.last()?.map_or(0, |row| row.key().number().0);
        let last_author = db.tables.author_ids.last()?.map_or(0, |row| row.key().number().0);
        let mut batch = Batch {
            first_seq: 0,
            next_seq: last_seq.saturating_add(1),
            next_space: db.next_number(NEXT_SPACE, last_space)?,
            next_author: db.next_number(NEXT_AUTHOR, last_author)?,
            next_refused: db.about_number("next refused")?.max(1),
            next_expired: db.about_number("next expired")?.max(1),
            next_version: db.about_number("next version")?.max(1),
            greatest_time: db.about_number(GREATEST_TIME)?,
            held_time_before: db.about_number(HELD_TIME)?,
            held_time: 0,
            #[cfg(test)]
            shared_writes_left: None,
            db,
            now,
            shared,
            wanted: BTreeMap::new(),
            counts: BTreeMap::new(),
            journal: Vec::new(),
            sparse_authors: SparseAuthors::default(),
            journal_blocks: BTreeSet::new(),
            perhaps_met: BTreeSet::new(),
            touched_threads: BTreeSet::new(),
            arrived: Vec::new(),
            received_again: BTreeMap::new(),
            writing: HashMap::new(),
            quota: QuotaClaims::default(),
            perhaps_unused: BTreeSet::new(),
            is_changed: false,
        };
        // Numbers are never given twice, even when the rows that had them are gone.
        batch.next_seq = batch.next_seq.max(batch.db.about_number("next event")?);
        batch.first_seq = batch.next_seq;
        batch.db.next_position = batch.db.about_number("next position")?.max(1);
        batch.received_again = batch.shared.take_received_again();
        batch.db.held_total = batch.db.tables.held.len()?;
        Ok(batch)
    }

    /// What the engine reads through.
    pub fn db(&self) -> &Db<Tables<'t>> {
        &self.db
    }

    /// The moment of this batch.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Whether there is anything to commit.
    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// STORE: gives a new arrival its number and its row.
    pub fn store(&mut self, arrival: &Arrival, row: EventRow) -> StoreResult<Seq> {
        let seq = Seq(self.next_seq);
        self.next_seq += 1;
        self.is_changed = true;
        self.db.tables.ids.insert(EventIdKey::new(arrival.blob.id()), seq)?;
        self.change_absence(RowChange::Remove, arrival.blob.id())?;
        let blob = arrival.blob.bytes().to_vec();
        let inline = arrival.inline.clone().map(Inline::wire);
        self.db.pending.rows.insert(seq, PendingRow { row, blob, inline, is_copied: false });
        Ok(seq)
    }

    /// Notes that a known event came again, to be written with whatever commits next.
    pub fn note_received_again(&mut self, seq: Seq, origin: Origin) {
        self.received_again.insert(seq, ReceivedAgain { origin, at: self.now });
    }

    /// The next task.
    pub fn next_task(&mut self) -> StoreResult<Option<Task>> {
        while let Some((key, is_sound)) = self.db.tables.tasks.first_key()? {
            match TaskKey::parse(&key).map(|key| key.task()) {
                // A task is done again without harm, so one whose row is damaged is done if it can be read.
                Some(Ok(task)) => return Ok(Some(task)),
                Some(Err(_)) | None => {
                    self.note_dropped("tasks", is_sound);
                    self.db.tables.tasks.remove_key(&key)?;
                }
            }
        }
        Ok(None)
    }

    /// Applies the changes of one step.
    pub fn apply(&mut self, changes: Vec<Change>) -> StoreResult<()> {
        self.is_changed |= !changes.is_empty();
        for change in changes {
            self.apply_one(change)?;
        }
        Ok(())
    }

    fn apply_one(&mut self, change: Change) -> StoreResult<()> {
        match change {
            Change::Row(seq, row) => self.put_row(seq, *row),
            Change::Inline(seq, bytes) => self.put_inline(seq, bytes),
            Change::Forget(seq, id) => self.forget(seq, id),
            Change::Refused(id, why) => self.remember_refused(id, why),
            Change::Expired(id, at) => self.remember_expired(id, at),
            Change::Waiting(row_change, need, seq, space) => self.change_waiting(row_change, &need, seq, space),
            Change::Held(row_change, owner, seq, until) => self.change_held(row_change, owner, seq, until),
            Change::Ready(row_change, seq) => self.change_ready(row_change, seq),
            Change::Parked(row_change, seq, why) => self.change_parked(row_change, seq, &why),
            Change::Carried(row_change, space, seq) => self.change_carried(row_change, space, seq),
            Change::ContentWaiting(row_change, space, hash, seq) => {
                let key = ContentWaitingKey::new(space, hash, seq);
                if row_change == RowChange::Remove {
                    self.perhaps_met.insert(Group::Content(self.db.space_id(space)?, hash));
                }
                put_or_remove(row_change, &mut self.db.tables.content_waiting, key, ())
            }
            Change::Take(space, hash, len) => self.take_reference(space, &hash, len),
            Change::GiveBack(space, hash) => self.give_back_reference(space, &hash),
            Change::Bytes(row_change, seq, wanted) => {
                self.db.tables.file_events_due.insert(EventNo::new(seq), ())?;
                put_or_remove(row_change, &mut self.db.tables.file_bytes, EventNo::new(seq), wanted)
            }
            Change::BytesArrived(seq) => self.db.tables.file_events_due.insert(EventNo::new(seq), ()),
            Change::UsageOfBytes(row_change, space, author, state, len) => {
                self.change_usage(row_change, (space, author), state, (0, len))
            }
            Change::Usage(row_change, space, author, state, len) => {
                self.change_usage(row_change, (space, author), state, (1, len))
            }
            Change::ByAuthor(space, author, stamp, seq) => self.insert_by_author(space, author, stamp, seq),
            Change::Space(change) => self.apply_space(change),
            Change::Nostr(change) => self.apply_nostr(change),
            #[cfg(feature = "simulation")]
            Change::Probe(change) => self.apply_probe(change),
            Change::Key(space, secret) => self.add_key(space, secret),
            Change::Joined(space) => self.db.tables.joined.insert(SpaceIdKey::new(space), ()),
            Change::Gap(row_change, space, author, parent) => {
                let key = GapKey::new(space, author, parent);
                if row_change == RowChange::Remove {
                    self.perhaps_met.insert(Group::Author(self.db.space_id(space)?, self.db.identity(author)?));
                }
                put_or_remove(row_change, &mut self.db.tables.gaps, key, ())
            }
            Change::Journal(space, seq, kind) => self.write_journal(space, seq, kind),
            Change::Task(row_change, task) => {
                put_or_remove(row_change, &mut self.db.tables.tasks, TaskKey::new(&task), ())
            }
            Change::Wanted(group, origin) => {
                // Whoever wants it sooner decides when the hunt begins.
                let kept = self.wanted.entry(group).or_insert(origin);
                if origin == fetch::NeedOrigin::PeerOrRelay {
                    *kept = origin;
                }
                Ok(())
            }
            Change::Source(group) => self.wake_group(&group),
            Change::Count(word) => {
                *self.counts.entry(word).or_default() += 1;
                Ok(())
            }
        }
    }

    fn pending_row(&mut self, seq: Seq) -> StoreResult<&mut PendingRow> {
        if !self.db.pending.rows.contains_key(&seq) {
            let copy = |parts: encode::EventParts<'_>| {
                let inline = parts.inline.map(Inline::into_owned);
                PendingRow { row: parts.row, blob: parts.blob.to_vec(), inline, is_copied: false }
            };
            let Some(row) = self.db.with_event(seq, copy)? else {
                return Err(StoreError::Broken(format!("{seq} was changed but has no row")));
            };
            self.db.pending.rows.insert(seq, row);
        }
        let gone = || StoreError::Broken("a pending row is gone".into());
        let pending = self.db.pending.rows.get_mut(&seq).ok_or_else(gone)?;
        pending.is_copied = false;
        Ok(pending)
    }

    fn put_row(&mut self, seq: Seq, row: EventRow) -> StoreResult<()> {
        self.pending_row(seq)?.row = row;
        Ok(())
    }

    pub(crate) fn put_inline(&mut self, seq: Seq, bytes: Option<Vec<u8>>) -> StoreResult<()> {
        let pending = self.pending_row(seq)?;
        pending.row.has_inline = bytes.is_some();
        pending.inline = bytes.map(Inline::wire);
        Ok(())
    }

    fn forget(&mut self, seq: Seq, id: EventId) -> StoreResult<()> {
        self.db.pending.rows.remove(&seq);
        self.db.tables.events.remove(EventNo::new(seq))?;
        self.db.tables.ids.remove(EventIdKey::new(id))?;
        self.change_absence(RowChange::Put, id)?;
        self.received_again.remove(&seq);
        self.db.tables.received_again.remove(EventNo::new(seq))?;
        Ok(())
    }

    fn write_journal(&mut self, space: SpaceNo, seq: Seq, kind: JournalKind) -> StoreResult<()> {
        let number = self.db.next_position;
        self.db.next_position += 1;
        let entry = JournalEntry { space, seq, kind, at: self.now };
        self.journal.push((JournalNo::new(number), entry));
        self.journal_blocks.insert(JournalBlockKey::new(space, number / JOURNAL_BLOCK));
        if kind == JournalKind::Applied {
            self.arrived.push((seq, number));
        }
        Ok(())
    }

    /// Counts something that happened so many times.
    pub fn count(&mut self, word: &'static str, times: u64) {
        *self.counts.entry(word).or_default() += times;
        self.is_changed = true;
    }

    /// Something happened that cannot: it stops tests, and is counted and logged in a release.
    pub(crate) fn report_bug(&mut self, what: &'static str) -> StoreResult<()> {
        *self.counts.entry("bug").or_default() += 1;
        tracing::error!(what, "an invariant was broken");
        if cfg!(any(debug_assertions, feature = "simulation")) { Err(StoreError::Broken(what.into())) } else { Ok(()) }
    }

    /// Nothing is committed: what was only noted waits for the next batch.
    pub(crate) fn set_aside(mut self) {
        self.shared.keep_received_again(std::mem::take(&mut self.received_again));
    }

    /// Writes everything gathered. What it answers is published after the commit.
    pub(crate) fn finish(mut self) -> StoreResult<Committing> {
        self.settle_threads()?;
        let mut new_events = Vec::new();
        for (seq, mut pending) in std::mem::take(&mut self.db.pending.rows) {
            self.rest_inline(&mut pending)?;
            if !pending.is_copied {
                self.follow_in_timeline(seq, &pending)?;
            }
            let bytes = encode::encode_event(&pending.row, &pending.blob, pending.inline.as_ref());
            if seq.0 < self.first_seq {
                self.db.tables.events.insert(EventNo::new(seq), &bytes)?;
            } else {
                new_events.push((EventNo::new(seq), bytes));
            }
        }
        self.append_events(&new_events)?;
        self.write_timeline()?;
        self.write_journal_entries()?;
        self.pack_by_author()?;
        self.write_usage()?;
        self.write_waiting()?;
        for (seq, again) in std::mem::take(&mut self.received_again) {
            self.db.tables.received_again.insert(EventNo::new(seq), again)?;
        }
        for key in std::mem::take(&mut self.journal_blocks) {
            self.db.tables.journal_blocks.insert(key, ())?;
        }
        for (word, count) in std::mem::take(&mut self.counts) {
            let before = self.db.tables.counts.get(word)?.unwrap_or(0);
            self.db.tables.counts.insert(word, before + count)?;
        }
        for (group, origin) in std::mem::take(&mut self.wanted) {
            self.schedule_hunt(&group, origin)?;
            // What is wanted may be here already, and only wait itself.
            self.perhaps_met.insert(group);
        }
        // A group with nothing pending leaves the schedule with the commit that met its last need.
        for group in std::mem::take(&mut self.perhaps_met) {
            if self.db.schedule_row(&group)?.is_none() {
                continue;
            }
            self.forget_settled_parents(&group)?;
            if self.db.needs_of(&group, 1)?.is_empty() {
                self.put_schedule(&group, None)?;
            }
        }
        let numbers = [
            ("next event", self.next_seq),
            ("next position", self.db.next_position),
            ("next refused", self.next_refused),
            ("next expired", self.next_expired),
            ("next version", self.next_version),
            (GREATEST_TIME, self.greatest_time.max(self.now.0)),
            (HELD_TIME, self.held_time.max(self.held_time_before)),
        ];
        for (name, number) in numbers {
            self.db.tables.about.insert(name, &number.to_be_bytes())?;
        }
        Ok(Committing { keys: std::mem::take(&mut self.db.pending.keys), used: self.quota.changes() })
    }
}

/// What the process remembers once the batch is committed.
pub(crate) struct Committing {
    pub(crate) keys: KeyringSecrets,
    pub(crate) used: BTreeMap<SpaceNo, i64>,
}

/// Puts or removes a row.
pub(crate) fn put_or_remove<'k, K: TableKey, V: RowValue>(
    row_change: RowChange,
    table: &mut Rows<redb::Table<'_, K, Stored<V>>, K, V>,
    key: impl std::borrow::Borrow<K::SelfType<'k>>,
    value: V::Data<'_>,
) -> StoreResult<()> {
    match row_change {
        RowChange::Put => table.insert(key, value),
        RowChange::Remove => table.remove(key).map(drop),
    }
}
