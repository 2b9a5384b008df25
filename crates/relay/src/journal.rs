//! The journal is read once for everybody, and what it brings is handed to all sessions.

use crate::state::RelayState;
use queries::QueryError;
use queries::nostr::{ServedEvent, served_since};
use std::sync::Arc;
use tokio::sync::watch;

/// Follows the journal until nothing is committed any more. Whoever holds `end` keeps the sessions open.
pub(crate) async fn follow_journal(state: Arc<RelayState>, mut commits: watch::Receiver<u64>, end: watch::Sender<()>) {
    let mut published = *commits.borrow_and_update();
    while commits.changed().await.is_ok() {
        let latest = *commits.borrow_and_update();
        let batch = match read_journal(&state, published, latest) {
            Ok(batch) => batch,
            Err(why) => {
                tracing::error!(%why, "live Nostr events could not be read");
                continue;
            }
        };
        published = latest.max(published);
        if !batch.is_empty() {
            state.live.send(batch);
        }
    }
    drop(end);
}

/// What the journal brought after one number, up to another.
pub(crate) fn read_journal(state: &RelayState, from: u64, to: u64) -> Result<Vec<(u64, ServedEvent)>, QueryError> {
    let node = &state.server.node;
    if from >= to || !state.live.has_listeners() {
        return Ok(Vec::new());
    }
    let db = node.snapshot()?;
    served_since(&*db, from, to, node.now())
}
