//! Follows the journal, and publishes what it says to those who subscribe.

use crate::problem::Problem;
use crate::state::ServerState;
use model::Nanos;
use queries::live::{end_streams_of_ended_keys, publish_journal};
use std::sync::Weak;
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

/// Where the feed begins: nobody subscribed to what came before.
#[derive(Debug)]
pub(crate) struct FeedStart {
    published_up_to: u64,
    looked_at: Nanos,
}

impl FeedStart {
    /// At the latest journal entry.
    pub(crate) fn now(state: &ServerState) -> FeedStart {
        let published_up_to = state.node.snapshot().ok().and_then(|db| db.position().ok()).map_or(0, |at| at.number);
        FeedStart { published_up_to, looked_at: state.node.now() }
    }
}

/// Follows the journal until the server is dropped.
pub(crate) async fn run(state: Weak<ServerState>, mut position: watch::Receiver<u64>, start: FeedStart) {
    let FeedStart { mut published_up_to, mut looked_at } = start;
    let mut look = tokio::time::interval(LOOK_AT_KEYS);
    loop {
        let wake = tokio::select! {
            changed = position.changed() => if changed.is_ok() { Wake::Committed } else { Wake::Stopped },
            _ = look.tick() => Wake::LookAtKeys,
        };
        let Some(state) = state.upgrade() else { return };
        let done = match wake {
            Wake::Stopped => return,
            Wake::LookAtKeys => look_at_keys(&state, &mut looked_at),
            Wake::Committed => {
                let (from, to) = (published_up_to, *position.borrow_and_update());
                published_up_to = to.max(from);
                if state.hub.has_subscribers() { publish(&state, from, to) } else { Ok(()) }
            }
        };
        if let Err(problem) = done {
            tracing::error!(?problem, "live events could not be published");
        }
    }
}

fn publish(state: &ServerState, from: u64, to: u64) -> Result<(), Problem> {
    Ok(publish_journal(&*state.node.snapshot()?, &state.hub, from, to)?)
}

/// Keys that ended since the last look end their streams.
pub(crate) fn look_at_keys(state: &ServerState, looked_at: &mut Nanos) -> Result<(), Problem> {
    let (db, now) = (state.node.snapshot()?, state.node.now());
    let before = std::mem::replace(looked_at, now);
    Ok(end_streams_of_ended_keys(&db, &state.hub, before, now)?)
}
