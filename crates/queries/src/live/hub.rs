//! The topics that somebody subscribes to, and the batches they bring.
//!
//! All subscribers of a topic share a batch: an entry is rendered once, and its bytes on the wire are made once.

use crate::sync::lock;
use crate::visibility::Audience;
use bytes::Bytes;
use model::{Identity, Position, Seq, SpaceNo};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock};
use tokio::sync::broadcast;

/// A reader that is more than so many batches behind is cut off.
const BEHIND_MAX: usize = 64;

/// What can be subscribed to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Topic {
    Space(SpaceNo),
    Thread(SpaceNo, Seq),
}

impl Topic {
    fn space(self) -> SpaceNo {
        match self {
            Topic::Space(space) | Topic::Thread(space, _) => space,
        }
    }
}

/// A journal entry as subscribers receive it.
#[derive(Debug)]
pub struct LiveEvent {
    /// Its place in the journal; typing and presence have none.
    pub position: Option<Position>,
    /// What happened.
    pub name: &'static str,
    /// The same as JSON.
    pub data: String,
    /// The thread it happened in.
    pub thread: Option<Seq>,
    /// Whom it is for.
    pub audience: Audience,
    /// Its bytes on the wire, made for the first who receives it.
    encoded: OnceLock<Bytes>,
}

impl LiveEvent {
    /// An event at a journal position; typing and presence have none.
    pub fn new(
        position: Option<Position>,
        name: &'static str,
        data: String,
        thread: Option<Seq>,
        audience: Audience,
    ) -> LiveEvent {
        LiveEvent { position, name, data, thread, audience, encoded: OnceLock::new() }
    }

    /// Its bytes on the wire. All subscribers share what the first of them encoded.
    pub fn encoded(&self, encode: impl FnOnce(&LiveEvent) -> Bytes) -> Bytes {
        self.encoded.get_or_init(|| encode(self)).clone()
    }
}

/// Whose rights may have changed.
#[derive(Default, Debug)]
pub enum ChangedRights {
    #[default]
    Same,
    /// Of those identities.
    Of(Vec<Identity>),
    Everyone,
}

impl ChangedRights {
    pub(crate) fn and(self, other: ChangedRights) -> ChangedRights {
        match (self, other) {
            (ChangedRights::Same, other) => other,
            (one, ChangedRights::Same) => one,
            (ChangedRights::Everyone, _) | (_, ChangedRights::Everyone) => ChangedRights::Everyone,
            (ChangedRights::Of(mut one), ChangedRights::Of(other)) => {
                one.extend(other);
                ChangedRights::Of(one)
            }
        }
    }
}

/// What a topic brings at a time.
#[derive(Debug)]
pub enum LiveBatch {
    /// Rights changed; this comes before whatever happened since.
    Changed(ChangedRights),
    /// This happened, in this order.
    Events(Vec<Arc<LiveEvent>>),
}

type Sender = broadcast::Sender<Arc<LiveBatch>>;

/// The topics that somebody subscribes to.
#[derive(Debug, Default)]
pub struct LiveHub(Mutex<HashMap<Topic, Sender>>);

impl LiveHub {
    /// Subscribes to a topic from now on.
    pub fn subscribe(&self, topic: Topic) -> broadcast::Receiver<Arc<LiveBatch>> {
        let mut topics = lock(&self.0);
        topics.entry(topic).or_insert_with(|| broadcast::channel(BEHIND_MAX).0).subscribe()
    }

    /// Publishes something that is not in the journal, such as typing, to a space and a thread of it.
    pub fn publish(&self, space: SpaceNo, live_event: LiveEvent) {
        let thread = live_event.thread.map(|thread| Topic::Thread(space, thread));
        let batch = Arc::new(LiveBatch::Events(vec![Arc::new(live_event)]));
        self.send(Topic::Space(space), batch.clone());
        if let Some(thread) = thread {
            self.send(thread, batch);
        }
    }

    /// Tells every subscriber in a space that rights changed, so that they are checked again.
    pub fn change_rights(&self, space: SpaceNo, rights: ChangedRights) {
        let topics = lock(&self.0);
        let batch = Arc::new(LiveBatch::Changed(rights));
        for (_, sender) in topics.iter().filter(|(topic, _)| topic.space() == space) {
            let _ = sender.send(batch.clone());
        }
    }

    pub(crate) fn send(&self, topic: Topic, batch: Arc<LiveBatch>) {
        let topics = lock(&self.0);
        if let Some(sender) = topics.get(&topic) {
            let _ = sender.send(batch);
        }
    }

    /// How many subscribe to something.
    pub fn subscribers(&self) -> usize {
        let topics = lock(&self.0);
        topics.values().map(broadcast::Sender::receiver_count).sum()
    }

    /// Forgets topics that nobody subscribes to. Returns whether any is left.
    pub fn has_subscribers(&self) -> bool {
        let mut topics = lock(&self.0);
        topics.retain(|_, sender| sender.receiver_count() > 0);
        !topics.is_empty()
    }

    /// Which of the topics that an entry belongs to somebody subscribes to.
    pub(crate) fn topics(&self, space: SpaceNo, thread: Option<Seq>) -> Vec<Topic> {
        let topics = lock(&self.0);
        let all = [Some(Topic::Space(space)), thread.map(|thread| Topic::Thread(space, thread))];
        all.into_iter().flatten().filter(|topic| topics.contains_key(topic)).collect()
    }

    /// The spaces in which somebody subscribes to something.
    pub(crate) fn spaces(&self) -> HashSet<SpaceNo> {
        let topics = lock(&self.0);
        topics.keys().map(|topic| topic.space()).collect()
    }

    /// Ends every stream.
    pub fn close(&self) {
        lock(&self.0).clear();
    }
}
