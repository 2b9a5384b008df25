//! The bytes of larger content: in a row where they are small, in a file of their own where they are not.
//!
//! Object first, row second; row first, deletion second. Between the two, a crash leaves a file that nobody speaks of,
//! which the collector finds; it never leaves a row that speaks of a file that is not there.

use crate::database::batch::Batch;
use crate::database::open::Store;
use crate::disk::Disk;
use crate::encode::file_name;
use crate::keys::*;
use engine::Change;
use engine::change::RowChange;
use engine::content::EventDraft;
use engine::reads::{Reads, StoreError, StoreResult};
use engine::rows::{ContentLocation, ContentRow, Task};
use model::limits::RELEASES_PER_TRANSACTION_MAX;
use model::planted::{PlantedBug, is_planted};
use model::{ContentHash, SpaceId, SpaceNo};

fn disk_fault(error: &std::io::Error) -> StoreError {
    match error.kind() {
        std::io::ErrorKind::StorageFull => StoreError::Full,
        _ => StoreError::Store(error.to_string()),
    }
}

/// Puts a large content, in the form in which it rests, into a file, durably, before any row speaks of them.
pub fn write_file(disk: &dyn Disk, space: &SpaceId, hash: &ContentHash, bytes: &[u8]) -> StoreResult<()> {
    let name = file_name(space, hash);
    let write = || {
        disk.write_temporary(&name, bytes)?;
        disk.rename_temporary(&name)?;
        if is_planted(PlantedBug::MissingDirectorySync) { Ok(()) } else { disk.sync_folder() }
    };
    write().map_err(|error: std::io::Error| disk_fault(&error))
}

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

impl Store {
    /// The names of all content files, spoken of or not. This takes as long as there are files, and needs no transaction.
    pub fn content_files(&self) -> StoreResult<Vec<String>> {
        self.shared.disk.list_files().map_err(|error| disk_fault(&error))
    }
}

impl Batch<'_> {
    /// Delivers content whose hash was checked.
    pub fn deliver(&mut self, space: &SpaceId, hash: &ContentHash, bytes: &[u8]) -> StoreResult<DeliverResult> {
        let Some(no) = self.db.space_no(space)? else {
            return Ok(DeliverResult::Unwanted);
        };
        let inline_waits = !self.db.waiting_for_content(no, hash, model::Seq(0), 1)?.is_empty();
        if bytes.len() as u64 <= self.db.policy.inline_bytes_max {
            if inline_waits {
                self.deliver_inline(no, hash, bytes)?;
            }
            return Ok(if inline_waits { DeliverResult::Stored } else { DeliverResult::Unwanted });
        }
        let row = match self.db.content(no, hash)? {
            None => return Ok(DeliverResult::Unwanted),
            Some(row) if row.place != ContentLocation::Absent => return Ok(DeliverResult::Known),
            Some(row) => row,
        };
        // The first to refer to a hash says how long it is; those that say otherwise are judged unfit one by one.
        let len = bytes.len() as u64;
        let place =
            if len <= self.db.policy.row_content_bytes_max { ContentLocation::Row } else { ContentLocation::File };
        let stored = self.rest_content((no, space), hash, bytes)?;
        if place == ContentLocation::Row {
            self.db.tables.content_bytes.insert(ContentKey::new(no, *hash), &stored)?;
        } else {
            write_file(self.db.disk.as_ref(), space, hash, &stored)?;
        }
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

    /// Forgets content that nobody refers to and whose grace is over, a bounded number at a time. The files go later,
    /// after the commit. Says how many were forgotten.
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
            ContentLocation::File => {
                let key = ForgottenFileKey::new(self.now, space, hash);
                self.db.tables.forgotten_files.insert(key, ())?;
                self.forgotten_now.insert(key);
            }
            ContentLocation::Absent => {}
        }
        Ok(())
    }
}

impl Batch<'_> {
    /// Deletes files that an earlier commit forgot, unless they are spoken of again. Says how many are gone.
    pub fn delete_forgotten(&mut self, most: usize) -> StoreResult<usize> {
        let mut keys = Vec::new();
        for row in self.db.tables.forgotten_files.iter()?.take(most) {
            let key = row?.key();
            // Its row is still there if this batch does not commit.
            if !self.forgotten_now.contains(&key) {
                keys.push(key);
            }
        }
        for key in &keys {
            self.touch();
            let (space, hash) = (key.space(), key.hash());
            let spoken_of = self.db.content(space, &hash)?.is_some_and(|row| row.place == ContentLocation::File);
            if !spoken_of {
                let name = file_name(&self.db.space_id(space)?, &hash);
                self.db.disk.remove_file(&name).map_err(|error| disk_fault(&error))?;
            }
            self.db.tables.forgotten_files.remove(key)?;
            self.perhaps_unused.insert(space);
        }
        Ok(keys.len())
    }

    /// Deletes those of these files that no row speaks of: what a crash left between a file and its row.
    pub fn delete_strays(&mut self, names: &[String]) -> StoreResult<usize> {
        let mut strays = 0;
        for name in names {
            if !self.is_spoken_of(name)? {
                self.db.disk.remove_file(name).map_err(|error| disk_fault(&error))?;
                strays += 1;
            }
        }
        Ok(strays)
    }

    /// Whether a row speaks of a file, or did when this batch began: if it does not commit, that row is there again.
    fn is_spoken_of(&self, name: &str) -> StoreResult<bool> {
        let Some((space, hash)) = name.split_once('-') else {
            return Ok(false);
        };
        let (Ok(space), Ok(hash)) = (space.parse(), hash.parse()) else {
            return Ok(false);
        };
        let Some(no) = self.db.space_no(&space)? else {
            return Ok(false);
        };
        let was_spoken_of = self.forgotten_now.contains(&ForgottenFileKey::new(self.now, no, hash));
        Ok(was_spoken_of || self.db.content(no, &hash)?.is_some_and(|row| row.place == ContentLocation::File))
    }
}
