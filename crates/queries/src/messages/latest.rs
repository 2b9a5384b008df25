//! The latest messages of all threads, merged by time.
//!
//! Threads are read a few messages at a time, always the one in which the latest unread message can be. What was found is
//! given out down to the place where the next message may still turn up, so that no message is passed over.

use super::MessageReader;
use super::page::{MessageFormat, PageEnd, RenderedMessage, ThreadTimeline};
use crate::error::QueryError;
use crate::visibility::{ThreadAccess, thread_access};
use model::{AuthorNo, EventId, Nanos, Seq, Stamp};
use std::collections::BinaryHeap;
use store::tables::TableReads;

/// Threads that are merged: those in which something happened last.
const THREADS_MAX: usize = 200;
/// Messages of one thread that are read at a time: most threads have none that is late enough.
const FEW: usize = 16;
/// Messages that one request looks at.
const LOOKED_AT_MAX: usize = 5000;
// Each thread is looked at before a request ends, so that the next one goes on further down.
const _: () = assert!(FEW * THREADS_MAX < LOOKED_AT_MAX);

/// Messages that were found, the newest last, and where older ones are, if there are any.
#[derive(Debug)]
pub struct LatestMessages {
    pub messages: Vec<RenderedMessage>,
    pub next: Option<PageEnd>,
}

impl<V: TableReads> MessageReader<'_, V> {
    /// The latest messages before a place, of the threads that the viewer sees and in which something happened last.
    pub fn latest<F: MessageFormat>(
        &self,
        before: Stamp,
        most: usize,
        with_deleted: bool,
        format: &F,
    ) -> Result<LatestMessages, QueryError> {
        let from = (Nanos(u64::MAX), Seq(u64::MAX));
        let threads = self.db.recent_threads(self.viewer.no, from, THREADS_MAX)?;
        // What is unread of a thread is before this place: nothing in it is later than what last happened in it.
        let unread_before = |updated: Nanos| before.min(Stamp { at: updated.plus(1), id: EventId::ZERO });
        let mut unread: BinaryHeap<(Stamp, Seq)> =
            threads.into_iter().map(|(updated, seq)| (unread_before(updated), seq)).collect();
        let blocked = self.blocked_authors()?;
        let mut found: Vec<RenderedMessage> = Vec::new();
        let mut looked_at = 0;
        while let Some((end, seq)) = unread.peek().copied() {
            let is_enough = found.iter().filter(|message| message.stamp >= end).count() > most;
            if is_enough || looked_at >= LOOKED_AT_MAX {
                break;
            }
            unread.pop();
            let few = self.few_before(seq, end, (with_deleted, &blocked), format)?;
            looked_at += few.len();
            if few.len() == FEW {
                unread.extend(few.first().map(|(oldest, _)| (*oldest, seq)));
            }
            found.extend(few.into_iter().filter_map(|(_, message)| message));
        }
        let settled_to = unread.peek().map(|(end, _)| *end);
        found.retain(|message| settled_to.is_none_or(|end| message.stamp >= end));
        found.sort_by_key(|message| message.stamp);
        let mut next = settled_to;
        if found.len() > most {
            found.drain(..found.len() - most);
            next = found.first().map(|oldest| oldest.stamp);
        }
        Ok(LatestMessages { messages: found, next: next.map(PageEnd::Before) })
    }

    /// A few places of a thread before one, with their messages where the viewer sees them.
    fn few_before<F: MessageFormat>(
        &self,
        seq: Seq,
        end: Stamp,
        (with_deleted, blocked): (bool, &[AuthorNo]),
        format: &F,
    ) -> Result<Vec<(Stamp, Option<RenderedMessage>)>, QueryError> {
        if thread_access(self.db, self.viewer, seq)? != ThreadAccess::Visible {
            return Ok(Vec::new());
        }
        let thread = self.renderer().name(seq)?;
        let timeline = ThreadTimeline { reader: self, seq, thread: &thread, with_deleted, blocked, format };
        self.db.lines_before(seq, end, FEW, |line| Ok((line.stamp(), timeline.message(&line)?)))
    }
}
