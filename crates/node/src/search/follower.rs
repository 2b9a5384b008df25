//! Following the journal: without threads and without a clock of its own, so that a test can be the loop.
//!
//! A space is opened once, from where its index stopped or, where that is unknown, from its timelines. From then on it
//! hears of every entry. An index that fails is given up and opened again, empty.

use crate::search::document::{changed, document};
use engine::reads::{Reads as _, StoreResult};
use model::{Nanos, Position, Seq, SpaceNo, Stamp};
use search::{Index, IndexError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use store::tables::TableReads;
use store::{Db, JournalEntry, Store};

/// Entries or rows that are read at once.
const CHUNK: usize = 1024;
/// Changes after which an index is committed at once.
const CHANGES_MAX: usize = 1000;
/// Otherwise it is committed so often at most: a commit costs a few synced files.
const COMMIT_EVERY: u64 = Nanos::SECOND;
/// How long the words of a message that was changed or deleted may stay in the files.
const CLEANSE_AFTER: u64 = 60 * Nanos::SECOND;
/// After how long without changes an index gives back the writer's threads and memory.
const REST_AFTER: u64 = 10 * Nanos::SECOND;

/// All indexes, and how far they have read.
#[derive(Debug)]
pub(super) struct IndexFollower {
    folder: PathBuf,
    spaces: BTreeMap<SpaceNo, Followed>,
    /// Spaces to open with the next look, and whether what is there is to be dropped first.
    to_open: BTreeMap<SpaceNo, bool>,
    /// Up to where the journal was read; none before the first look.
    read_up_to: Option<Position>,
}

/// One index, and what it has not committed yet.
#[derive(Debug)]
struct Followed {
    index: Arc<Index>,
    read_up_to: Position,
    changes: usize,
    committed_at: Nanos,
    is_writing: bool,
    /// Since when files have words that are not shown any more.
    remains_since: Option<Nanos>,
}

/// What may fail: the database, which is a fault, or the index, which is made anew.
enum Failed {
    Read(engine::reads::StoreError),
    Index(IndexError),
}

impl From<engine::reads::StoreError> for Failed {
    fn from(fault: engine::reads::StoreError) -> Failed {
        Failed::Read(fault)
    }
}

impl From<IndexError> for Failed {
    fn from(why: IndexError) -> Failed {
        Failed::Index(why)
    }
}

impl IndexFollower {
    pub(super) fn new(folder: PathBuf) -> IndexFollower {
        IndexFollower { folder, spaces: BTreeMap::new(), to_open: BTreeMap::new(), read_up_to: None }
    }

    /// The indexes that can be asked.
    pub(super) fn indexes(&self) -> BTreeMap<SpaceNo, Arc<Index>> {
        self.spaces.iter().map(|(space, followed)| (*space, followed.index.clone())).collect()
    }

    /// Whether every space was looked at.
    pub(super) fn is_complete(&self) -> bool {
        self.read_up_to.is_some() && self.to_open.is_empty()
    }

    /// Drops an index, to be made anew with the next look.
    pub(super) fn give_up(&mut self, space: SpaceNo) {
        self.let_go(space);
        self.to_open.insert(space, true);
    }

    /// Ends the writer of an index that somebody may still be asking.
    fn let_go(&mut self, space: SpaceNo) {
        if let Some(followed) = self.spaces.remove(&space) {
            let _ = followed.index.release_writer();
        }
    }

    /// Reads the journal up to the snapshot's position.
    pub(super) fn follow<V: TableReads>(&mut self, store: &Store, db: &Db<V>, now: Nanos) -> StoreResult<()> {
        let latest = db.position()?;
        // What was trimmed before it was read here, as after a long sleep of the machine, is not in the journal any more.
        if let Some(stopped) = self.read_up_to
            && !db.can_resume_after(&stopped, &latest)?
        {
            self.read_up_to = None;
            let spaces: Vec<SpaceNo> = self.spaces.keys().copied().collect();
            spaces.into_iter().for_each(|space| self.let_go(space));
        }
        if self.read_up_to.is_none() {
            for (id, ..) in db.spaces()? {
                self.to_open.extend(db.space_no(&id)?.map(|space| (space, false)));
            }
        }
        self.open_all(store, db, now)?;
        // What was just opened has read everything.
        let mut from = self.read_up_to.unwrap_or(latest).number;
        while from < latest.number {
            let entries = db.journal(None, from, CHUNK)?;
            let Some((last, _)) = entries.last() else { break };
            from = *last;
            for (number, entry) in &entries {
                self.hear(store, db, Position { number: *number, ..latest }, entry, now)?;
            }
        }
        self.read_up_to = Some(latest);
        Ok(())
    }

    fn hear<V: TableReads>(
        &mut self,
        store: &Store,
        db: &Db<V>,
        position: Position,
        entry: &JournalEntry,
        now: Nanos,
    ) -> StoreResult<()> {
        if !self.spaces.contains_key(&entry.space) {
            self.to_open.entry(entry.space).or_insert(false);
            self.open_all(store, db, now)?;
        }
        let Some(followed) = self.spaces.get_mut(&entry.space) else { return Ok(()) };
        if position.number <= followed.read_up_to.number {
            return Ok(());
        }
        let heard = followed.hear(db, position, entry, now);
        self.settle(entry.space, heard)
    }

    /// Opens what is to be opened. What fails stays for the next look.
    fn open_all<V: TableReads>(&mut self, store: &Store, db: &Db<V>, now: Nanos) -> StoreResult<()> {
        for (space, is_failed) in std::mem::take(&mut self.to_open) {
            let id = db.space_id(space)?;
            let (folder, key) = (self.folder.join(id.to_string()), store.search_key(&id));
            let resumed = match is_failed {
                true => Err(IndexError::Damaged("it failed before".to_owned()).into()),
                false => Index::open(&folder, &key).map_err(Failed::from),
            };
            let resumed = resumed.and_then(|index| Followed::open(index, db, space, now));
            let opened = match resumed {
                Err(Failed::Index(why)) => {
                    tracing::info!(%why, %space, "a search index is made anew");
                    let index = Index::recreate(&folder, &key).map_err(Failed::from);
                    index.and_then(|index| Followed::open(index, db, space, now))
                }
                other => other,
            };
            let settled = opened.map(|followed| {
                self.spaces.insert(space, followed);
            });
            self.settle(space, settled)?;
        }
        Ok(())
    }

    /// An index that failed is given up; a fault of the database is passed on.
    fn settle(&mut self, space: SpaceNo, done: Result<(), Failed>) -> StoreResult<()> {
        match done {
            Ok(()) => Ok(()),
            Err(Failed::Read(fault)) => {
                // What was half done is done again from the last commit.
                self.let_go(space);
                self.to_open.insert(space, false);
                Err(fault)
            }
            Err(Failed::Index(why)) => {
                tracing::error!(%why, %space, "a search index failed and is made anew");
                self.give_up(space);
                Ok(())
            }
        }
    }

    /// Commits everything.
    pub(super) fn commit_all(&mut self, now: Nanos) {
        self.each(|followed| followed.commit(now));
    }

    /// Commits, cleanses and rests where it is time. Says when it will be next.
    pub(super) fn tend(&mut self, now: Nanos) -> Option<Nanos> {
        let mut next: BTreeSet<Nanos> = BTreeSet::new();
        self.each(|followed| {
            next.extend(followed.tend(now)?);
            Ok(())
        });
        next.first().copied()
    }

    fn each(&mut self, mut work: impl FnMut(&mut Followed) -> Result<(), IndexError>) {
        let failed: Vec<SpaceNo> = self
            .spaces
            .iter_mut()
            .filter_map(|(space, followed)| {
                let why = work(followed).err()?;
                tracing::error!(%why, %space, "a search index failed and is made anew");
                Some(*space)
            })
            .collect();
        failed.into_iter().for_each(|space| self.give_up(space));
    }
}

impl Followed {
    /// Brings an index up to the snapshot: from where it stopped, or from nothing.
    fn open<V: TableReads>(index: Index, db: &Db<V>, space: SpaceNo, now: Nanos) -> Result<Followed, Failed> {
        let latest = db.position()?;
        let stopped = index.position();
        let mut followed = Followed {
            index: Arc::new(index),
            read_up_to: stopped.unwrap_or(latest),
            changes: 0,
            committed_at: Nanos(0),
            is_writing: false,
            remains_since: None,
        };
        match stopped {
            Some(stopped) if db.can_resume_after(&stopped, &latest)? => followed.resume(db, space, stopped, now)?,
            Some(_) => return Err(IndexError::Damaged("the journal does not know its position".to_owned()).into()),
            None => followed.gather(db, space)?,
        }
        followed.read_up_to = latest;
        if stopped != Some(latest) {
            followed.commit(now)?;
        }
        if followed.index.has_removed_words()? {
            followed.remains_since = Some(now);
        }
        Ok(followed)
    }

    fn resume<V: TableReads>(&mut self, db: &Db<V>, space: SpaceNo, from: Position, now: Nanos) -> Result<(), Failed> {
        let mut position = from;
        loop {
            let entries = db.journal(Some(space), position.number, CHUNK)?;
            let Some((last, _)) = entries.last() else { return Ok(()) };
            position.number = *last;
            for (number, entry) in &entries {
                self.hear(db, Position { number: *number, ..position }, entry, now)?;
            }
        }
    }

    /// Everything that the timelines of a space show. Nothing is committed on the way, since only the whole has a
    /// position; what does not fit into the writer's memory waits in files.
    fn gather<V: TableReads>(&mut self, db: &Db<V>, space: SpaceNo) -> Result<(), Failed> {
        let mut after = Stamp::FIRST;
        loop {
            let threads = db.threads(space, after, CHUNK)?;
            let Some((last, _)) = threads.last() else { return Ok(()) };
            after = *last;
            for (_, thread) in &threads {
                self.gather_thread(db, *thread)?;
            }
        }
    }

    fn gather_thread<V: TableReads>(&mut self, db: &Db<V>, thread: Seq) -> Result<(), Failed> {
        let mut after = Stamp::FIRST;
        loop {
            let messages = db.timeline_after(thread, after, CHUNK)?;
            let Some(last) = messages.last() else { return Ok(()) };
            after = last.stamp;
            for message in &messages {
                if let Some(document) = document(db, message.seq)? {
                    self.index.put(&document)?;
                }
            }
        }
    }

    fn hear<V: TableReads>(
        &mut self,
        db: &Db<V>,
        position: Position,
        entry: &JournalEntry,
        now: Nanos,
    ) -> Result<(), Failed> {
        self.read_up_to = position;
        let Some(seq) = changed(db, entry)? else { return Ok(()) };
        match document(db, seq)? {
            Some(document) => self.index.put(&document)?,
            None => self.index.remove(seq)?,
        }
        self.changes += 1;
        if self.changes >= CHANGES_MAX {
            self.commit(now)?;
        }
        Ok(())
    }

    fn commit(&mut self, now: Nanos) -> Result<(), IndexError> {
        if self.changes == 0 && self.index.position() == Some(self.read_up_to) {
            return Ok(());
        }
        self.index.commit(self.read_up_to)?;
        (self.changes, self.committed_at, self.is_writing) = (0, now, true);
        if self.remains_since.is_none() && self.index.has_removed_words()? {
            self.remains_since = Some(now);
        }
        Ok(())
    }

    /// Does what is due, and says when the next thing will be.
    fn tend(&mut self, now: Nanos) -> Result<Option<Nanos>, IndexError> {
        if self.changes > 0 {
            let due = self.committed_at.plus(COMMIT_EVERY);
            if now < due {
                return Ok(Some(due));
            }
            self.commit(now)?;
        }
        if self.remains_since.is_some_and(|since| since.plus(CLEANSE_AFTER) <= now) {
            self.index.purge_removed()?;
            (self.remains_since, self.is_writing) = (None, false);
        }
        if self.is_writing && self.committed_at.plus(REST_AFTER) <= now {
            self.index.release_writer()?;
            self.is_writing = false;
        }
        let cleanse = self.remains_since.map(|since| since.plus(CLEANSE_AFTER));
        let rest = self.is_writing.then(|| self.committed_at.plus(REST_AFTER));
        Ok([cleanse, rest].into_iter().flatten().min())
    }
}
