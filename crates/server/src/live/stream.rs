//! One stream: catching up from the journal, then following its topic.

use super::EventQuery;
use super::hub::{CHUNK, Told, Topic, thread_of, told};
use crate::caller::{Guest, Seen};
use crate::problem::Problem;
use crate::state::{House, Shared};
use crate::threads::visible;
use axum::response::sse::Event;
use futures_util::Stream;
use model::crypto::public_space;
use model::{EventId, Position, Seq};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Weak};
use store::Db;
use store::tables::View;
use tokio::sync::broadcast;

/// A reader that is more entries behind than this reads pages anew rather than catching up.
const CATCH_UP_MAX: u64 = 100_000;

/// What a stream is.
struct Listener {
    house: Weak<House>,
    guest: Guest,
    seen: Seen,
    thread: Option<Seq>,
    only_mine: bool,
    receiver: broadcast::Receiver<Arc<Told>>,
    /// What was read and not sent yet.
    waiting: VecDeque<Event>,
    /// Up to where the journal was read.
    read_up_to: u64,
    /// Up to where it has to be read; the topic brings what comes after.
    catch_up_to: u64,
    is_over: bool,
}

/// Opens a stream, from now on or after a position.
pub(super) fn open(
    house: &Shared,
    guest: &Guest,
    query: &EventQuery,
    last: Option<Option<Position>>,
) -> Result<impl Stream<Item = Result<Event, Infallible>> + use<>, Problem> {
    let only_mine = match query.user.as_deref() {
        None => false,
        Some("me") => true,
        Some(_) => return Err(Problem::bad_request("user is me, or absent")),
    };
    let db = house.node.snapshot()?;
    let seen = guest.seen(&db, house.node.now())?;
    if only_mine && seen.user.is_none() {
        return Err(Problem::bad_request("a stream of what concerns a user needs a user"));
    }
    let thread = query.thread.as_ref().map(|name| visible(&db, &seen, name)).transpose()?.map(|(_, seq)| seq);
    // First the topic, then the snapshot: what is in neither does not exist.
    let receiver = house.hub.listen(thread.map_or(Topic::Space(seen.no), Topic::Thread));
    let db = house.node.snapshot()?;
    let now = db.position()?;
    let mut waiting = VecDeque::new();
    let read_up_to = match last {
        None => now.number,
        Some(last) => match last.filter(|last| can_resume(&db, last, &now)) {
            Some(last) => last.number,
            None => {
                waiting.push_back(Event::default().event("reset").id(now.to_string()).data("{}"));
                now.number
            }
        },
    };
    let listener = Listener {
        house: Arc::downgrade(&house.0),
        guest: guest.clone(),
        seen,
        thread,
        only_mine,
        receiver,
        waiting,
        read_up_to,
        catch_up_to: now.number,
        is_over: false,
    };
    Ok(futures_util::stream::unfold(listener, |mut listener| async move {
        let event = listener.next().await?;
        Some((Ok(event), listener))
    }))
}

/// Whether everything after a position is still in the journal, and not too much.
fn can_resume<V: View>(db: &Db<V>, last: &Position, now: &Position) -> bool {
    let is_whole = db.journal(None, 0, 1).is_ok_and(|first| match first.first() {
        Some((first, _)) => last.number.saturating_add(1) >= *first,
        None => true,
    });
    last.epoch == now.epoch && last.number <= now.number && now.number - last.number <= CATCH_UP_MAX && is_whole
}

impl Listener {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            if self.read_up_to < self.catch_up_to {
                self.read_on().ok()?;
                tokio::task::yield_now().await;
                continue;
            }
            match self.receiver.recv().await {
                Ok(told) => self.hear(&told),
                // Too far behind: the reader comes back and resumes from the journal.
                Err(broadcast::error::RecvError::Lagged(_) | broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    /// Reads a part of what lies between the reader's position and the snapshot.
    fn read_on(&mut self) -> Result<(), Problem> {
        let house = self.house.upgrade().ok_or_else(|| Problem::overloaded("the node is stopping"))?;
        let db = house.node.snapshot()?;
        let entries = db.journal(Some(self.seen.no), self.read_up_to, CHUNK)?;
        self.read_up_to = entries.last().map_or(self.catch_up_to, |(number, _)| *number);
        let to = self.catch_up_to;
        for (number, entry) in entries.iter().filter(|(number, _)| *number <= to) {
            let is_elsewhere = self.thread.is_some() && thread_of(&db, entry)? != self.thread;
            if !is_elsewhere && let Some(told) = told(&db, *number, entry)? {
                self.take(&told);
            }
        }
        Ok(())
    }

    /// Takes what the topic brings, unless the journal brought it already.
    fn hear(&mut self, told: &Told) {
        if told.position.is_some_and(|position| position.number <= self.catch_up_to) {
            return;
        }
        if told.changes_rights && self.look_again().is_err() {
            self.is_over = true;
            return;
        }
        self.take(told);
    }

    /// Whether the reader may still read.
    fn look_again(&mut self) -> Result<(), Problem> {
        let house = self.house.upgrade().ok_or_else(|| Problem::overloaded("the node is stopping"))?;
        let db = house.node.snapshot()?;
        self.seen = self.guest.seen(&db, house.node.now())?;
        Ok(())
    }

    fn take(&mut self, told: &Told) {
        if !self.may_know(told) || self.only_mine && !self.concerns_me(told) {
            return;
        }
        let mut event = Event::default().event(told.name).data(&told.data);
        if let Some(position) = told.position {
            event = event.id(position.to_string());
        }
        self.waiting.push_back(event);
    }

    fn may_know(&self, told: &Told) -> bool {
        let Some(only) = &told.only else { return true };
        match (&self.seen.caller.user, self.seen.identity()) {
            // A key that acts for nobody in particular sees the whole space.
            (None, _) => true,
            (Some(_), Some(identity)) => only.contains(identity),
            (Some(_), None) => false,
        }
    }

    fn concerns_me(&self, told: &Told) -> bool {
        let Some(identity) = self.seen.identity() else { return false };
        let mine = EventId(public_space(identity).0);
        told.by == *identity || told.only.is_some() || told.mentions.contains(&mine)
    }
}
