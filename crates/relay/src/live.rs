//! Live events: what is handed to all sessions.

use queries::nostr::ServedEvent;
use std::sync::Arc;
use tokio::sync::broadcast;

/// Batches that a session may be behind; after that it reads the journal itself.
const BEHIND_MAX: usize = 256;

/// Events that were applied, with the numbers of their journal entries.
pub(crate) type LiveBatch = Arc<Vec<(u64, ServedEvent)>>;

/// The events of all sessions.
pub(crate) struct LiveEvents(broadcast::Sender<LiveBatch>);

impl Default for LiveEvents {
    fn default() -> LiveEvents {
        LiveEvents(broadcast::channel(BEHIND_MAX).0)
    }
}

impl LiveEvents {
    /// Whether anybody is there to hear of events.
    pub(crate) fn has_listeners(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Hands events to everybody who is there.
    pub(crate) fn send(&self, batch: Vec<(u64, ServedEvent)>) {
        let _ = self.0.send(Arc::new(batch));
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<LiveBatch> {
        self.0.subscribe()
    }
}
