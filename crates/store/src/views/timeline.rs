//! Rows of the timeline: which message, hints on what else there is of it, and a copy of what it says.
//!
//! The messages of a thread lie scattered over the events, in the order of their arrival, and beside each other here.
//! So a page is read from a few neighbouring rows. The copy is of the event's own row, in the form in which it rests,
//! and follows it with every commit: content that is not shown has no copy, and a row without one leads to the event.

mod row;

pub(crate) use row::{HINT_REACTIONS, HINT_REFERS, HINT_REPLIES, HINT_VERSIONS, TextCopy, TimelineRow};

use crate::at_rest::inline_name;
use crate::database::batch::Batch;
use crate::database::db::{Db, PendingRow};
use crate::encode;
use crate::keys::EventStamp;
use crate::tables::{Bytes, Row, TableReads, is_repack_due};
use crate::views::messages::{MessageView, NOBODY, ShownContent};
use engine::reads::{Reads, StoreError, StoreResult};
use model::content::ChunkBinding;
use model::{AuthorNo, Kind, Seq, SpaceId, SpaceNo, Stamp};
use row::TextCopyForm;
use std::ops::{Bound, ControlFlow};

/// So many rows of a thread in one batch fill their pages.
const PACKED_ROWS: usize = 16;

/// More rows than this do not wait for the end of their batch.
const PENDING_ROWS_MAX: usize = 10_000;

/// The space of a thread, which is that of its messages.
struct Place {
    no: SpaceNo,
    space: SpaceId,
}

/// A message of a page of which nothing has been read yet.
pub struct UnreadLine<'a, V> {
    db: &'a Db<V>,
    place: &'a Place,
    row: &'a Row<'a, EventStamp, Bytes>,
}

impl<'a, V: TableReads> UnreadLine<'a, V> {
    /// Its id and place.
    pub fn stamp(&self) -> Stamp {
        self.row.key().stamp()
    }

    /// Its number here, as far as can be told without looking at the checksum.
    pub fn likely_seq(&self) -> Option<Seq> {
        TimelineRow::seq_in(self.stored())
    }

    /// All that is stored, its checksum included.
    pub fn stored(&self) -> &'a [u8] {
        self.row.stored()
    }

    /// Reads it.
    pub fn read(&self) -> StoreResult<TimelineLine<'a, V>> {
        TimelineLine::new(self.db, self.place, self.row)
    }
}

/// A message of a page that has not been opened yet.
pub struct TimelineLine<'a, V> {
    db: &'a Db<V>,
    place: &'a Place,
    row: TimelineRow<'a>,
    stamp: Stamp,
}

impl<'a, V: TableReads> TimelineLine<'a, V> {
    /// A row that is damaged leads to the event itself, which may be whole.
    fn new(db: &'a Db<V>, place: &'a Place, row: &'a Row<'_, EventStamp, Bytes>) -> StoreResult<TimelineLine<'a, V>> {
        let (stamp, read) = (row.key().stamp(), row.value());
        let row = match db.unless_damaged(read.and_then(TimelineRow::decode))? {
            Some(row) => row,
            None => {
                let seq = db.unless_damaged(db.seq(&stamp.id))?.flatten().unwrap_or_default();
                TimelineRow { seq, hints: u8::MAX, said: None }
            }
        };
        Ok(TimelineLine { db, place, row, stamp })
    }

    /// Its number here.
    pub fn seq(&self) -> Seq {
        self.row.seq
    }

    /// Its id and place.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Who wrote it.
    pub fn author(&self) -> StoreResult<AuthorNo> {
        match self.row.said {
            Some(said) => Ok(said.author),
            None => {
                let meta = self.db.with_event(self.row.seq, |parts| parts.row.meta);
                let meta = self.db.unless_damaged(meta)?.flatten().flatten();
                Ok(meta.map(|meta| meta.author).unwrap_or_default())
            }
        }
    }

    /// Whether there may be later versions of it.
    pub fn is_edited(&self) -> bool {
        self.row.hints & HINT_VERSIONS != 0
    }

    /// Whether what it said first is copied here, and so is shown.
    pub fn is_copied(&self) -> bool {
        self.row.said.is_some()
    }

    /// Whether its row tells all that the message says, as long as nobody edits it, answers it or reacts, and it refers to
    /// nothing but its thread. Otherwise more would have to be read.
    pub fn is_settled(&self) -> bool {
        self.row.hints == 0 && self.row.said.is_some()
    }

    /// The message, opened. What is damaged of it is shown as such.
    pub fn message(&self) -> StoreResult<MessageView> {
        let damaged = || MessageView::alone(self.row.seq, self.stamp, NOBODY, ShownContent::Damaged);
        Ok(self.db.unless_damaged(self.opened_message())?.unwrap_or_else(damaged))
    }

    fn opened_message(&self) -> StoreResult<MessageView> {
        let TimelineRow { seq, hints, said } = self.row;
        let Some(said) = said.filter(|_| hints & HINT_VERSIONS == 0) else {
            return self.db.message(seq, self.stamp, hints);
        };
        let content = self.db.open_copy(self.place, self.stamp, &said);
        let content = self.db.unless_damaged(content)?.unwrap_or(ShownContent::Damaged);
        let author = self.db.remembered_identity(said.author)?;
        self.db.with_reactions_and_replies(self.place.no, hints, MessageView::alone(seq, self.stamp, author, content))
    }
}

/// Fills a page with what a function makes of each message, until there are so many.
fn fill<V, T, E>(
    page: &mut Vec<T>,
    most: usize,
    mut read: impl FnMut(UnreadLine<'_, V>) -> Result<T, E>,
) -> impl FnMut(UnreadLine<'_, V>) -> Result<ControlFlow<()>, E> {
    move |line| {
        page.push(read(line)?);
        Ok(if page.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    }
}

impl<V: TableReads> Db<V> {
    /// A page of a thread: the messages before a stamp, ascending, newest last.
    pub fn timeline(&self, thread: Seq, before: Stamp, most: usize) -> StoreResult<Vec<MessageView>> {
        self.lines_before(thread, before, most, |line| line.read()?.message())
    }

    /// A page of a thread: the messages after a stamp, ascending.
    pub fn timeline_after(&self, thread: Seq, after: Stamp, most: usize) -> StoreResult<Vec<MessageView>> {
        self.lines_after(thread, after, most, |line| line.read()?.message())
    }

    /// What a function makes of the messages before a stamp, ascending, newest last.
    pub fn lines_before<T, E: From<StoreError>>(
        &self,
        thread: Seq,
        before: Stamp,
        most: usize,
        read: impl FnMut(UnreadLine<'_, V>) -> Result<T, E>,
    ) -> Result<Vec<T>, E> {
        let mut page = Vec::with_capacity(most.min(1024));
        if most > 0 {
            self.walk_back(thread, before, fill(&mut page, most, read))?;
        }
        page.reverse();
        Ok(page)
    }

    /// What a function makes of the messages after a stamp, ascending.
    pub fn lines_after<T, E: From<StoreError>>(
        &self,
        thread: Seq,
        after: Stamp,
        most: usize,
        read: impl FnMut(UnreadLine<'_, V>) -> Result<T, E>,
    ) -> Result<Vec<T>, E> {
        let mut page = Vec::with_capacity(most.min(1024));
        if most > 0 {
            self.walk_on(thread, after, fill(&mut page, most, read))?;
        }
        Ok(page)
    }

    /// Shows a function the messages before a stamp, the newest first, until it has enough.
    pub fn walk_back<E: From<StoreError>>(
        &self,
        thread: Seq,
        before: Stamp,
        read: impl FnMut(UnreadLine<'_, V>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let range = EventStamp::new(thread, Stamp::FIRST)..EventStamp::new(thread, before);
        self.walk(thread, self.tables.timeline().range(range)?.rev(), read)
    }

    /// Shows a function the messages after a stamp, the oldest first, until it has enough.
    pub fn walk_on<E: From<StoreError>>(
        &self,
        thread: Seq,
        after: Stamp,
        read: impl FnMut(UnreadLine<'_, V>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let from = Bound::Excluded(EventStamp::new(thread, after));
        let to = Bound::Included(EventStamp::new(thread, Stamp::LAST));
        self.walk(thread, self.tables.timeline().range((from, to))?, read)
    }

    fn walk<'r, E: From<StoreError>>(
        &self,
        thread: Seq,
        rows: impl Iterator<Item = StoreResult<Row<'r, EventStamp, Bytes>>>,
        mut read: impl FnMut(UnreadLine<'_, V>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let Some(place) = self.place_of(thread)? else { return Ok(()) };
        for row in rows {
            let row = row?;
            if read(UnreadLine { db: self, place: &place, row: &row })?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The oldest of the latest so many messages of a thread; the very first stamp if there are no more.
    pub fn oldest_kept(&self, thread: Seq, count: u64) -> StoreResult<Stamp> {
        let mut rows = self.tables.timeline().range(EventStamp::of_event(thread))?.rev();
        if count == 0 {
            return Ok(Stamp::LAST);
        }
        let kept = usize::try_from(count).unwrap_or(usize::MAX);
        let oldest = rows.nth(kept - 1).transpose()?;
        Ok(oldest.map_or(Stamp::FIRST, |row| row.key().stamp()))
    }

    fn place_of(&self, thread: Seq) -> StoreResult<Option<Place>> {
        let meta = self.with_event(thread, |parts| parts.row.meta)?.flatten();
        let Some(meta) = meta else { return Ok(None) };
        Ok(Some(Place { no: meta.space, space: self.space_id(meta.space)? }))
    }

    /// What a message says, opened.
    fn open_copy(&self, place: &Place, stamp: Stamp, said: &TextCopy<'_>) -> StoreResult<ShownContent> {
        match said.form {
            TextCopyForm::Plain => Ok(ShownContent::Here(said.bytes.to_vec())),
            TextCopyForm::AtRest => {
                let opened = self.open_at_rest(&place.space, &inline_name(&stamp.id), said.bytes)?;
                Ok(opened.map_or(ShownContent::Absent, ShownContent::Here))
            }
            TextCopyForm::Sealed(key) => {
                let author = self.remembered_identity(said.author)?;
                self.opened_content(&place.space, &key, said.bytes, ChunkBinding::Inline { author, at: stamp.at })
            }
        }
    }

    /// Whether a row of the timeline copies its event faithfully, and leads to it.
    pub(crate) fn is_faithful(&self, key: EventStamp, value: &[u8]) -> StoreResult<bool> {
        let row = TimelineRow::decode(value)?;
        let is_copy = self.with_event(row.seq, |parts| {
            let own = TextCopy::of(&parts.row, parts.blob, parts.inline.as_ref());
            parts.row.stamp() == Some(key.stamp()) && row.said.is_none_or(|said| own == Some(said))
        })?;
        Ok(is_copy == Some(true))
    }
}

impl Batch<'_> {
    /// Puts the row of a message.
    pub(crate) fn put_in_timeline(&mut self, key: EventStamp, seq: Seq, hints: u8) -> StoreResult<()> {
        let row = |said: Option<TextCopy<'_>>| TimelineRow { seq, hints, said }.to_bytes();
        let bytes = match self.db.pending.rows.remove(&seq) {
            Some(mut pending) => {
                self.rest_inline(&mut pending)?;
                let bytes = row(TextCopy::of(&pending.row, &pending.blob, pending.inline.as_ref()));
                pending.is_copied = true;
                self.db.pending.rows.insert(seq, pending);
                bytes
            }
            // Views are built again.
            None => {
                let read =
                    |parts: encode::EventParts<'_>| row(TextCopy::of(&parts.row, parts.blob, parts.inline.as_ref()));
                self.db.with_event(seq, read)?.ok_or_else(|| crate::errors::broken("a message's event"))?
            }
        };
        self.db.pending.timeline.insert(key, bytes);
        // A rebuild puts all there are.
        if self.db.pending.timeline.len() >= PENDING_ROWS_MAX {
            self.write_timeline()?;
        }
        Ok(())
    }

    /// Removes the row of a message.
    pub(crate) fn remove_from_timeline(&mut self, key: EventStamp) -> StoreResult<()> {
        self.db.pending.timeline.remove(&key);
        self.db.tables.timeline.remove(key).map(drop)
    }

    /// What becomes of the row of a message, if there is one.
    fn change_in_timeline(
        &mut self,
        key: EventStamp,
        change: impl FnOnce(TimelineRow<'_>) -> Option<Vec<u8>>,
    ) -> StoreResult<()> {
        let changed = match self.db.pending.timeline.get(&key) {
            Some(pending) => change(TimelineRow::decode(pending)?),
            None => match self.db.tables.timeline.get_row(key)? {
                Some(found) => change(TimelineRow::decode(found.value()?)?),
                None => None,
            },
        };
        self.db.pending.timeline.extend(changed.map(|bytes| (key, bytes)));
        Ok(())
    }

    /// Notes in the row of a message that there is more of it.
    pub(crate) fn hint_in_timeline(&mut self, key: EventStamp, hint: u8) -> StoreResult<()> {
        self.change_in_timeline(key, |row| {
            (row.hints & hint == 0).then(|| TimelineRow { hints: row.hints | hint, ..row }.to_bytes())
        })
    }

    /// Writes the rows so far, for whoever reads the timeline in this batch. Threads that get few rows at a time are written
    /// again now and then, because such rows leave their pages half empty.
    pub fn write_timeline(&mut self) -> StoreResult<()> {
        let rows = std::mem::take(&mut self.db.pending.timeline);
        let mut sparse = Vec::new();
        for run in rows.keys().collect::<Vec<_>>().chunk_by(|one, other| one.event() == other.event()) {
            let is_due = |key: &&EventStamp| {
                rows.get(*key).is_some_and(|row| is_repack_due(&key.stamp().id, EventStamp::WIDTH + row.len()))
            };
            if let [first, ..] = run
                && run.len() < PACKED_ROWS
                && run.iter().any(is_due)
            {
                sparse.push(first.event());
            }
        }
        self.db.tables.timeline.insert_sorted(rows.iter().map(|(key, bytes)| (*key, bytes.as_slice())))?;
        for thread in sparse {
            self.db.tables.timeline.repack_end(EventStamp::of_event(thread))?;
        }
        Ok(())
    }

    /// Lets the copy of a message follow what its event's row says now.
    pub(crate) fn follow_in_timeline(&mut self, seq: Seq, pending: &PendingRow) -> StoreResult<()> {
        let Some((meta, stamp)) = pending.row.meta.as_ref().zip(pending.row.stamp()) else { return Ok(()) };
        if meta.kind != Kind::Message || !pending.row.is_applied() {
            return Ok(());
        }
        let Some(thread) = meta.subject else { return Ok(()) };
        let said = TextCopy::of(&pending.row, &pending.blob, pending.inline.as_ref());
        self.change_in_timeline(EventStamp::new(thread, stamp), |row| {
            (row.seq == seq && row.said != said).then(|| TimelineRow { said, ..row }.to_bytes())
        })
    }
}
