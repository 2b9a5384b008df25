//! Typing and presence: published to subscribers, never stored.

use axum::extract::State;
use http::{HeaderMap, StatusCode};
use queries::live::LiveEvent;
use queries::renderer::Renderer;
use queries::visibility::{Audience, find_thread, private_to};
use serde::Deserialize;
use server::context::RequestContext;
use server::extract::{Path, RequestBody};
use server::input::{LABEL_CHARS_MAX, fits, json};
use server::problem::Problem;
use server::state::SharedState;
use utoipa::ToSchema;

/// The presence of a user.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "status": "away" }))]
pub(crate) struct PresenceBody {
    /// `online`, `away`, or what the application likes.
    #[schema(max_length = 200)]
    status: String,
}

pub(crate) async fn typing(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(thread): Path<String>,
) -> Result<StatusCode, Problem> {
    let db = state.node.snapshot()?;
    let viewer = context.read_as(&db, state.node.now())?;
    let (_, seq) = find_thread(&db, &viewer, &thread)?;
    let Some(user) = &viewer.user else { return Err(Problem::forbidden("only users who have written are typing")) };
    let name = Renderer { db: &db, viewer: &viewer }.name(seq)?;
    let data = serde_json::json!({ "thread": name, "user": user.id }).to_string();
    let only = private_to(&db, Some(seq))?;
    let audience = Audience { only, by: user.identity, shows: None, mentions: Vec::new() };
    state.hub.publish(viewer.no, LiveEvent::new(None, "typing", data, Some(seq), audience));
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn presence(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<StatusCode, Problem> {
    let db = state.node.snapshot()?;
    let viewer = context.read_as(&db, state.node.now())?;
    let PresenceBody { status } = json(&headers, &body)?;
    if !fits(&status, LABEL_CHARS_MAX) {
        return Err(Problem::over_limit("a status has at most 200 characters"));
    }
    let Some(user) = &viewer.user else { return Err(Problem::forbidden("only users who have written are present")) };
    let data = serde_json::json!({ "user": user.id, "status": status }).to_string();
    let audience = Audience { only: None, by: user.identity, shows: None, mentions: Vec::new() };
    state.hub.publish(viewer.no, LiveEvent::new(None, "presence", data, None, audience));
    Ok(StatusCode::NO_CONTENT)
}
