//! One subscription: catching up from the journal, then following its topic.

use super::feed::{BATCH_BYTES_MAX, CHUNK, joined_entries, live_event, thread_of};
use super::hub::{ChangedRights, LiveBatch, LiveEvent, LiveHub, Topic};
use crate::error::QueryError;
use crate::viewer::Viewer;
use crate::visibility::find_thread;
use model::{Position, Seq};
use std::sync::Arc;
use std::time::Duration;
use store::Db;
use store::tables::{Snapshot, TableReads};
use tokio::sync::broadcast;

/// A reader that is more entries behind than this reads pages anew rather than catching up.
const CATCH_UP_MAX: u64 = 100_000;
/// How often a quiet subscription shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Takes a new snapshot and resolves the viewer in it: their key or session, the user, the membership. An error ends the
/// subscription.
pub type Recheck = Box<dyn Fn() -> Result<(Arc<Db<Snapshot>>, Viewer), QueryError> + Send + Sync>;

/// What to subscribe to; the whole space if nothing is named.
#[derive(Clone, Debug, Default)]
pub struct SubscriptionFilter {
    pub thread: Option<String>,
    /// Only what concerns the viewer: mentions, private threads, and what they did elsewhere.
    pub only_concerning_viewer: bool,
}

/// Where a subscription begins.
#[derive(Clone, Copy, Debug)]
pub enum ResumeAfter {
    /// With what happens from now on.
    Now,
    Position(Position),
    /// A position that does not parse: the reader has to read pages anew.
    Unknown,
}

/// What a subscription brings.
#[derive(Debug)]
pub enum StreamItem {
    /// What was missed cannot be told any more: read pages anew, as of this position.
    Reset(Position),
    Event(Arc<LiveEvent>),
    /// Nothing happened for a while.
    KeepAlive,
}

/// A subscription of one viewer.
pub struct Subscription {
    recheck: Recheck,
    viewer: Viewer,
    thread: Option<Seq>,
    only_concerning_viewer: bool,
    receiver: broadcast::Receiver<Arc<LiveBatch>>,
    /// What is sent before anything else.
    first: Option<StreamItem>,
    /// What is being sent, shared with other subscribers, and how much of it was.
    batch: Option<Arc<LiveBatch>>,
    sent: usize,
    /// Up to where the journal was read.
    read_up_to: u64,
    /// Up to where it has to be read; the topic brings what comes after.
    catch_up_to: u64,
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Subscription({} of {})", self.read_up_to, self.catch_up_to)
    }
}

/// Whether everything after a position is still in the journal, and not too much.
fn can_resume<V: TableReads>(db: &Db<V>, last: &Position, now: &Position) -> bool {
    now.number.saturating_sub(last.number) <= CATCH_UP_MAX && db.can_resume_after(last, now).unwrap_or(false)
}

impl Subscription {
    /// Subscribes from now on, or after a position.
    pub fn open(
        hub: &LiveHub,
        filter: &SubscriptionFilter,
        after: ResumeAfter,
        recheck: Recheck,
    ) -> Result<Subscription, QueryError> {
        let (db, viewer) = recheck()?;
        if filter.only_concerning_viewer && viewer.user.is_none() {
            return Err(QueryError::malformed("a stream of what concerns a user needs a user"));
        }
        let thread = filter.thread.as_ref().map(|name| find_thread(&db, &viewer, name)).transpose()?;
        let thread = thread.map(|(_, seq)| seq);
        // First the topic, then the snapshot: what is in neither does not exist.
        let topic = thread.map_or(Topic::Space(viewer.no), |thread| Topic::Thread(viewer.no, thread));
        let receiver = hub.subscribe(topic);
        let (db, viewer) = recheck()?;
        let now = db.position()?;
        let (first, read_up_to) = match after {
            ResumeAfter::Now => (None, now.number),
            ResumeAfter::Position(last) if can_resume(&db, &last, &now) => (None, last.number),
            ResumeAfter::Position(_) | ResumeAfter::Unknown => (Some(StreamItem::Reset(now)), now.number),
        };
        Ok(Subscription {
            recheck,
            viewer,
            thread,
            only_concerning_viewer: filter.only_concerning_viewer,
            receiver,
            first,
            batch: None,
            sent: 0,
            read_up_to,
            catch_up_to: now.number,
        })
    }

    /// What comes next. Without it the subscription is over.
    pub async fn next(&mut self) -> Option<StreamItem> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            if let Some(event) = self.next_of_batch() {
                return Some(StreamItem::Event(event));
            }
            if self.read_up_to < self.catch_up_to {
                self.read_journal().ok()?;
                tokio::task::yield_now().await;
                continue;
            }
            match tokio::time::timeout(KEEP_ALIVE, self.receiver.recv()).await {
                Err(_) => return Some(StreamItem::KeepAlive),
                Ok(Ok(batch)) => self.take_batch(batch).ok()?,
                // Too far behind: the reader comes back and resumes from the journal.
                Ok(Err(broadcast::error::RecvError::Lagged(_) | broadcast::error::RecvError::Closed)) => return None,
            }
        }
    }

    /// What the viewer receives of the batch at hand.
    fn next_of_batch(&mut self) -> Option<Arc<LiveEvent>> {
        let batch = self.batch.take()?;
        let LiveBatch::Events(events) = &*batch else { return None };
        while let Some(event) = events.get(self.sent) {
            self.sent += 1;
            if self.is_wanted(event) {
                let event = event.clone();
                self.batch = Some(batch);
                return Some(event);
            }
        }
        None
    }

    /// Reads a part of what lies between the reader's position and the snapshot.
    fn read_journal(&mut self) -> Result<(), QueryError> {
        let (db, viewer) = (self.recheck)()?;
        self.viewer = viewer;
        let entries = db.journal(Some(self.viewer.no), self.read_up_to, CHUNK)?;
        self.read_up_to = entries.last().map_or(self.catch_up_to, |(number, _)| *number);
        let to = self.catch_up_to;
        let (mut found, mut bytes) = (Vec::new(), 0);
        let told: Vec<_> = entries.into_iter().filter(|(number, _)| *number <= to).collect();
        for (number, entry) in &joined_entries(&told) {
            let is_of_another_thread = self.thread.is_some() && thread_of(&db, entry)? != self.thread;
            if !is_of_another_thread && let Some(event) = live_event(&db, *number, entry)? {
                bytes += event.data.len();
                found.push(Arc::new(event));
            }
            if bytes >= BATCH_BYTES_MAX {
                self.read_up_to = *number;
                break;
            }
        }
        (self.batch, self.sent) = (Some(Arc::new(LiveBatch::Events(found))), 0);
        Ok(())
    }

    /// Takes what the topic brings, unless the journal brought it already.
    fn take_batch(&mut self, batch: Arc<LiveBatch>) -> Result<(), QueryError> {
        let is_new = |event: &Arc<LiveEvent>| event.position.is_none_or(|position| position.number > self.catch_up_to);
        match &*batch {
            LiveBatch::Changed(rights) if self.may_be_changed_by(rights) => self.viewer = (self.recheck)()?.1,
            LiveBatch::Changed(_) => {}
            LiveBatch::Events(events) => {
                self.sent = events.iter().position(is_new).unwrap_or(events.len());
                self.batch = Some(batch);
            }
        }
        Ok(())
    }

    fn may_be_changed_by(&self, rights: &ChangedRights) -> bool {
        match (rights, &self.viewer.caller.user, self.viewer.identity()) {
            (ChangedRights::Same, _, _) | (ChangedRights::Of(_), None, _) => false,
            (ChangedRights::Of(whose), Some(_), Some(identity)) => whose.contains(identity),
            // A user who had not written when the stream began may be one of them by now.
            (ChangedRights::Everyone, _, _) | (ChangedRights::Of(_), Some(_), None) => true,
        }
    }

    fn is_wanted(&self, event: &LiveEvent) -> bool {
        self.viewer.may_receive(&event.audience)
            && (!self.only_concerning_viewer || self.viewer.is_concerned(&event.audience))
    }
}
