//! Messages as a viewer reads them: one by its name, its versions and replies, mentions, [`page`]s of a thread, and the
//! [`latest`] of all threads.

mod latest;
mod page;

pub use latest::LatestMessages;
pub use page::{MessageFormat, MessageRange, PageEnd, RenderedMessage, RenderedPage};

use crate::cache::RenderCache;
use crate::error::QueryError;
use crate::renderer::Renderer;
use crate::shapes::{Message, Thread};
use crate::viewer::Viewer;
use crate::visibility::{find_message, find_thread, is_heard};
use model::crypto::public_space;
use model::{EventId, Seq, Stamp};
use node::commands::{ExpectedVersion, version_of};
use std::sync::Arc;
use store::Db;
use store::tables::TableReads;

/// How often one request looks for further replies or mentions, if the viewer sees too few of those that were found.
const LOOKS_MAX: usize = 10;

/// How somebody is shown beside what they write.
#[derive(Clone, Debug, Default)]
pub struct AuthorBadge {
    /// What they want to be called; empty for their name.
    pub display: String,
    pub has_picture: bool,
}

/// A snapshot, the viewer who reads it, and what was rendered before.
pub struct MessageReader<'a, V> {
    pub db: &'a Db<V>,
    pub viewer: &'a Viewer,
    /// Texts that pages are made of.
    pub cache: &'a RenderCache<Arc<str>>,
    /// Taken from the cache before the snapshot was.
    pub generation: u64,
}

impl<V> std::fmt::Debug for MessageReader<'_, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MessageReader({})", self.viewer.space)
    }
}

impl<V: TableReads> MessageReader<'_, V> {
    pub fn renderer(&self) -> Renderer<'_, V> {
        Renderer { db: self.db, viewer: self.viewer }
    }

    /// The thread of that name, without what it costs to know what is unread in it.
    pub fn thread_head(&self, thread: &str) -> Result<Thread, QueryError> {
        self.thread_head_at(find_thread(self.db, self.viewer, thread)?.1)
    }

    /// The same, of a thread that the viewer was found to see.
    pub fn thread_head_at(&self, thread: Seq) -> Result<Thread, QueryError> {
        let found = self.db.thread(thread)?.ok_or_else(|| QueryError::not_found("there is no such thread"))?;
        self.renderer().head(&found)
    }

    /// How somebody is shown beside what they write.
    pub fn author_badge(&self, author: &str) -> Result<AuthorBadge, QueryError> {
        let account = self.db.account(&self.viewer.space, author)?;
        Ok(account.map_or_else(AuthorBadge::default, |account| AuthorBadge {
            display: account.display,
            has_picture: account.picture.is_some(),
        }))
    }

    /// The journal position that this is read at.
    pub fn position(&self) -> Result<String, QueryError> {
        Ok(self.db.position()?.to_string())
    }

    /// The id of an event.
    pub fn event_id(&self, seq: Seq) -> Result<EventId, QueryError> {
        Ok(self.db.id_of(seq)?)
    }

    /// The message of that name, if the viewer sees it.
    pub fn find(&self, thread: Option<&str>, id: &str) -> Result<Seq, QueryError> {
        find_message(self.db, self.viewer, thread, id)
    }

    /// The same, rendered.
    pub fn message(&self, thread: Option<&str>, id: &str) -> Result<Message, QueryError> {
        self.renderer().message_at(self.find(thread, id)?)
    }

    /// A message by its name, unless the viewer blocks its author.
    pub fn message_unless_blocked(&self, id: &str) -> Result<Option<Message>, QueryError> {
        let seq = self.find(None, id)?;
        let found = self.db.message_by_seq(seq)?;
        if found.is_some_and(|found| self.viewer.blocks(&found.author)) {
            return Ok(None);
        }
        self.renderer().message_at(seq).map(Some)
    }

    /// What a thread or message is now, so that it is changed only as it is.
    pub fn version(&self, seq: Seq) -> Result<ExpectedVersion, QueryError> {
        Ok(ExpectedVersion { seq, version: version_of(self.db, seq)? })
    }

    /// Whether the viewer could change or delete a message.
    pub fn may_change(&self, seq: Seq) -> Result<bool, QueryError> {
        let author = self.db.message_by_seq(seq)?.map(|found| found.author);
        Ok(self.viewer.may_change(author.as_ref()))
    }

    /// The versions of a message that the viewer may see.
    pub fn history(&self, seq: Seq) -> Result<Vec<Message>, QueryError> {
        let mut versions = self.renderer().versions(seq)?;
        // What was deleted softly is there for those who could have deleted it.
        if versions.last().is_some_and(|last| last.deleted) && !self.may_change(seq)? {
            versions.drain(..versions.len() - 1);
        }
        Ok(versions)
    }

    /// The messages after a stamp that answer a message and that the viewer sees, and where to go on. What they do not see
    /// is not told either: the place to go on from is that of the last message which they see.
    pub fn replies(&self, seq: Seq, after: Stamp, most: usize) -> Result<(Vec<Message>, Option<Stamp>), QueryError> {
        let (renderer, target) = (self.renderer(), self.db.id_of(seq)?);
        let look = |from, most| Ok(self.db.answers(self.viewer.no, &target, from, most)?);
        let (seen, _) = look_for(after, most, look, |answer| {
            let Some(view) = self.db.message_by_seq(answer)?.filter(|view| !self.viewer.blocks(&view.author)) else {
                return Ok(None);
            };
            let message = renderer.message_at(answer)?;
            // An answer may stand in a thread that the viewer does not see.
            let is_seen = self.find(Some(&message.thread), &view.stamp.id.to_string()).is_ok();
            Ok(is_seen.then_some(message))
        })?;
        Ok(first_of(seen, most))
    }

    /// The messages that mention the viewer before a stamp, the latest first, and where to go on.
    pub fn mentions(&self, before: Stamp, most: usize) -> Result<(Vec<Message>, Option<Stamp>), QueryError> {
        let Some(identity) = self.viewer.identity() else { return Ok((Vec::new(), None)) };
        let mentioned = public_space(identity);
        let look = |from, most| Ok(self.db.mentions(self.viewer.no, &mentioned, from, most)?);
        let (seen, looked_at_to) = look_for(before, most, look, |seq| {
            let Some(message) = self.db.message_by_seq(seq)? else { return Ok(None) };
            // A mention may stand in a thread that the viewer does not see.
            let is_seen = is_heard(self.db, self.viewer, &message.author)?
                && self.find(None, &message.stamp.id.to_string()).is_ok();
            if is_seen { self.renderer().message_at(seq).map(Some) } else { Ok(None) }
        })?;
        let (messages, next) = first_of(seen, most);
        // Of what the viewer does not see only the time is told.
        let unseen = looked_at_to.map(|stamp| Stamp { at: stamp.at.plus(1), id: EventId::ZERO });
        Ok((messages, next.or(unseen)))
    }
}

/// Looks for one more message than is wanted, in bounds. Answers with those that are seen, and how far it looked, if it gave
/// up before the end.
#[expect(clippy::type_complexity, reason = "rows of a list, and where it was left")]
fn look_for(
    begin: Stamp,
    most: usize,
    look: impl Fn(Stamp, usize) -> Result<Vec<(Stamp, Seq)>, QueryError>,
    see: impl Fn(Seq) -> Result<Option<Message>, QueryError>,
) -> Result<(Vec<(Stamp, Message)>, Option<Stamp>), QueryError> {
    let (mut seen, mut from) = (Vec::new(), begin);
    for _ in 0..LOOKS_MAX {
        let found = look(from, most + 1)?;
        let is_last = found.len() <= most;
        for (stamp, seq) in found {
            from = stamp;
            seen.extend(see(seq)?.map(|message| (stamp, message)));
            if seen.len() > most {
                return Ok((seen, None));
            }
        }
        if is_last {
            return Ok((seen, None));
        }
    }
    Ok((seen, Some(from)))
}

/// As many as are wanted, and where to go on if there are more.
fn first_of(mut seen: Vec<(Stamp, Message)>, most: usize) -> (Vec<Message>, Option<Stamp>) {
    let has_more = seen.len() > most;
    seen.truncate(most);
    let next = seen.last().filter(|_| has_more).map(|(stamp, _)| *stamp);
    (seen.into_iter().map(|(_, message)| message).collect(), next)
}
