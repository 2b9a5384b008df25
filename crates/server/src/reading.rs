//! Read markers: how far the caller has read a thread.

use crate::ask::json;
use crate::context::RequestContext;
use crate::extract::{Path, RequestBody};
use crate::problem::Problem;
use crate::shapes::ChosenId;
use crate::state::SharedState;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use node::acts::UserCommand;
use queries::names::parse_name;
use serde::Deserialize;
use utoipa::ToSchema;

/// How far was read.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadBody {
    /// The last message that was read.
    message: String,
    /// The user, where a backend key names none in a header.
    #[schema(value_type = Option<ChosenId>)]
    author: Option<String>,
}

/// Mark a thread as read up to a message
#[utoipa::path(put, path = "/v1/threads/{thread}/read", tag = "threads", params(("thread" = String, Path)),
    request_body = ReadBody, responses(
    (status = 204), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn mark(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(thread): Path<String>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<StatusCode, Problem> {
    let sent: ReadBody = json(&headers, &body)?;
    let context = context.acting_for(sent.author)?;
    let command = UserCommand::MarkRead(parse_name(&thread, "thread")?, parse_name(&sent.message, "message")?);
    state.act(context, command).await?;
    Ok(StatusCode::NO_CONTENT)
}
