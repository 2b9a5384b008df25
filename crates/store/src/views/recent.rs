//! Threads by what happened last, and messages in the order in which they were applied here.
//!
//! Both are settled once per batch, however many messages the batch brought: three rows per thread that was touched,
//! not per message.

use crate::database::batch::Batch;
use crate::database::db::Db;
use crate::keys::*;
use crate::tables::TableReads;
use engine::reads::{Reads, StoreResult};
use engine::rows::{Register, ThreadField};
use model::reader::{ByteReader, TooShort};
use model::{AuthorNo, Kind, Nanos, Seq, SpaceNo, Stamp};
use std::collections::BTreeMap;

/// A message that was applied here.
#[derive(Clone, Copy)]
struct Arrival {
    /// The number of its journal entry.
    number: u64,
    author: AuthorNo,
}

/// How many arrivals share a row: few enough that writing the row again with every batch costs little.
const ARRIVALS_PER_BLOCK: usize = 32;

impl Arrival {
    fn put_block(block: &[Arrival]) -> Vec<u8> {
        let one = |arrival: &Arrival| arrival.number.to_be_bytes().into_iter().chain(arrival.author.0.to_be_bytes());
        block.iter().flat_map(one).collect()
    }

    fn read_block(bytes: &[u8]) -> StoreResult<Vec<Arrival>> {
        let mut reader = ByteReader::new(bytes);
        let mut block = Vec::with_capacity(ARRIVALS_PER_BLOCK);
        let mut read = || -> Result<(), TooShort> {
            while !reader.rest().is_empty() {
                block.push(Arrival { number: reader.u64()?, author: AuthorNo(reader.u32()?) });
            }
            Ok(())
        };
        read().map_err(|_| crate::errors::broken("a block of arrivals"))?;
        Ok(block)
    }
}

impl Batch<'_> {
    /// Notes the messages that were applied, under the numbers of their journal entries, in the last block of their
    /// thread.
    fn note_arrivals(&mut self) -> StoreResult<()> {
        let mut by_thread: BTreeMap<Seq, Vec<Arrival>> = BTreeMap::new();
        for (seq, number) in std::mem::take(&mut self.arrived) {
            let meta = self.db.with_event(seq, |parts| parts.row.meta)?.flatten();
            if let Some(meta) = meta.filter(|meta| meta.kind == Kind::Message)
                && let Some(thread) = meta.subject
            {
                by_thread.entry(thread).or_default().push(Arrival { number, author: meta.author });
            }
        }
        for (thread, new) in by_thread {
            let mut block = self.db.block_of_arrivals(thread, u64::MAX)?;
            block.extend(new);
            block.sort_by_key(|arrival| arrival.number);
            for block in block.chunks(ARRIVALS_PER_BLOCK) {
                // A block is found by the number of its first arrival.
                let Some(first) = block.first() else { continue };
                let key = ArrivalsKey::new(thread, first.number);
                self.db.tables.arrivals.insert(key, &Arrival::put_block(block))?;
            }
        }
        Ok(())
    }

    /// Writes the time of every thread that this batch touched, and what arrived in them.
    pub(crate) fn settle_threads(&mut self) -> StoreResult<()> {
        self.note_arrivals()?;
        for thread in std::mem::take(&mut self.touched_threads) {
            self.settle_thread(thread)?;
        }
        Ok(())
    }

    fn settle_thread(&mut self, thread: Seq) -> StoreResult<()> {
        let row = self.db.event(thread)?;
        let Some((meta, stamp)) = row.as_ref().and_then(|row| Some((row.meta.as_ref()?, row.stamp()?))) else {
            return Ok(());
        };
        let space = meta.space;
        let is_listed = self.db.tables.threads.contains(SpaceStamp::new(space, stamp))?;
        let before = self.db.updated(thread)?;
        let after = if is_listed { Some(self.db.latest_in(space, thread, stamp)?) } else { None };
        if before == after {
            return Ok(());
        }
        if let Some(before) = before {
            self.db.tables.recent.remove(RecentKey::new(space, before, thread))?;
            self.db.tables.updated.remove(EventNo::new(thread))?;
        }
        if let Some(after) = after {
            self.db.tables.recent.insert(RecentKey::new(space, after, thread), ())?;
            self.db.tables.updated.insert(EventNo::new(thread), after)?;
        }
        Ok(())
    }
}

/// Counting what is unread stops here.
pub const UNREAD_MAX: usize = 1000;

impl<V: TableReads> Db<V> {
    /// The greatest time among the updates and messages of a thread that is listed.
    pub fn updated(&self, thread: Seq) -> StoreResult<Option<Nanos>> {
        self.tables.updated().get(EventNo::new(thread))
    }

    fn latest_in(&self, space: SpaceNo, thread: Seq, created: Stamp) -> StoreResult<Nanos> {
        let mut latest = created.at;
        for field in ThreadField::UPDATABLE.into_iter().chain([ThreadField::Deleted]) {
            if let Some((stamp, _)) = self.register(space, Register::ThreadField(thread, field.code()))? {
                latest = latest.max(stamp.at);
            }
        }
        if let Some(row) = self.tables.timeline().range(EventStamp::of_event(thread))?.next_back() {
            latest = latest.max(row?.key().stamp().at);
        }
        if let Some((key, _)) = self.pending.timeline.range(EventStamp::of_event(thread)).next_back() {
            latest = latest.max(key.stamp().at);
        }
        Ok(latest)
    }

    /// The threads of a space before a time and number, the latest first.
    pub fn recent_threads(&self, space: SpaceNo, before: (Nanos, Seq), most: usize) -> StoreResult<Vec<(Nanos, Seq)>> {
        let range = *RecentKey::of_space(space).start()..RecentKey::new(space, before.0, before.1);
        let mut found = Vec::new();
        for row in self.tables.recent().range(range)?.rev().take(most) {
            let key = row?.key();
            found.push((key.updated(), key.thread()));
        }
        Ok(found)
    }

    /// The threads of a space that were opened before a thread, the latest first, with when.
    pub fn latest_threads(&self, space: SpaceNo, before: (Nanos, Seq), most: usize) -> StoreResult<Vec<(Nanos, Seq)>> {
        let before = self.event(before.1)?.and_then(|row| row.stamp()).unwrap_or(Stamp::LAST);
        let range = SpaceStamp::new(space, Stamp::FIRST)..SpaceStamp::new(space, before);
        let mut found = Vec::new();
        for row in self.tables.threads().range(range)?.rev().take(most) {
            let row = row?;
            found.push((row.key().stamp().at, row.value()?));
        }
        Ok(found)
    }

    /// How many threads a space lists, and how many messages are in them.
    pub fn thread_and_message_count(&self, space: SpaceNo) -> StoreResult<(u64, u64)> {
        let (mut threads, mut messages) = (0, 0);
        for thread in self.tables.recent().range(RecentKey::of_space(space))? {
            let thread = thread?.key().thread();
            threads += 1;
            let all = ArrivalsKey::new(thread, 0)..=ArrivalsKey::new(thread, u64::MAX);
            for block in self.tables.arrivals().range(all)? {
                messages += Arrival::read_block(block?.value()?)?.len() as u64;
            }
        }
        Ok((threads, messages))
    }

    /// How many messages of others were applied here after a journal number, counted up to [`UNREAD_MAX`].
    pub fn arrived_after(&self, thread: Seq, number: u64, but_by: &[AuthorNo]) -> StoreResult<usize> {
        let is_unread = |arrival: &&Arrival| arrival.number > number && !but_by.contains(&arrival.author);
        let mut count = self.block_of_arrivals(thread, number)?.iter().filter(is_unread).count();
        let later = ArrivalsKey::new(thread, number.saturating_add(1))..=ArrivalsKey::new(thread, u64::MAX);
        for row in self.tables.arrivals().range(later)? {
            if count >= UNREAD_MAX {
                break;
            }
            count += Arrival::read_block(row?.value()?)?.iter().filter(is_unread).count();
        }
        Ok(count.min(UNREAD_MAX))
    }

    /// The last block of a thread that begins at or before a journal number.
    fn block_of_arrivals(&self, thread: Seq, number: u64) -> StoreResult<Vec<Arrival>> {
        let earlier = ArrivalsKey::new(thread, 0)..=ArrivalsKey::new(thread, number);
        match self.tables.arrivals().range(earlier)?.next_back().transpose()? {
            Some(row) => Arrival::read_block(row.value()?),
            None => Ok(Vec::new()),
        }
    }
}
