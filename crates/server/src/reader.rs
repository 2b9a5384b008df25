//! Reading for a request: a snapshot, and the viewer that the caller is in it.

use crate::context::RequestContext;
use crate::door::sessions;
use crate::problem::Problem;
use crate::state::{ServerState, SharedState};
use node::acts::CallerKind;
use queries::QueryError;
use queries::live::Recheck;
use queries::messages::MessageReader;
use queries::threads::ThreadReader;
use std::sync::Arc;
use store::tables::Snapshot;

/// Reads messages for a request.
pub(crate) fn with_message_reader<T>(
    state: &ServerState,
    context: &RequestContext,
    read: impl FnOnce(&MessageReader<'_, Snapshot>) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let generation = state.rendered.generation();
    let db = state.node.snapshot()?;
    let viewer = context.read_as(&db, state.node.now())?;
    read(&MessageReader { db: &db, viewer: &viewer, cache: &state.rendered, generation })
}

/// Reads threads for a request.
pub(crate) fn with_thread_reader<T>(
    state: &ServerState,
    context: &RequestContext,
    read: impl FnOnce(&ThreadReader<'_, Snapshot>) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let db = state.node.snapshot()?;
    let viewer = context.read_as(&db, state.node.now())?;
    read(&ThreadReader { db: &db, viewer: &viewer })
}

/// Checks again, for a stream that stays open, whether its reader may still read: the key or session it was opened with,
/// the user, the membership.
pub(crate) fn recheck(state: &SharedState, context: RequestContext) -> Recheck {
    let state = Arc::downgrade(&state.0);
    Box::new(move || {
        let state = state.upgrade().ok_or(QueryError::Stopping)?;
        let (db, now) = (state.node.snapshot()?, state.node.now());
        if let CallerKind::Key(_) = context.caller.kind
            && !state.api_key(&db, &context.account)?.is_some_and(|key| key.is_accepted(now))
        {
            return Err(QueryError::CredentialEnded("the key is not accepted any more"));
        }
        if let Some(signed) = &context.signed
            && sessions::session(&state, &signed.id)?.is_none()
        {
            return Err(QueryError::CredentialEnded("the session has ended"));
        }
        let viewer = context.read_as(&db, now)?;
        Ok((db, viewer))
    })
}
