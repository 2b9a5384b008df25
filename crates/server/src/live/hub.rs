//! The topics that somebody listens to, and what they bring.
//!
//! All listeners of a topic share what it brings: an entry is rendered once, and its bytes on the wire are made once.

use bytes::Bytes;
use model::{EventId, Identity, Position, Seq, SpaceNo};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::broadcast;

/// A reader that is more than so many batches behind is cut off.
const BEHIND_MAX: usize = 64;

/// What can be listened to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Topic {
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

/// A journal entry as listeners get it.
#[derive(Debug)]
pub(crate) struct LiveEvent {
    /// Its journal number; typing and presence have none.
    pub(crate) position: Option<Position>,
    /// What happened.
    pub(crate) name: &'static str,
    /// The same as JSON.
    pub(crate) data: String,
    /// The thread it happened in.
    pub(crate) thread: Option<Seq>,
    /// Who alone may know: participants of a private thread, or the owner of a read marker.
    pub(crate) only: Option<Vec<Identity>>,
    /// Who did it.
    pub(crate) by: Identity,
    /// Who wrote the message that it shows.
    pub(crate) shows: Option<Identity>,
    /// The public spaces of those it mentions.
    pub(crate) mentions: Vec<EventId>,
    /// Its bytes on the wire, made for the first who gets it.
    pub(crate) frame: OnceLock<Bytes>,
}

impl LiveEvent {
    /// What every listener is sent. JSON has no line breaks, so the data is one line.
    pub(super) fn frame(&self) -> Bytes {
        let frame = self.frame.get_or_init(|| {
            let mut text = String::with_capacity(self.data.len() + 64);
            if let Some(position) = self.position {
                let _ = writeln!(text, "id: {position}");
            }
            let _ = write!(text, "event: {}\ndata: {}\n\n", self.name, self.data);
            Bytes::from(text)
        });
        frame.clone()
    }
}

/// Whose rights may have changed.
#[derive(Default, Debug)]
pub(crate) enum ChangedRights {
    #[default]
    Same,
    Of(Vec<Identity>),
    Everyone,
}

impl ChangedRights {
    pub(super) fn and(self, other: ChangedRights) -> ChangedRights {
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
pub(crate) enum LiveBatch {
    /// Rights changed; this comes before whatever happened since.
    Changed(ChangedRights),
    /// This happened, in this order.
    Told(Vec<Arc<LiveEvent>>),
}

type Sender = broadcast::Sender<Arc<LiveBatch>>;

/// The topics that somebody listens to.
#[derive(Debug, Default)]
pub(crate) struct LiveHub(Mutex<HashMap<Topic, Sender>>);

impl LiveHub {
    /// Listens to a topic from now on.
    pub(crate) fn listen(&self, topic: Topic) -> broadcast::Receiver<Arc<LiveBatch>> {
        let mut topics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        topics.entry(topic).or_insert_with(|| broadcast::channel(BEHIND_MAX).0).subscribe()
    }

    /// Tells those who listen to a thread or its space something that is not in the journal.
    pub(crate) fn tell(&self, space: SpaceNo, live_event: LiveEvent) {
        let thread = live_event.thread.map(|thread| Topic::Thread(space, thread));
        let batch = Arc::new(LiveBatch::Told(vec![Arc::new(live_event)]));
        self.send(Topic::Space(space), batch.clone());
        if let Some(thread) = thread {
            self.send(thread, batch);
        }
    }

    /// Tells everybody who listens to anything in a space that rights changed.
    pub(crate) fn change_rights(&self, space: SpaceNo, rights: ChangedRights) {
        let topics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let batch = Arc::new(LiveBatch::Changed(rights));
        for (_, sender) in topics.iter().filter(|(topic, _)| topic.space() == space) {
            let _ = sender.send(batch.clone());
        }
    }

    pub(super) fn send(&self, topic: Topic, batch: Arc<LiveBatch>) {
        let topics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = topics.get(&topic) {
            let _ = sender.send(batch);
        }
    }

    /// How many listen.
    pub(crate) fn listeners(&self) -> usize {
        let topics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        topics.values().map(broadcast::Sender::receiver_count).sum()
    }

    /// Forgets topics that nobody listens to. Says whether any is left.
    pub(super) fn is_heard(&self) -> bool {
        let mut topics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        topics.retain(|_, sender| sender.receiver_count() > 0);
        !topics.is_empty()
    }

    /// Which of the topics that an entry belongs to somebody listens to.
    pub(super) fn topics(&self, space: SpaceNo, thread: Option<Seq>) -> Vec<Topic> {
        let topics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = [Some(Topic::Space(space)), thread.map(|thread| Topic::Thread(space, thread))];
        all.into_iter().flatten().filter(|topic| topics.contains_key(topic)).collect()
    }

    /// The spaces in which somebody listens to something.
    pub(super) fn spaces(&self) -> HashSet<SpaceNo> {
        let topics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        topics.keys().map(|topic| topic.space()).collect()
    }

    /// Ends every stream.
    pub(crate) fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
