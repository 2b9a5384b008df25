//! Pages of a thread: which messages, which of them the viewer sees, and their texts, rendered now or before.

use super::MessageReader;
use crate::cache::CachedMessage;
use crate::error::QueryError;
use crate::names::parse_name;
use crate::paging::{format_cursor, page_limit, parse_cursor};
use crate::renderer::claimed;
use crate::shapes::Message;
use crate::visibility::find_thread;
use engine::reads::Reads as _;
use model::{AuthorNo, Kind, Seq, Stamp};
use node::commands;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use store::tables::TableReads;
use store::views::messages::{self, ShownContent};
use store::views::timeline::UnreadLine;

/// Messages on one page.
const PAGE_MAX: usize = 500;
/// Messages that one request looks at while it leaves out the deleted: a full page, the one after it, and as many again.
const LOOKED_AT_MAX: usize = 2 * (PAGE_MAX + 1);

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
    /// Where another page ended, instead of one of these three.
    pub cursor: Option<String>,
    pub include_deleted: bool,
}

/// Where a page ended, and in which direction to go on from there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageEnd {
    /// The messages before this place.
    Before(Stamp),
    /// The messages after this place.
    After(Stamp),
}

impl PageEnd {
    pub fn parse(text: &str) -> Result<PageEnd, QueryError> {
        let bad = || QueryError::malformed("the cursor is not one that a list of messages gave out");
        let (direction, stamp) = text.split_once('-').ok_or_else(bad)?;
        let stamp = parse_cursor(Some(stamp))?.ok_or_else(bad)?;
        match direction {
            "before" => Ok(PageEnd::Before(stamp)),
            "after" => Ok(PageEnd::After(stamp)),
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for PageEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageEnd::Before(stamp) => write!(f, "before-{}", format_cursor(*stamp)),
            PageEnd::After(stamp) => write!(f, "after-{}", format_cursor(*stamp)),
        }
    }
}

/// A page of a thread, the newest message last.
#[derive(Debug)]
pub struct RenderedPage {
    /// How the thread is called.
    pub thread: String,
    pub thread_seq: Seq,
    pub messages: Vec<RenderedMessage>,
    /// Where the list goes on: to older messages from the latest or from `before`, else to newer ones.
    pub next: Option<PageEnd>,
    /// The other way.
    pub previous: Option<PageEnd>,
}

/// A message of a page.
#[derive(Debug)]
pub struct RenderedMessage {
    pub stamp: Stamp,
    pub text: Arc<str>,
    /// The hash of the text: what is put together of texts is told apart by their hashes, which are kept with them.
    pub hash: [u8; 16],
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
        let blocked = self.blocked_authors()?;
        let with_deleted = range.include_deleted;
        let timeline = ThreadTimeline { reader: self, seq, thread: &thread, with_deleted, blocked: &blocked, format };
        let cursor = range.cursor.as_deref().filter(|text| !text.is_empty()).map(PageEnd::parse).transpose()?;
        let (messages, next, previous) = match (before, after, around, cursor) {
            (None, None, None, None) => {
                let (messages, older) = timeline.before(Stamp::LAST, most)?;
                (messages, older, None)
            }
            (Some(before), None, None, None) | (None, None, None, Some(PageEnd::Before(before))) => {
                let (messages, older) = timeline.before(before, most)?;
                let newer = messages.last().map_or(before.just_before(), |last| last.stamp);
                (messages, older, Some(PageEnd::After(newer)))
            }
            (None, Some(after), None, None) | (None, None, None, Some(PageEnd::After(after))) => {
                let (messages, newer) = timeline.after(after, most)?;
                let older = messages.first().map_or(after.just_after(), |first| first.stamp);
                (messages, newer, Some(PageEnd::Before(older)))
            }
            (None, None, Some(middle), None) => {
                let (mut messages, older) = timeline.before(middle, most / 2)?;
                let (rest, newer) = timeline.after(middle.just_before(), most - messages.len())?;
                messages.extend(rest);
                (messages, newer, older)
            }
            _ => return Err(QueryError::malformed("before, after, around and cursor exclude each other")),
        };
        Ok(RenderedPage { thread, thread_seq: seq, messages, next, previous })
    }

    pub(super) fn blocked_authors(&self) -> Result<Vec<AuthorNo>, QueryError> {
        let mut blocked = Vec::new();
        for identity in &self.viewer.blocked {
            blocked.extend(self.db.author_no(identity)?);
        }
        Ok(blocked)
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

/// A page that is filled message by message. The one after its last is looked for as well, so that it is known whether there
/// is more; of those that are left out, one request looks at no more than [`LOOKED_AT_MAX`] with the others.
struct PageBuilder {
    found: Vec<RenderedMessage>,
    most: usize,
    looked_at: usize,
    /// The last place that was looked at, in whose direction the list goes on.
    looked_at_to: Stamp,
    has_more: bool,
}

impl PageBuilder {
    fn new(most: usize, begin: Stamp) -> PageBuilder {
        PageBuilder { found: Vec::new(), most, looked_at: 0, looked_at_to: begin, has_more: false }
    }

    /// Takes the message at the next place, if it is wanted; says whether to go on.
    fn take(
        &mut self,
        stamp: Stamp,
        message: impl FnOnce() -> Result<Option<RenderedMessage>, QueryError>,
    ) -> Result<ControlFlow<()>, QueryError> {
        self.has_more = self.looked_at == LOOKED_AT_MAX;
        if self.has_more {
            return Ok(ControlFlow::Break(()));
        }
        self.looked_at += 1;
        if let Some(message) = message()? {
            self.has_more = self.found.len() == self.most;
            if self.has_more {
                return Ok(ControlFlow::Break(()));
            }
            self.found.push(message);
        }
        self.looked_at_to = stamp;
        Ok(ControlFlow::Continue(()))
    }
}

/// The messages of a thread that the viewer sees.
pub(super) struct ThreadTimeline<'a, V, F> {
    pub(super) reader: &'a MessageReader<'a, V>,
    pub(super) seq: Seq,
    pub(super) thread: &'a str,
    pub(super) with_deleted: bool,
    /// Authors whom the viewer blocks.
    pub(super) blocked: &'a [AuthorNo],
    pub(super) format: &'a F,
}

impl<V: TableReads, F: MessageFormat> ThreadTimeline<'_, V, F> {
    /// The latest messages before a place, and where older ones are found, if there are any.
    fn before(&self, end: Stamp, most: usize) -> Result<(Vec<RenderedMessage>, Option<PageEnd>), QueryError> {
        let mut page = PageBuilder::new(most, end);
        self.reader.db.walk_back(self.seq, end, |line| page.take(line.stamp(), || self.message(&line)))?;
        page.found.reverse();
        Ok((page.found, page.has_more.then_some(PageEnd::Before(page.looked_at_to))))
    }

    /// The first messages after a place, and where newer ones are found, if there are any.
    fn after(&self, begin: Stamp, most: usize) -> Result<(Vec<RenderedMessage>, Option<PageEnd>), QueryError> {
        let mut page = PageBuilder::new(most, begin);
        self.reader.db.walk_on(self.seq, begin, |line| page.take(line.stamp(), || self.message(&line)))?;
        Ok((page.found, page.has_more.then_some(PageEnd::After(page.looked_at_to))))
    }

    /// A message of a page, rendered now or before; none if it is not wanted.
    pub(super) fn message(&self, unread: &UnreadLine<'_, V>) -> Result<Option<RenderedMessage>, QueryError> {
        let (stamp, cache) = (unread.stamp(), self.reader.cache);
        if self.blocked.is_empty()
            && let Some(seq) = unread.likely_seq()
            && let Some(cached) = cache.get(seq, F::NAME, stamp, unread.stored())
            && self.is_still_true(seq, &cached)?
        {
            return Ok(Some(RenderedMessage { stamp, text: cached.rendered.clone(), hash: cached.hash }));
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
        let mut hash = [0; 16];
        hash.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
        if line.is_settled() && matches!(message.content, ShownContent::Here(_)) {
            let chosen = match claimed(&message) {
                Some(claimed) => Some((claimed.as_ref().into(), self.leads(seq, &claimed)?)),
                None => None,
            };
            let (generation, thread) = (self.reader.generation, self.thread.into());
            let row = unread.stored().into();
            let cached = CachedMessage { generation, stamp, row, thread, chosen, rendered: text.clone(), hash };
            cache.insert(seq, F::NAME, cached);
        }
        Ok(Some(RenderedMessage { stamp, text, hash }))
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
