//! Threads by what happened last, and messages in the order in which they were applied here.
//!
//! Both are settled once per batch, however many messages the batch brought: three rows per thread that was touched,
//! not per message.

use crate::database::batch::Batch;
use crate::database::db::{Db, fault};
use crate::encode;
use crate::tables::TableReads;
use engine::reads::{Reads, StoreResult};
use engine::rows::{Register, ThreadField};
use model::{AuthorNo, Kind, Nanos, Seq, SpaceNo, Stamp};
use redb::ReadableTable as _;
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
const ARRIVAL_BYTES: usize = 12;

impl Arrival {
    fn to_bytes(self) -> [u8; ARRIVAL_BYTES] {
        crate::keys::key(&[&self.number.to_be_bytes(), &self.author.0.to_be_bytes()])
    }

    fn block_from(bytes: &[u8]) -> Vec<Arrival> {
        let one = |bytes: &[u8; ARRIVAL_BYTES]| Arrival {
            number: u64::from_be_bytes(crate::keys::key(&[&bytes[..8]])),
            author: AuthorNo(u32::from_be_bytes(crate::keys::key(&[&bytes[8..]]))),
        };
        bytes.as_chunks().0.iter().map(one).collect()
    }
}

/// A block is found by the number of its first arrival.
fn arrivals_key(thread: Seq, first: u64) -> [u8; 16] {
    crate::keys::key(&[&thread.0.to_be_bytes(), &first.to_be_bytes()])
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
                let bytes: Vec<u8> = block.iter().flat_map(|arrival| arrival.to_bytes()).collect();
                let key = arrivals_key(thread, block.first().map_or(0, |first| first.number));
                self.db.tables.arrivals.insert(key, bytes.as_slice()).map_err(fault)?;
            }
        }
        Ok(())
    }

    /// Writes the time of every thread that this batch touched, and what arrived in them.
    pub(crate) fn settle_threads(&mut self) -> StoreResult<()> {
        self.note_arrivals()?;
        for thread in std::mem::take(&mut self.touched_threads) {
            self.settle_thread(Seq(thread))?;
        }
        Ok(())
    }

    fn settle_thread(&mut self, thread: Seq) -> StoreResult<()> {
        let row = self.db.event(thread)?;
        let Some((meta, stamp)) = row.as_ref().and_then(|row| Some((row.meta.as_ref()?, row.stamp()?))) else {
            return Ok(());
        };
        let space = meta.space;
        let is_listed = self.db.tables.threads.get(encode::space_stamp(space, stamp)).map_err(fault)?.is_some();
        let before = self.db.updated(thread)?;
        let after = if is_listed { Some(self.db.latest_in(space, thread, stamp)?) } else { None };
        if before == after {
            return Ok(());
        }
        if let Some(before) = before {
            self.db.tables.recent.remove(recent_key(space, before, thread)).map_err(fault)?;
            self.db.tables.updated.remove(thread.0).map_err(fault)?;
        }
        if let Some(after) = after {
            self.db.tables.recent.insert(recent_key(space, after, thread), ()).map_err(fault)?;
            self.db.tables.updated.insert(thread.0, after.0).map_err(fault)?;
        }
        Ok(())
    }
}

fn recent_key(space: SpaceNo, updated: Nanos, thread: Seq) -> [u8; 20] {
    crate::keys::key(&[&space.0.to_be_bytes(), &updated.0.to_be_bytes(), &thread.0.to_be_bytes()])
}

/// Counting what is unread stops here.
pub const UNREAD_MAX: usize = 1000;

impl<V: TableReads> Db<V> {
    /// The greatest time among the updates and messages of a thread that is listed.
    pub fn updated(&self, thread: Seq) -> StoreResult<Option<Nanos>> {
        Ok(self.tables.updated().get(thread.0).map_err(fault)?.map(|guard| Nanos(guard.value())))
    }

    fn latest_in(&self, space: SpaceNo, thread: Seq, created: Stamp) -> StoreResult<Nanos> {
        let mut latest = created.at;
        for field in ThreadField::UPDATABLE.into_iter().chain([ThreadField::Deleted]) {
            if let Some((stamp, _)) = self.register(space, Register::ThreadField(thread, field.code()))? {
                latest = latest.max(stamp.at);
            }
        }
        let range = encode::number_stamp(thread, Stamp::FIRST)..=encode::number_stamp(thread, Stamp::LAST);
        if let Some(entry) = self.tables.timeline().range(range).map_err(fault)?.next_back() {
            latest = latest.max(encode::stamp_at_end(&entry.map_err(fault)?.0.value()).at);
        }
        Ok(latest)
    }

    /// The threads of a space before a time and number, the latest first.
    pub fn recent_threads(&self, space: SpaceNo, before: (Nanos, Seq), most: usize) -> StoreResult<Vec<(Nanos, Seq)>> {
        let range = recent_key(space, Nanos(0), Seq(0))..recent_key(space, before.0, before.1);
        let mut found = Vec::new();
        for entry in self.tables.recent().range(range).map_err(fault)?.rev().take(most) {
            let key = entry.map_err(fault)?.0.value();
            let updated = Nanos(u64::from_be_bytes(crate::keys::key(&[&key[4..12]])));
            found.push((updated, crate::database::db::seq_at_end(&key)));
        }
        Ok(found)
    }

    /// The threads of a space that were opened before a thread, the latest first, with when.
    pub fn latest_threads(&self, space: SpaceNo, before: (Nanos, Seq), most: usize) -> StoreResult<Vec<(Nanos, Seq)>> {
        let before = self.event(before.1)?.and_then(|row| row.stamp()).unwrap_or(Stamp::LAST);
        let range = encode::space_stamp(space, Stamp::FIRST)..encode::space_stamp(space, before);
        let mut found = Vec::new();
        for entry in self.tables.threads().range(range).map_err(fault)?.rev().take(most) {
            let (key, value) = entry.map_err(fault)?;
            found.push((encode::stamp_at_end(&key.value()).at, Seq(value.value())));
        }
        Ok(found)
    }

    /// How many threads a space lists.
    pub fn thread_count(&self, space: SpaceNo) -> StoreResult<u64> {
        let range = recent_key(space, Nanos(0), Seq(0))..=recent_key(space, Nanos(u64::MAX), Seq(u64::MAX));
        Ok(self.tables.recent().range(range).map_err(fault)?.count() as u64)
    }

    /// How many messages of others were applied here after a journal number, counted up to [`UNREAD_MAX`].
    pub fn arrived_after(&self, thread: Seq, number: u64, but_by: &[AuthorNo]) -> StoreResult<usize> {
        let is_unread = |arrival: &&Arrival| arrival.number > number && !but_by.contains(&arrival.author);
        let mut count = self.block_of_arrivals(thread, number)?.iter().filter(is_unread).count();
        let later = arrivals_key(thread, number.saturating_add(1))..=arrivals_key(thread, u64::MAX);
        for entry in self.tables.arrivals().range(later).map_err(fault)? {
            if count >= UNREAD_MAX {
                break;
            }
            count += Arrival::block_from(entry.map_err(fault)?.1.value()).iter().filter(is_unread).count();
        }
        Ok(count.min(UNREAD_MAX))
    }

    /// The last block of a thread that begins at or before a journal number.
    fn block_of_arrivals(&self, thread: Seq, number: u64) -> StoreResult<Vec<Arrival>> {
        let earlier = arrivals_key(thread, 0)..=arrivals_key(thread, number);
        let last = self.tables.arrivals().range(earlier).map_err(fault)?.next_back().transpose().map_err(fault)?;
        Ok(last.map_or_else(Vec::new, |(_, row)| Arrival::block_from(row.value())))
    }
}
