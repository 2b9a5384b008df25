//! One stream: catching up from the journal, then following its topic.

use super::EventQuery;
use super::hub::{ChangedRights, LiveBatch, LiveEvent, Topic};
use super::payload::{BATCH_BYTES_MAX, CHUNK, live_event, thread_of};
use crate::caller::{RequestContext, Viewer};
use crate::door::sessions;
use crate::problem::Problem;
use crate::state::{ServerState, SharedState};
use crate::threads::visible;
use bytes::Bytes;
use futures_util::Stream;
use model::crypto::public_space;
use model::{EventId, Position, Seq};
use node::commands::CallerKind;
use std::convert::Infallible;
use std::sync::{Arc, Weak};
use std::time::Duration;
use store::Db;
use store::tables::TableReads;
use tokio::sync::broadcast;

/// A reader that is more entries behind than this reads pages anew rather than catching up.
const CATCH_UP_MAX: u64 = 100_000;

/// How often a quiet stream shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// What it then says, which clients pass over.
const SIGN_OF_LIFE: Bytes = Bytes::from_static(b":\n\n");

/// What a stream is.
struct Listener {
    state: Weak<ServerState>,
    context: RequestContext,
    viewer: Viewer,
    thread: Option<Seq>,
    only_mine: bool,
    receiver: broadcast::Receiver<Arc<LiveBatch>>,
    /// What is sent before anything else.
    first: Option<Bytes>,
    /// What is being sent, shared with other listeners, and how much of it was.
    batch: Option<Arc<LiveBatch>>,
    sent: usize,
    /// Up to where the journal was read.
    read_up_to: u64,
    /// Up to where it has to be read; the topic brings what comes after.
    catch_up_to: u64,
}

/// Opens a stream, from now on or after a position.
pub(super) fn open(
    state: &SharedState,
    context: &RequestContext,
    query: &EventQuery,
    last: Option<Option<Position>>,
) -> Result<impl Stream<Item = Result<Bytes, Infallible>> + use<>, Problem> {
    let only_mine = match query.user.as_deref() {
        None => false,
        Some("me") => true,
        Some(_) => return Err(Problem::bad_request("user is me, or absent")),
    };
    let db = state.node.snapshot()?;
    let viewer = context.read_as(&db, state.node.now())?;
    if only_mine && viewer.user.is_none() {
        return Err(Problem::bad_request("a stream of what concerns a user needs a user"));
    }
    let thread = query.thread.as_ref().map(|name| visible(&db, &viewer, name)).transpose()?.map(|(_, seq)| seq);
    // First the topic, then the snapshot: what is in neither does not exist.
    let topic = thread.map_or(Topic::Space(viewer.no), |thread| Topic::Thread(viewer.no, thread));
    let receiver = state.hub.listen(topic);
    let db = state.node.snapshot()?;
    let viewer = look_again(state, context, &db)?;
    let now = db.position()?;
    let resumed = last.map(|last| last.filter(|last| can_resume(&db, last, &now)));
    let reset = || Bytes::from(format!("id: {now}\nevent: reset\ndata: {{}}\n\n"));
    let listener = Listener {
        state: Arc::downgrade(&state.0),
        context: context.clone(),
        viewer,
        thread,
        only_mine,
        receiver,
        first: resumed.is_some_and(|resumed| resumed.is_none()).then(reset),
        batch: None,
        sent: 0,
        read_up_to: resumed.flatten().map_or(now.number, |last| last.number),
        catch_up_to: now.number,
    };
    Ok(futures_util::stream::unfold(listener, |mut listener| async move {
        let frame = listener.next().await?;
        Some((Ok(frame), listener))
    }))
}

/// Whether a reader may still read: the key, the user and the membership.
fn look_again<V: TableReads>(state: &ServerState, context: &RequestContext, db: &Db<V>) -> Result<Viewer, Problem> {
    let now = state.node.now();
    if let CallerKind::Key(_) = context.caller.kind
        && !state.api_key(db, &context.account)?.is_some_and(|key| key.is_accepted(now))
    {
        return Err(Problem::unproven("the key is not accepted any more"));
    }
    if let Some(signed) = &context.signed
        && sessions::session(state, &signed.id)?.is_none()
    {
        return Err(Problem::unproven("the session has ended"));
    }
    context.read_as(db, now)
}

/// Whether everything after a position is still in the journal, and not too much.
fn can_resume<V: TableReads>(db: &Db<V>, last: &Position, now: &Position) -> bool {
    let is_whole = db.journal(None, 0, 1).is_ok_and(|first| match first.first() {
        Some((first, _)) => last.number.saturating_add(1) >= *first,
        None => true,
    });
    last.epoch == now.epoch && last.number <= now.number && now.number - last.number <= CATCH_UP_MAX && is_whole
}

impl Listener {
    /// What is sent next. Without it the stream is over.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            if let Some(frame) = self.next_of_batch() {
                return Some(frame);
            }
            if self.read_up_to < self.catch_up_to {
                self.read_on().ok()?;
                tokio::task::yield_now().await;
                continue;
            }
            match tokio::time::timeout(KEEP_ALIVE, self.receiver.recv()).await {
                Err(_) => return Some(SIGN_OF_LIFE),
                Ok(Ok(batch)) => self.hear(batch).ok()?,
                // Too far behind: the reader comes back and resumes from the journal.
                Ok(Err(broadcast::error::RecvError::Lagged(_) | broadcast::error::RecvError::Closed)) => return None,
            }
        }
    }

    /// What this reader gets of the batch at hand.
    fn next_of_batch(&mut self) -> Option<Bytes> {
        let batch = self.batch.take()?;
        let LiveBatch::Told(live_event) = &*batch else { return None };
        while let Some(live_event) = live_event.get(self.sent) {
            self.sent += 1;
            if self.is_for_me(live_event) {
                let frame = live_event.frame();
                self.batch = Some(batch);
                return Some(frame);
            }
        }
        None
    }

    /// Reads a part of what lies between the reader's position and the snapshot.
    fn read_on(&mut self) -> Result<(), Problem> {
        let state = self.state.upgrade().ok_or_else(|| Problem::overloaded("the node is stopping"))?;
        let db = state.node.snapshot()?;
        self.viewer = look_again(&state, &self.context, &db)?;
        let entries = db.journal(Some(self.viewer.no), self.read_up_to, CHUNK)?;
        self.read_up_to = entries.last().map_or(self.catch_up_to, |(number, _)| *number);
        let to = self.catch_up_to;
        let (mut found, mut bytes) = (Vec::new(), 0);
        for (number, entry) in entries.iter().filter(|(number, _)| *number <= to) {
            let is_elsewhere = self.thread.is_some() && thread_of(&db, entry)? != self.thread;
            if !is_elsewhere && let Some(live_event) = live_event(&db, *number, entry)? {
                bytes += live_event.data.len();
                found.push(Arc::new(live_event));
            }
            if bytes >= BATCH_BYTES_MAX {
                self.read_up_to = *number;
                break;
            }
        }
        (self.batch, self.sent) = (Some(Arc::new(LiveBatch::Told(found))), 0);
        Ok(())
    }

    /// Takes what the topic brings, unless the journal brought it already.
    fn hear(&mut self, batch: Arc<LiveBatch>) -> Result<(), Problem> {
        let is_new =
            |live_event: &Arc<LiveEvent>| live_event.position.is_none_or(|position| position.number > self.catch_up_to);
        match &*batch {
            LiveBatch::Changed(rights) if self.is_about_me(rights) => {
                let state = self.state.upgrade().ok_or_else(|| Problem::overloaded("the node is stopping"))?;
                self.viewer = look_again(&state, &self.context, &*state.node.snapshot()?)?;
            }
            LiveBatch::Changed(_) => {}
            LiveBatch::Told(live_event) => {
                self.sent = live_event.iter().position(is_new).unwrap_or(live_event.len());
                self.batch = Some(batch);
            }
        }
        Ok(())
    }

    fn is_about_me(&self, rights: &ChangedRights) -> bool {
        match (rights, &self.viewer.caller.user, self.viewer.identity()) {
            (ChangedRights::Same, _, _) | (ChangedRights::Of(_), None, _) => false,
            (ChangedRights::Of(whose), Some(_), Some(identity)) => whose.contains(identity),
            // A user who had not written when the stream began may be one of them by now.
            (ChangedRights::Everyone, _, _) | (ChangedRights::Of(_), Some(_), None) => true,
        }
    }

    fn is_for_me(&self, live_event: &LiveEvent) -> bool {
        self.may_know(live_event)
            && !self.is_from_blocked(live_event)
            && (!self.only_mine || self.concerns_me(live_event))
    }

    fn is_from_blocked(&self, live_event: &LiveEvent) -> bool {
        self.viewer.blocks(&live_event.by) || live_event.shows.as_ref().is_some_and(|author| self.viewer.blocks(author))
    }

    fn may_know(&self, live_event: &LiveEvent) -> bool {
        let Some(only) = &live_event.only else { return true };
        match (&self.viewer.caller.user, self.viewer.identity()) {
            // A key that acts for nobody in particular sees the whole space.
            (None, _) => true,
            (Some(_), Some(identity)) => only.contains(identity),
            (Some(_), None) => false,
        }
    }

    fn concerns_me(&self, live_event: &LiveEvent) -> bool {
        let Some(identity) = self.viewer.identity() else { return false };
        let mine = EventId(public_space(identity).0);
        live_event.by == *identity || live_event.only.is_some() || live_event.mentions.contains(&mine)
    }
}
