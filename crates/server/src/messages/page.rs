//! Pages of messages: which ones, and which of them the caller may see.

use super::form::{HtmlMessages, MessageFormat};
use super::{MessageQuery, Messages};
use crate::ask::named;
use crate::caller::{RequestContext, Viewer};
use crate::kept::RenderedMessage;
use crate::pages::{AuthorBadge, article};
use crate::problem::Problem;
use crate::render::{Message, Renderer, Thread, claimed};
use crate::state::{ServerState, SharedState};
use crate::threads::{limit, visible};
use axum::response::{IntoResponse, Response};
use engine::access::{Action, Decision, Facts, decide};
use engine::reads::Reads as _;
use http::header::CONTENT_TYPE;
use maud::Markup;
use model::crypto::public_space;
use model::{AuthorNo, EventId, Identity, Kind, Seq, Stamp};
use node::commands;
use std::sync::Arc;
use store::Db;
use store::shared::moderation::BlockKind;
use store::tables::TableReads;
use store::views::messages::{self, ShownContent};
use store::views::timeline::TimelineLine;

/// Messages on one page.
const PAGE_MAX: usize = 500;
/// Messages that one request looks at while it leaves out the deleted.
const LOOKED_AT_MAX: usize = 5000;

/// A page whose messages are rendered already; clients see [`Messages`].
pub(crate) struct MessagePage {
    thread: String,
    messages: Vec<Shelved>,
}

impl IntoResponse for MessagePage {
    fn into_response(self) -> Response {
        let length: usize = self.messages.iter().map(|message| message.text.len() + 1).sum();
        let mut text = String::with_capacity(length + self.thread.len() + 64);
        text.push_str("{\"thread\":");
        text.push_str(&serde_json::Value::from(self.thread).to_string());
        text.push_str(",\"messages\":[");
        for (number, message) in self.messages.iter().enumerate() {
            if number > 0 {
                text.push(',');
            }
            text.push_str(&message.text);
        }
        text.push_str("]}");
        ([(CONTENT_TYPE, "application/json")], text).into_response()
    }
}

/// A message of a page.
struct Shelved {
    stamp: Stamp,
    text: Arc<str>,
}

/// A snapshot and the guest who looks at it.
pub(crate) struct MessageReader<'a, V> {
    state: &'a ServerState,
    generation: u64,
    db: &'a Db<V>,
    viewer: &'a Viewer,
}

impl<V: TableReads> MessageReader<'_, V> {
    pub(super) fn page(&self, thread: &str, query: &MessageQuery) -> Result<MessagePage, Problem> {
        Ok(self.shelved(thread, query, MessageFormat::Json)?.1)
    }

    /// The same as HTML.
    pub(crate) fn stack(&self, thread: &str, query: &MessageQuery, space: &str) -> Result<HtmlMessages, Problem> {
        let (seq, found) = self.shelved(thread, query, MessageFormat::Html(space))?;
        let id = |message: Option<&Shelved>| message.map(|message| message.stamp.id.to_string());
        let (first, last) = (id(found.messages.first()), id(found.messages.last()));
        let articles = found.messages.into_iter().map(|message| message.text).collect();
        Ok(HtmlMessages::new(articles, seq, first, last))
    }

    /// The thread of that name, without what it costs to know what is unread in it.
    pub(crate) fn head(&self, thread: &str) -> Result<Thread, Problem> {
        self.head_at(visible(self.db, self.viewer, thread)?.1)
    }

    /// The same, of a thread that the caller was found to see.
    pub(crate) fn head_at(&self, thread: Seq) -> Result<Thread, Problem> {
        let found = self.db.thread(thread)?.ok_or_else(|| Problem::not_found("there is no such thread"))?;
        self.renderer().head(&found)
    }

    /// How somebody is shown beside what they write.
    pub(crate) fn face(&self, author: &str) -> Result<AuthorBadge, Problem> {
        let account = self.db.account(&self.viewer.space, author)?;
        Ok(account.map_or_else(AuthorBadge::default, |account| AuthorBadge {
            display: account.display,
            has_picture: account.picture.is_some(),
        }))
    }

    /// A message as HTML.
    pub(crate) fn article(&self, space: &str, message: &Message) -> Result<Markup, Problem> {
        Ok(article(space, message, &self.face(&message.author)?))
    }

    /// The journal position that this is read at.
    pub(crate) fn position(&self) -> Result<String, Problem> {
        Ok(self.db.position()?.to_string())
    }

    /// The id of an event.
    pub(crate) fn event(&self, seq: Seq) -> Result<EventId, Problem> {
        Ok(self.db.id_of(seq)?)
    }

    /// The versions of a message that the caller may see.
    pub(crate) fn history(&self, seq: Seq) -> Result<Vec<Message>, Problem> {
        let mut versions = self.renderer().versions(seq)?;
        // What was deleted softly is there for those who could have deleted it.
        if versions.last().is_some_and(|last| last.deleted) && !self.may_change(seq)? {
            versions.drain(..versions.len() - 1);
        }
        Ok(versions)
    }

    fn shelved(
        &self,
        thread: &str,
        query: &MessageQuery,
        form: MessageFormat<'_>,
    ) -> Result<(Seq, MessagePage), Problem> {
        let (_, seq) = visible(self.db, self.viewer, thread)?;
        let most = limit(query.limit, PAGE_MAX)?;
        let at = |name: &Option<String>| name.as_ref().map(|name| self.place(seq, name)).transpose();
        let (before, after, around) = (at(&query.before)?, at(&query.after)?, at(&query.around)?);
        let thread = self.renderer().name(seq)?;
        let with_deleted = query.include_deleted == Some(true);
        let mut unseen = Vec::new();
        for identity in &self.viewer.blocked {
            unseen.extend(self.db.author_no(identity)?);
        }
        let shelf = Shelf { reader: self, seq, thread: &thread, with_deleted, unseen, form };
        let messages = match (before, after, around) {
            (None, None, None) => shelf.before(Stamp::LAST, most)?,
            (Some(before), None, None) => shelf.before(before, most)?,
            (None, Some(after), None) => shelf.after(after, most)?,
            (None, None, Some(middle)) => {
                let mut found = shelf.before(middle, most / 2)?;
                let from = Stamp { at: middle.at.minus(1), id: EventId([0xff; 16]) };
                let rest = shelf.after(from.min(middle), most - found.len())?;
                found.extend(rest.into_iter().filter(|message| message.stamp >= middle));
                found
            }
            _ => return Err(Problem::bad_request("before, after and around exclude each other")),
        };
        Ok((seq, MessagePage { thread, messages }))
    }

    /// The place of a message of this thread.
    fn place(&self, thread: Seq, name: &str) -> Result<Stamp, Problem> {
        let named = named(name, "message")?;
        match commands::find(self.db, self.viewer.no, &named, Kind::Message)? {
            Some((stamp, _, meta)) if meta.subject == thread => Ok(stamp),
            _ => Err(Problem::not_found("there is no such message in this thread")),
        }
    }

    /// The message of that name, if the caller may see it.
    pub(crate) fn message(&self, thread: Option<&str>, id: &str) -> Result<Seq, Problem> {
        let unknown = || Problem::not_found("there is no such message");
        let named = named(id, "message")?;
        let (_, seq, meta) = commands::find(self.db, self.viewer.no, &named, Kind::Message)?.ok_or_else(unknown)?;
        let place = match thread {
            Some(thread) => visible(self.db, self.viewer, thread)?.1,
            None => visible(self.db, self.viewer, &self.db.id_of(meta.subject)?.to_string()).map_err(|_| unknown())?.1,
        };
        if place == meta.subject { Ok(seq) } else { Err(unknown()) }
    }

    /// Whether the caller could change what somebody of that name wrote.
    pub(crate) fn may_change_by(&self, author: &str) -> bool {
        let is_own = self.viewer.caller.user.as_deref() == Some(author);
        let facts = Facts { is_closed_to_caller: false, is_own, is_known: true };
        decide(&self.viewer.principal, Action::Change, &facts) == Decision::Allow
    }

    /// A message by its name, if the caller wants to see what its author says.
    pub(crate) fn glimpsed(&self, id: &str) -> Result<Option<Message>, Problem> {
        let seq = self.message(None, id)?;
        let found = self.db.message_by_seq(seq)?;
        if found.is_some_and(|found| self.viewer.blocks(&found.author)) {
            return Ok(None);
        }
        self.renderer().message_at(seq).map(Some)
    }

    /// Whether the caller may say anything at all.
    pub(crate) fn may_write(&self) -> bool {
        self.viewer.may_write()
    }

    /// Whether the caller could change or delete a message.
    pub(crate) fn may_change(&self, seq: Seq) -> Result<bool, Problem> {
        let author = self.db.message_by_seq(seq)?.map(|found| found.author);
        let is_own = author.is_some() && author.as_ref() == self.viewer.identity();
        let facts = Facts { is_closed_to_caller: false, is_own, is_known: true };
        // Keys that act for no user see the whole space.
        Ok(self.viewer.caller.user.is_none()
            || decide(&self.viewer.principal, Action::Change, &facts) == Decision::Allow)
    }

    pub(crate) fn replies(&self, seq: Seq) -> Result<Messages, Problem> {
        let renderer = self.renderer();
        let mut messages = Vec::new();
        let thread = self.db.event(seq)?.and_then(|row| row.meta).map_or(Seq(0), |meta| meta.subject);
        let thread = renderer.name(thread)?;
        for (_, answer) in self.db.answers(self.viewer.no, &self.db.id_of(seq)?, PAGE_MAX)? {
            let Some(found) = self.db.message_by_seq(answer)? else { continue };
            if self.viewer.blocks(&found.author) {
                continue;
            }
            let message = renderer.message_at(answer)?;
            // An answer may stand in a thread that the caller does not see.
            if self.message(Some(&message.thread), &found.stamp.id.to_string()).is_ok() {
                messages.push(message);
            }
        }
        Ok(Messages { thread, messages })
    }

    /// The messages that mention the caller before a stamp, the latest first, and where to go on.
    pub(crate) fn mentions(&self, before: Stamp, most: usize) -> Result<(Vec<Message>, Option<Stamp>), Problem> {
        let Some(identity) = self.viewer.identity() else { return Ok((Vec::new(), None)) };
        let found = self.db.mentions(self.viewer.no, &public_space(identity), before, most)?;
        let next = found.last().filter(|_| found.len() == most).map(|(stamp, _)| *stamp);
        let mut messages = Vec::new();
        for (stamp, seq) in found {
            let Some(message) = self.db.message_by_seq(seq)? else { continue };
            let is_near = self.db.distance(&self.viewer.space, identity, &message.author)?.is_none();
            // A mention may stand in a thread that the caller does not see.
            if is_near && self.message(None, &stamp.id.to_string()).is_ok() {
                messages.push(self.renderer().message_at(seq)?);
            }
        }
        Ok((messages, next))
    }

    /// Whom the caller keeps at a distance.
    pub(crate) fn distances(&self) -> Result<Vec<(Identity, BlockKind)>, Problem> {
        match self.viewer.identity() {
            Some(identity) => Ok(self.db.distances(&self.viewer.space, identity)?),
            None => Ok(Vec::new()),
        }
    }

    pub(crate) fn renderer(&self) -> Renderer<'_, V> {
        Renderer { db: self.db, viewer: self.viewer }
    }
}

/// The messages of a thread that the caller sees.
struct Shelf<'a, V> {
    reader: &'a MessageReader<'a, V>,
    seq: Seq,
    thread: &'a str,
    with_deleted: bool,
    /// Authors whom the caller blocks.
    unseen: Vec<AuthorNo>,
    form: MessageFormat<'a>,
}

impl<V: TableReads> Shelf<'_, V> {
    fn before(&self, mut to: Stamp, most: usize) -> Result<Vec<Shelved>, Problem> {
        let mut found: Vec<Shelved> = Vec::new();
        let mut looked_at = 0;
        while found.len() < most && looked_at < LOOKED_AT_MAX {
            let wanted = most - found.len();
            let chunk =
                self.reader.db.lines_before(self.seq, to, wanted, |line| Ok((line.stamp(), self.message(&line)?)));
            let chunk = chunk.map_err(|problem: Problem| problem)?;
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

    fn after(&self, mut from: Stamp, most: usize) -> Result<Vec<Shelved>, Problem> {
        let mut found: Vec<Shelved> = Vec::new();
        let mut looked_at = 0;
        while found.len() < most && looked_at < LOOKED_AT_MAX {
            let wanted = most - found.len();
            let chunk =
                self.reader.db.lines_after(self.seq, from, wanted, |line| Ok((line.stamp(), self.message(&line)?)));
            let chunk = chunk.map_err(|problem: Problem| problem)?;
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
    fn message(&self, line: &TimelineLine<'_, V>) -> Result<Option<Shelved>, Problem> {
        let (seq, stamp) = (line.seq(), line.stamp());
        if !self.unseen.is_empty() && self.unseen.contains(&line.author()?) {
            return Ok(None);
        }
        let kept = match line.settled() {
            Some(row) => self.reader.state.kept.get(seq, row),
            None => None,
        };
        let kept = match kept {
            Some(kept) if self.is_still_true(seq, &kept)? => Some(kept),
            Some(_) | None => None,
        };
        if let Some(text) = kept.as_ref().and_then(|kept| self.form.kept(kept)) {
            return Ok(Some(Shelved { stamp, text: text.clone() }));
        }
        let message = line.message()?;
        if !self.is_wanted(&message) {
            return Ok(None);
        }
        let rendered = self.reader.renderer().message(&message, self.thread)?;
        let text = self.form.rendered(&rendered, || self.reader.face(&rendered.author))?;
        if let Some(row) = line.settled().filter(|_| matches!(message.content, ShownContent::Here(_))) {
            let chosen = match claimed(&message) {
                Some(claimed) => Some((claimed.as_ref().into(), self.leads(seq, &claimed)?)),
                None => None,
            };
            let (mut json, mut html) = kept.map_or((None, None), |kept| (kept.json.clone(), kept.html.clone()));
            match self.form {
                MessageFormat::Json => json = Some(text.clone()),
                MessageFormat::Html(_) => html = Some(text.clone()),
            }
            let (generation, thread) = (self.reader.generation, self.thread.into());
            let rendered = RenderedMessage { generation, row: row.into(), thread, chosen, json, html };
            self.reader.state.kept.keep(seq, rendered);
        }
        Ok(Some(Shelved { stamp, text }))
    }

    fn is_wanted(&self, message: &messages::MessageView) -> bool {
        match &message.content {
            _ if self.with_deleted => true,
            ShownContent::Deleted(_) => false,
            // Only a later version can say that a message was deleted.
            ShownContent::Here(bytes) => message.version == message.stamp || bytes != commands::DELETED,
            ShownContent::Absent | ShownContent::Invalid => true,
        }
    }

    fn leads(&self, seq: Seq, chosen: &str) -> Result<bool, Problem> {
        Ok(self.reader.db.chosen(self.reader.viewer.no, chosen)?.is_some_and(|(_, owner)| owner == seq))
    }

    /// Whether the thread is called as it was, and a chosen id leads where it led.
    fn is_still_true(&self, seq: Seq, kept: &RenderedMessage) -> Result<bool, Problem> {
        let leads = match &kept.chosen {
            Some((chosen, led)) => self.leads(seq, chosen)? == *led,
            None => true,
        };
        Ok(leads && *kept.thread == *self.thread)
    }
}

impl MessageReader<'_, store::tables::Snapshot> {
    /// The snapshot itself, for what is explained from it.
    pub(crate) fn snapshot(&self) -> &Db<store::tables::Snapshot> {
        self.db
    }
}

/// Runs a read for a guest on a snapshot.
pub(crate) fn with_message_reader<T>(
    state: &SharedState,
    context: &RequestContext,
    read: impl FnOnce(&MessageReader<'_, store::tables::Snapshot>) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let generation = state.kept.generation();
    let db = state.node.snapshot()?;
    let viewer = context.read_as(&db, state.node.now())?;
    read(&MessageReader { state, generation, db: &db, viewer: &viewer })
}
