//! Rows that come few at a time, each after the rows before it: now and then they are written again together, so that
//! they fill their pages.

use super::batch::Batch;
use crate::checksum::CHECKSUM_BYTES;
use crate::keys::{AuthorStamp, EventNo, JournalNo, SEQ_BYTES};
use crate::tables::is_repack_due;
use engine::reads::StoreResult;
use model::{AuthorNo, Seq, SpaceNo, Stamp};
use std::collections::BTreeSet;

/// A batch with more rows belongs to an import or a crowd, which have no time for this.
const FEW_ROWS: usize = 128;
/// How long a row of `by_author` is.
const BY_AUTHOR_BYTES: usize = AuthorStamp::WIDTH + SEQ_BYTES + CHECKSUM_BYTES;
/// So many entries of the journal are written again together. They fill two pages.
const JOURNAL_ROWS: u64 = 256;
/// The rows of so many events are written again together, if they came fewer at a time.
const EVENT_ROWS: u64 = 128;
/// So many of the rows before them may share a page with them.
const SHARED_ROWS: u64 = 16;

/// Authors with rows that do not fill their pages.
#[derive(Debug, Default)]
pub(crate) struct SparseAuthors {
    rows: usize,
    authors: BTreeSet<(SpaceNo, AuthorNo)>,
}

impl Batch<'_> {
    pub(super) fn insert_by_author(
        &mut self,
        space: SpaceNo,
        author: AuthorNo,
        stamp: Stamp,
        seq: Seq,
    ) -> StoreResult<()> {
        self.sparse_authors.rows += 1;
        if is_repack_due(&stamp.id, BY_AUTHOR_BYTES) {
            self.sparse_authors.authors.insert((space, author));
        }
        self.db.tables.by_author.insert(AuthorStamp::new(space, author, stamp), seq)
    }

    pub(super) fn pack_by_author(&mut self) -> StoreResult<()> {
        let sparse = std::mem::take(&mut self.sparse_authors);
        if sparse.rows > FEW_ROWS {
            return Ok(());
        }
        for (space, author) in sparse.authors {
            self.db.tables.by_author.repack_end(AuthorStamp::of_author(space, author))?;
        }
        Ok(())
    }

    /// Writes the rows of events that come after all that are there.
    pub(super) fn append_events(&mut self, rows: &[(EventNo, Vec<u8>)]) -> StoreResult<()> {
        let ([(first, _), ..], [.., (last, _)]) = (rows, rows) else { return Ok(()) };
        self.db.tables.events.append(rows.iter().map(|(key, bytes)| (*key, bytes.as_slice())))?;
        let (before, now) = (first.seq().0.saturating_sub(1) / EVENT_ROWS, last.seq().0 / EVENT_ROWS);
        if before == now || rows.len() as u64 >= EVENT_ROWS {
            return Ok(());
        }
        // Since the last time.
        let from = (before * EVENT_ROWS).saturating_sub(SHARED_ROWS);
        self.db.tables.events.repack(EventNo::new(Seq(from))..=EventNo::new(Seq(u64::MAX)))
    }

    /// Writes the journal entries so far, for whoever reads the journal in this batch.
    pub(crate) fn write_journal_entries(&mut self) -> StoreResult<()> {
        let numbers = |entry: Option<&(JournalNo, _)>| entry.map_or(0, |(key, _)| key.number() / JOURNAL_ROWS);
        let is_page_begun = numbers(self.journal.first()) < numbers(self.journal.last());
        self.db.tables.journal.append(self.journal.drain(..))?;
        match is_page_begun {
            true => self.db.tables.journal.repack_end(JournalNo::new(0)..=JournalNo::new(u64::MAX)),
            false => Ok(()),
        }
    }
}
