//! Typing and presence: told to those who listen, never stored.

use crate::ask::json;
use crate::context::RequestContext;
use crate::extract::{Path, RequestBody};
use crate::problem::Problem;
use crate::shapes::{LABEL_CHARS_MAX, fits};
use crate::state::SharedState;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use queries::live::LiveEvent;
use queries::renderer::Renderer;
use queries::visibility::{Audience, find_thread, private_to};
use serde::Deserialize;
use utoipa::ToSchema;

/// How somebody is there.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PresenceBody {
    /// `online`, `away`, or what the application likes.
    #[schema(max_length = 200)]
    status: String,
}

/// Tell those who listen to a thread that the caller is typing
#[utoipa::path(post, path = "/v1/threads/{thread}/typing", tag = "live", params(("thread" = String, Path)), responses(
    (status = 204), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
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

/// Tell those who listen to the space how the caller is there
#[utoipa::path(put, path = "/v1/presence", tag = "live", request_body = PresenceBody, responses(
    (status = 204), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
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
        return Err(Problem::unprocessable("a status has at most 200 characters"));
    }
    let Some(user) = &viewer.user else { return Err(Problem::forbidden("only users who have written are present")) };
    let data = serde_json::json!({ "user": user.id, "status": status }).to_string();
    let audience = Audience { only: None, by: user.identity, shows: None, mentions: Vec::new() };
    state.hub.publish(viewer.no, LiveEvent::new(None, "presence", data, None, audience));
    Ok(StatusCode::NO_CONTENT)
}
