//! What the handlers of the API share beside the state of the server.

use crate::admin::upkeep::VerifyLock;
use crate::reference::Reference;
use axum::extract::FromRef;
use server::SharedState;
use std::sync::Arc;

/// The state of the server, and what only the API needs.
#[derive(Clone, Debug, FromRef)]
pub(crate) struct ApiState {
    pub(crate) server: SharedState,
    pub(crate) reference: Arc<Reference>,
    pub(crate) verifying: VerifyLock,
}
