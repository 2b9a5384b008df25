//! Larger content: who refers to it, and its bytes, in a row where they are small, in an [object](super::objects) where
//! they are not.

use crate::database::batch::Batch;
use crate::keys::*;
use engine::Change;
use engine::change::RowChange;
use engine::content::EventDraft;
use engine::reads::{Reads, StoreResult};
use engine::rows::{ContentLocation, ContentRow, Task};
use model::limits::{BODY_BYTES_MAX, CHUNK_OVERHEAD_BYTES, RELEASES_PER_TRANSACTION_MAX};
use model::planted::{PlantedBug, is_planted};
use model::{ContentHash, SpaceId, SpaceNo};

/// The largest content that passes through the writer: a message of the greatest length, sealed.
const ROW_CONTENT_BYTES_MAX: usize = BODY_BYTES_MAX + CHUNK_OVERHEAD_BYTES;
const _: () = assert!(BODY_BYTES_MAX <= model::limits::CHUNK_BYTES, "a message is one chunk");

/// What became of content that was delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeliverResult {
    /// It is stored, and those that wait for it will be told.
    Stored,
    /// It was here already.
    Known,
    /// Nobody here refers to it.
    Unwanted,
}

impl Batch<'_> {
    /// Delivers content whose hash was checked, and which is small enough to rest in the database; what is larger is
    /// written into an object first.
    pub fn deliver(&mut self, space: &SpaceId, hash: &ContentHash, bytes: &[u8]) -> StoreResult<DeliverResult> {
        let Some(no) = self.db.space_no(space)? else {
            return Ok(DeliverResult::Unwanted);
        };
        let inline_waits = !self.db.waiting_for_content(no, hash, model::Seq(0), 1)?.is_empty();
        let is_inline = bytes.len() as u64 <= self.db.policy.inline_bytes_max;
        if is_inline && inline_waits {
            self.deliver_inline(no, hash, bytes)?;
        }
        let row = match self.db.content(no, hash)? {
            // Nothing speaks of it but those that keep it in their own rows.
            None if is_inline && inline_waits => return Ok(DeliverResult::Stored),
            None => return Ok(DeliverResult::Unwanted),
            Some(row) if row.place != ContentLocation::Absent => return Ok(DeliverResult::Known),
            Some(row) => row,
        };
        if bytes.len() > ROW_CONTENT_BYTES_MAX {
            // Nobody waited for it when it came, so that it was not written into an object. It may come again.
            return Ok(DeliverResult::Unwanted);
        }
        // The first to refer to a hash says how long it is; those that say otherwise are judged unfit one by one.
        let (place, len) = (ContentLocation::Row, bytes.len() as u64);
        let stored = self.rest_content((no, space), hash, bytes)?;
        self.db.tables.content_bytes.insert(ContentKey::new(no, *hash), &stored)?;
        self.put_content(no, hash, &ContentRow { place, len, ..row })?;
        self.apply(vec![Change::Task(RowChange::Put, Task::Content(no, *hash, model::Seq(0)))])?;
        Ok(DeliverResult::Stored)
    }

    /// Gives inline content to those that wait for it, as many as one transaction may change. Each keeps its own copy, so
    /// that those beyond wait on, and the next delivery is theirs.
    fn deliver_inline(&mut self, space: SpaceNo, hash: &ContentHash, bytes: &[u8]) -> StoreResult<()> {
        let policy = self.db.policy;
        for seq in self.db.waiting_for_content(space, hash, model::Seq(0), RELEASES_PER_TRANSACTION_MAX)? {
            let Some(row) = self.db.event(seq)? else {
                // It waits without being there.
                self.report_bug("content for an event without a row")?;
                continue;
            };
            let mut draft = EventDraft::new(seq, row);
            let is_delivered = engine::delivery::inline_arrived(&self.db, &policy, &mut draft, bytes)?;
            let changes = if is_delivered { draft.finish() } else { Vec::new() };
            self.apply(changes)?;
        }
        Ok(())
    }

    pub(crate) fn put_content(&mut self, space: SpaceNo, hash: &ContentHash, row: &ContentRow) -> StoreResult<()> {
        self.db.tables.contents.insert(ContentKey::new(space, *hash), *row)
    }

    pub(crate) fn take_reference(&mut self, space: SpaceNo, hash: &ContentHash, len: u64) -> StoreResult<()> {
        let mut row = self.db.content(space, hash)?.unwrap_or(ContentRow {
            count: 0,
            len,
            place: ContentLocation::Absent,
            unused_since: None,
        });
        if let Some(since) = row.unused_since.filter(|_| row.count == 0 && !is_planted(PlantedBug::CollectReferenced)) {
            self.db.tables.unused.remove(UnusedContentKey::new(since, space, *hash))?;
            row.unused_since = None;
        }
        row.count += 1;
        self.put_content(space, hash, &row)
    }

    pub(crate) fn give_back_reference(&mut self, space: SpaceNo, hash: &ContentHash) -> StoreResult<()> {
        let Some(mut row) = self.db.content(space, hash)? else {
            return self.report_bug("a reference was given back that nobody had taken");
        };
        if row.count == 0 {
            return self.report_bug("a reference was given back twice");
        }
        row.count -= 1;
        if row.count == 0 && row.place == ContentLocation::Absent {
            self.db.tables.contents.remove(ContentKey::new(space, *hash))?;
            return Ok(());
        }
        if row.count == 0 {
            row.unused_since = Some(self.now);
            self.db.tables.unused.insert(UnusedContentKey::new(self.now, space, *hash), ())?;
        }
        self.put_content(space, hash, &row)
    }

    /// Forgets content that nobody refers to and whose grace is over, a bounded number at a time. Objects go later, after
    /// the commit. Says how many were forgotten.
    pub fn forget_unused(&mut self, most: usize) -> StoreResult<usize> {
        let before = self.now.minus(self.db.policy.grace_nanos);
        let mut due = Vec::new();
        for row in self.db.tables.unused.iter()?.take(most) {
            let key = row?.key();
            if key.since() > before {
                break;
            }
            due.push(key);
        }
        for key in &due {
            self.forget_one(key)?;
        }
        Ok(due.len())
    }

    fn forget_one(&mut self, key: &UnusedContentKey) -> StoreResult<()> {
        self.touch();
        self.db.tables.unused.remove(key)?;
        let (space, hash) = (key.space(), key.hash());
        let content = ContentKey::new(space, hash);
        let Some(row) = self.db.content(space, &hash)? else {
            return Ok(());
        };
        if row.count > 0 && !is_planted(PlantedBug::CollectReferenced) {
            return self.report_bug("content in use was listed as unused");
        }
        self.db.tables.contents.remove(content)?;
        self.perhaps_unused.insert(space);
        match row.place {
            ContentLocation::Row => {
                self.db.tables.content_bytes.remove(content)?;
            }
            ContentLocation::Object(name) => self.forget_object(name)?,
            ContentLocation::Absent => {}
        }
        Ok(())
    }
}
