//! Pages of messages: which ones, and which of them the caller may see.

use super::{MessageQuery, Messages};
use crate::ask::named;
use crate::caller::{Guest, Seen};
use crate::problem::Problem;
use crate::render::Renderer;
use crate::state::Shared;
use crate::threads::{limit, visible};
use model::{Kind, Seq, Stamp};
use node::acts;
use store::Db;
use store::tables::View;
use store::views;

/// Messages on one page.
const PAGE_MAX: usize = 500;
/// Messages that one request looks at while it leaves out the deleted.
const LOOKED_AT_MAX: usize = 5000;

/// A snapshot and the guest who looks at it.
pub(crate) struct Look<'a, V> {
    db: &'a Db<V>,
    seen: &'a Seen,
}

impl<V: View> Look<'_, V> {
    pub(super) fn page(&self, thread: &str, query: &MessageQuery) -> Result<Messages, Problem> {
        let (_, seq) = visible(self.db, self.seen, thread)?;
        let most = limit(query.limit, PAGE_MAX)?;
        let at = |name: &Option<String>| name.as_ref().map(|name| self.place(seq, name)).transpose();
        let (before, after, around) = (at(&query.before)?, at(&query.after)?, at(&query.around)?);
        let found = match (before, after, around) {
            (None, None, None) => self.before(seq, Stamp::LAST, most, query)?,
            (Some(before), None, None) => self.before(seq, before, most, query)?,
            (None, Some(after), None) => self.after(seq, after, most, query)?,
            (None, None, Some(middle)) => {
                let mut found = self.before(seq, middle, most / 2, query)?;
                let from = Stamp { at: middle.at.minus(1), id: model::EventId([0xff; 16]) };
                let rest = self.after(seq, from.min(middle), most - found.len(), query)?;
                found.extend(rest.into_iter().filter(|message| message.stamp >= middle));
                found
            }
            _ => return Err(Problem::bad_request("before, after and around exclude each other")),
        };
        let renderer = Renderer { db: self.db, seen: self.seen };
        let thread = renderer.name(seq)?;
        let messages = found.iter().map(|message| renderer.message(message, &thread)).collect::<Result<_, _>>()?;
        Ok(Messages { thread, messages })
    }

    /// The place of a message of this thread.
    fn place(&self, thread: Seq, name: &str) -> Result<Stamp, Problem> {
        let named = named(name, "message")?;
        match acts::find(self.db, self.seen.no, &named, Kind::Message)? {
            Some((stamp, _, meta)) if meta.subject == thread => Ok(stamp),
            _ => Err(Problem::not_found("there is no such message in this thread")),
        }
    }

    fn before(
        &self,
        thread: Seq,
        mut to: Stamp,
        most: usize,
        query: &MessageQuery,
    ) -> Result<Vec<views::Message>, Problem> {
        let mut found = Vec::new();
        let mut looked_at = 0;
        while found.len() < most && looked_at < LOOKED_AT_MAX {
            let chunk = self.db.timeline(thread, to, most - found.len())?;
            let Some(first) = chunk.first() else { break };
            to = first.stamp;
            looked_at += chunk.len();
            let is_last = chunk.len() < most - found.len();
            let mut kept: Vec<_> = chunk.into_iter().filter(|message| self.is_wanted(message, query)).collect();
            kept.extend(found);
            found = kept;
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    fn after(
        &self,
        thread: Seq,
        mut from: Stamp,
        most: usize,
        query: &MessageQuery,
    ) -> Result<Vec<views::Message>, Problem> {
        let mut found: Vec<views::Message> = Vec::new();
        let mut looked_at = 0;
        while found.len() < most && looked_at < LOOKED_AT_MAX {
            let wanted = most - found.len();
            let chunk = self.db.timeline_after(thread, from, wanted)?;
            let Some(last) = chunk.last() else { break };
            from = last.stamp;
            looked_at += chunk.len();
            let is_last = chunk.len() < wanted;
            found.extend(chunk.into_iter().filter(|message| self.is_wanted(message, query)));
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    fn is_wanted(&self, message: &views::Message, query: &MessageQuery) -> bool {
        if query.include_deleted == Some(true) {
            return true;
        }
        match &message.content {
            views::Shown::Deleted(_) => false,
            // Only a later version can say that a message was deleted.
            views::Shown::Here(bytes) => message.version == message.stamp || bytes != br#"{"deleted":true}"#,
            views::Shown::Absent | views::Shown::Invalid => true,
        }
    }

    /// The message of that name, if the caller may see it.
    pub(crate) fn message(&self, thread: Option<&str>, id: &str) -> Result<Seq, Problem> {
        let unknown = || Problem::not_found("there is no such message");
        let named = named(id, "message")?;
        let (_, seq, meta) = acts::find(self.db, self.seen.no, &named, Kind::Message)?.ok_or_else(unknown)?;
        let place = match thread {
            Some(thread) => visible(self.db, self.seen, thread)?.1,
            None => visible(self.db, self.seen, &self.db.id_of(meta.subject)?.to_string()).map_err(|_| unknown())?.1,
        };
        if place == meta.subject { Ok(seq) } else { Err(unknown()) }
    }

    pub(super) fn replies(&self, seq: Seq) -> Result<Messages, Problem> {
        let renderer = Renderer { db: self.db, seen: self.seen };
        let mut messages = Vec::new();
        let mut thread = String::new();
        for (_, answer) in self.db.answers(self.seen.no, &self.db.id_of(seq)?, PAGE_MAX)? {
            let Some(found) = self.db.message_by_seq(answer)? else { continue };
            let message = renderer.message_at(answer)?;
            // An answer may stand in a thread that the caller does not see.
            if self.message(Some(&message.thread), &found.stamp.id.to_string()).is_ok() {
                thread.clone_from(&message.thread);
                messages.push(message);
            }
        }
        Ok(Messages { thread, messages })
    }
}

/// Runs a read for a guest on a snapshot.
pub(crate) fn look<T>(
    house: &Shared,
    guest: &Guest,
    read: impl FnOnce(&Look<'_, store::tables::Snapshot>) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let db = house.node.snapshot()?;
    let seen = guest.seen(&db, house.node.now())?;
    read(&Look { db: &db, seen: &seen })
}

impl<V: View> Look<'_, V> {
    pub(crate) fn renderer(&self) -> Renderer<'_, V> {
        Renderer { db: self.db, seen: self.seen }
    }
}
