//! Follows the journal, and publishes what it says to those who subscribe.

use engine::reads::StoreResult;
use model::Nanos;
use node::Node;
use queries::QueryError;
use queries::live::{LiveHub, end_streams_of_ended_keys, publish_journal};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How often it is looked whether a key has ended by itself.
const LOOK_AT_KEYS: Duration = Duration::from_secs(15);

/// What wakes the loop.
enum Wake {
    Committed,
    LookAtKeys,
    Stopped,
}

/// Publishes journal entries from one position on: nobody subscribed to what came before.
#[derive(Debug)]
pub struct LiveFeed {
    node: Node,
    hub: Arc<LiveHub>,
    published_up_to: u64,
    looked_at: Nanos,
}

impl LiveFeed {
    /// From the latest journal entry on.
    pub fn new(node: Node, hub: Arc<LiveHub>) -> StoreResult<LiveFeed> {
        let (published_up_to, looked_at) = (node.snapshot()?.position()?.number, node.now());
        Ok(LiveFeed { node, hub, published_up_to, looked_at })
    }

    /// Follows the journal until nothing is committed any more.
    pub(crate) async fn run(mut self, mut position: watch::Receiver<u64>) {
        let mut look = tokio::time::interval(LOOK_AT_KEYS);
        loop {
            let wake = tokio::select! {
                changed = position.changed() => if changed.is_ok() { Wake::Committed } else { Wake::Stopped },
                _ = look.tick() => Wake::LookAtKeys,
            };
            let done = match wake {
                Wake::Stopped => return,
                Wake::LookAtKeys => self.end_streams_of_ended_keys(),
                Wake::Committed => {
                    let number = *position.borrow_and_update();
                    self.publish_up_to(number)
                }
            };
            if let Err(why) = done {
                tracing::error!(%why, "live events could not be published");
            }
        }
    }

    fn publish_up_to(&mut self, to: u64) -> Result<(), QueryError> {
        let from = self.published_up_to;
        self.published_up_to = to.max(from);
        if !self.hub.has_subscribers() {
            return Ok(());
        }
        publish_journal(&*self.node.snapshot()?, &self.hub, from, to)
    }

    /// Has the streams checked again whose key ended by itself since the last look.
    pub fn end_streams_of_ended_keys(&mut self) -> Result<(), QueryError> {
        let (db, now) = (self.node.snapshot()?, self.node.now());
        let before = std::mem::replace(&mut self.looked_at, now);
        end_streams_of_ended_keys(&db, &self.hub, before, now)
    }
}
