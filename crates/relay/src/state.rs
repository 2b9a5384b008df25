//! What all sessions share.

use crate::live::LiveEvents;
use node::git::GitAccess;
use server::ServerState;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};

/// WebSockets at the same time.
const SOCKETS_MAX: usize = 4096;

/// What all sessions share.
pub(crate) struct RelayState {
    pub(crate) server: Arc<ServerState>,
    pub(crate) access: Arc<GitAccess>,
    pub(crate) live: LiveEvents,
    pub(crate) sockets: Arc<Semaphore>,
    /// Changes when all sessions have to end.
    pub(crate) ending: watch::Receiver<()>,
}

impl RelayState {
    /// Whether contributors may push commits of pull requests.
    pub(crate) fn takes_contributions(&self) -> bool {
        self.server.node.store().policy().takes_contributions
    }

    /// The state, and what ends all sessions when it is dropped.
    pub(crate) fn new(server: Arc<ServerState>, access: Arc<GitAccess>) -> (Arc<RelayState>, watch::Sender<()>) {
        let (end, ending) = watch::channel(());
        let sockets = Arc::new(Semaphore::new(SOCKETS_MAX));
        (Arc::new(RelayState { server, access, live: LiveEvents::default(), sockets, ending }), end)
    }
}
