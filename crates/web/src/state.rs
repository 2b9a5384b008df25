//! What the pages share beside the state of the server.

#[cfg(feature = "passkeys")]
use crate::challenges::Challenges;
use crate::passwords::PasswordSlots;
use crate::plots::Plots;
use axum::extract::FromRef;
use server::SharedState;
use std::sync::Arc;

/// The state of the server, and what only the pages need.
#[derive(Clone, Debug, FromRef)]
pub(crate) struct WebState {
    server: SharedState,
    /// What browsers were asked to prove.
    #[cfg(feature = "passkeys")]
    challenges: Arc<Challenges>,
    passwords: Arc<PasswordSlots>,
    plots: Arc<Plots>,
}

impl WebState {
    pub(crate) fn new(server: SharedState, plots: Arc<Plots>) -> WebState {
        WebState {
            server,
            #[cfg(feature = "passkeys")]
            challenges: Arc::default(),
            passwords: Arc::default(),
            plots,
        }
    }
}
