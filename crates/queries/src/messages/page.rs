//! Pages of a thread: which messages, which of them the viewer sees, and their texts, rendered now or before.

use super::MessageReader;
use crate::cache::CachedMessage;
use crate::error::QueryError;
use crate::names::parse_name;
use crate::paging::page_limit;
use crate::renderer::claimed;
use crate::shapes::Message;
use crate::visibility::find_thread;
use engine::reads::Reads as _;
use model::{AuthorNo, EventId, Kind, Seq, Stamp};
use node::commands;
use std::sync::Arc;
use store::tables::TableReads;
use store::views::messages::{self, ShownContent};
use store::views::timeline::UnreadLine;

/// Messages on one page.
const PAGE_MAX: usize = 500;
/// Messages that one request looks at while it leaves out the deleted.
const LOOKED_AT_MAX: usize = 5000;

/// What messages are rendered to for a page: JSON for programs, HTML for browsers.
pub trait MessageFormat {
    /// What its texts are told apart by in the cache.
    const NAME: &'static str;

    fn render<V: TableReads>(&self, reader: &MessageReader<'_, V>, message: &Message) -> Result<Arc<str>, QueryError>;
}

/// Which messages of a thread: the latest, or those before, after or around one. These three exclude each other.
#[derive(Clone, Debug, Default)]
pub struct MessageRange {
    pub limit: Option<usize>,
    pub before: Option<String>,
    pub after: Option<String>,
    pub around: Option<String>,
    pub include_deleted: bool,
}

/// A page of a thread, the newest message last.
#[derive(Debug)]
pub struct RenderedPage {
    /// How the thread is called.
    pub thread: String,
    pub thread_seq: Seq,
    pub messages: Vec<RenderedMessage>,
}

/// A message of a page.
#[derive(Debug)]
pub struct RenderedMessage {
    pub stamp: Stamp,
    pub text: Arc<str>,
}

impl<V: TableReads> MessageReader<'_, V> {
    /// A page of the thread of that name, if the viewer sees it.
    pub fn page<F: MessageFormat>(
        &self,
        thread: &str,
        range: &MessageRange,
        format: &F,
    ) -> Result<RenderedPage, QueryError> {
        let (_, seq) = find_thread(self.db, self.viewer, thread)?;
        let most = page_limit(range.limit, PAGE_MAX)?;
        let at = |name: &Option<String>| name.as_ref().map(|name| self.stamp_of(seq, name)).transpose();
        let (before, after, around) = (at(&range.before)?, at(&range.after)?, at(&range.around)?);
        let thread = self.renderer().name(seq)?;
        let mut blocked = Vec::new();
        for identity in &self.viewer.blocked {
            blocked.extend(self.db.author_no(identity)?);
        }
        let with_deleted = range.include_deleted;
        let timeline = ThreadTimeline { reader: self, seq, thread: &thread, with_deleted, blocked, format };
        let messages = match (before, after, around) {
            (None, None, None) => timeline.before(Stamp::LAST, most)?,
            (Some(before), None, None) => timeline.before(before, most)?,
            (None, Some(after), None) => timeline.after(after, most)?,
            (None, None, Some(middle)) => {
                let mut found = timeline.before(middle, most / 2)?;
                let from = Stamp { at: middle.at.minus(1), id: EventId([0xff; 16]) };
                let rest = timeline.after(from.min(middle), most - found.len())?;
                found.extend(rest.into_iter().filter(|message| message.stamp >= middle));
                found
            }
            _ => return Err(QueryError::malformed("before, after and around exclude each other")),
        };
        Ok(RenderedPage { thread, thread_seq: seq, messages })
    }

    /// Where a message of this thread stands in it.
    fn stamp_of(&self, thread: Seq, name: &str) -> Result<Stamp, QueryError> {
        let named = parse_name(name, "message")?;
        match commands::find(self.db, self.viewer.no, &named, Kind::Message)? {
            Some((stamp, _, meta)) if meta.subject == Some(thread) => Ok(stamp),
            _ => Err(QueryError::not_found("there is no such message in this thread")),
        }
    }
}

/// The messages of a thread that the viewer sees.
struct ThreadTimeline<'a, V, F> {
    reader: &'a MessageReader<'a, V>,
    seq: Seq,
    thread: &'a str,
    with_deleted: bool,
    /// Authors whom the viewer blocks.
    blocked: Vec<AuthorNo>,
    format: &'a F,
}

impl<V: TableReads, F: MessageFormat> ThreadTimeline<'_, V, F> {
    fn before(&self, mut to: Stamp, most: usize) -> Result<Vec<RenderedMessage>, QueryError> {
        let mut found: Vec<RenderedMessage> = Vec::new();
        let mut looked_at = 0;
        while found.len() < most && looked_at < LOOKED_AT_MAX {
            let wanted = most - found.len();
            let chunk =
                self.reader.db.lines_before(self.seq, to, wanted, |line| Ok((line.stamp(), self.message(&line)?)));
            let chunk = chunk.map_err(|error: QueryError| error)?;
            let Some((first, _)) = chunk.first() else { break };
            to = *first;
            looked_at += chunk.len();
            let is_last = chunk.len() < wanted;
            found.splice(0..0, chunk.into_iter().filter_map(|(_, message)| message));
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    fn after(&self, mut from: Stamp, most: usize) -> Result<Vec<RenderedMessage>, QueryError> {
        let mut found: Vec<RenderedMessage> = Vec::new();
        let mut looked_at = 0;
        while found.len() < most && looked_at < LOOKED_AT_MAX {
            let wanted = most - found.len();
            let chunk =
                self.reader.db.lines_after(self.seq, from, wanted, |line| Ok((line.stamp(), self.message(&line)?)));
            let chunk = chunk.map_err(|error: QueryError| error)?;
            let Some((last, _)) = chunk.last() else { break };
            from = *last;
            looked_at += chunk.len();
            let is_last = chunk.len() < wanted;
            found.extend(chunk.into_iter().filter_map(|(_, message)| message));
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    /// A message of a page, rendered now or before; none if it is not wanted.
    fn message(&self, unread: &UnreadLine<'_, V>) -> Result<Option<RenderedMessage>, QueryError> {
        let (stamp, cache) = (unread.stamp(), self.reader.cache);
        if self.blocked.is_empty()
            && let Some(seq) = unread.likely_seq()
            && let Some(cached) = cache.get(seq, F::NAME, stamp, unread.stored())
            && self.is_still_true(seq, &cached)?
        {
            return Ok(Some(RenderedMessage { stamp, text: cached.rendered.clone() }));
        }
        let line = unread.read()?;
        if !self.blocked.is_empty() && self.blocked.contains(&line.author()?) {
            return Ok(None);
        }
        let seq = line.seq();
        let message = line.message()?;
        if !self.is_wanted(&message) {
            return Ok(None);
        }
        let text = self.format.render(self.reader, &self.reader.renderer().message(&message, self.thread)?)?;
        if line.is_settled() && matches!(message.content, ShownContent::Here(_)) {
            let chosen = match claimed(&message) {
                Some(claimed) => Some((claimed.as_ref().into(), self.leads(seq, &claimed)?)),
                None => None,
            };
            let (generation, thread) = (self.reader.generation, self.thread.into());
            let row = unread.stored().into();
            let cached = CachedMessage { generation, stamp, row, thread, chosen, rendered: text.clone() };
            cache.insert(seq, F::NAME, cached);
        }
        Ok(Some(RenderedMessage { stamp, text }))
    }

    fn is_wanted(&self, message: &messages::MessageView) -> bool {
        match &message.content {
            _ if self.with_deleted => true,
            ShownContent::Deleted(_) => false,
            // Only a later version can say that a message was deleted.
            ShownContent::Here(bytes) => message.version == message.stamp || bytes != commands::DELETED,
            ShownContent::Absent | ShownContent::Invalid | ShownContent::Damaged => true,
        }
    }

    fn leads(&self, seq: Seq, chosen: &str) -> Result<bool, QueryError> {
        Ok(self.reader.db.chosen(self.reader.viewer.no, chosen)?.is_some_and(|(_, owner)| owner == seq))
    }

    /// Whether the thread is called as it was, and a chosen id leads where it led.
    fn is_still_true(&self, seq: Seq, cached: &CachedMessage<Arc<str>>) -> Result<bool, QueryError> {
        let leads = match &cached.chosen {
            Some((chosen, led)) => self.leads(seq, chosen)? == *led,
            None => true,
        };
        Ok(leads && *cached.thread == *self.thread)
    }
}
