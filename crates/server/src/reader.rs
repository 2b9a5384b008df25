//! Reading for a request: a snapshot, and the viewer that the caller is in it.

use crate::auth::sessions;
use crate::context::RequestContext;
use crate::problem::Problem;
use crate::state::{ServerState, SharedState};
use node::commands::CallerKind;
use queries::QueryError;
use queries::live::Recheck;
use queries::messages::MessageReader;
#[cfg(feature = "search")]
use queries::search::{SearchFilter, SearchPage, SearchReader};
use queries::threads::ThreadReader;
use std::sync::Arc;
use store::tables::Snapshot;

/// Reads messages for a request.
pub fn with_message_reader<T>(
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
pub fn with_thread_reader<T>(
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
pub fn recheck(state: &SharedState, context: RequestContext) -> Recheck {
    let state = Arc::downgrade(&state.0);
    Box::new(move || {
        let state = state.upgrade().ok_or(QueryError::Stopping)?;
        let (db, now) = (state.node.snapshot()?, state.node.now());
        if let CallerKind::Key(_) = context.caller.kind
            && !state.api_key(&db, &context.account)?.is_some_and(|key| key.is_accepted(now))
        {
            return Err(QueryError::CredentialEnded("the key is not accepted any more"));
        }
        if let Some(session) = &context.session
            && sessions::session(&state, &session.id)?.is_none()
        {
            return Err(QueryError::CredentialEnded("the session has ended"));
        }
        let viewer = context.read_as(&db, now)?;
        Ok((db, viewer))
    })
}

/// Searches messages for a request, on a thread of its own: the index reads and decrypts files, which would hold up others.
#[cfg(feature = "search")]
pub async fn search_messages(
    state: SharedState,
    context: RequestContext,
    filter: SearchFilter,
) -> Result<SearchPage, Problem> {
    let searched = tokio::task::spawn_blocking(move || {
        let db = state.node.snapshot()?;
        let viewer = context.read_as(&db, state.node.now())?;
        let index = state.search.get().ok_or_else(|| Problem::not_found("this node does not search"))?;
        Ok(SearchReader { index, db: &db, viewer: &viewer }.page(&filter)?)
    });
    searched.await.map_err(|_| Problem::broken("the search ended early"))?
}
