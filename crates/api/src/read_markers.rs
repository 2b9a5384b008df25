//! Read markers: how far the caller has read a thread.

use crate::schemas::ChosenId;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use node::commands::UserCommand;
use queries::names::parse_name;
use serde::Deserialize;
use server::context::RequestContext;
use server::extract::{Path, RequestBody};
use server::input::json;
use server::problem::Problem;
use server::state::SharedState;
use utoipa::ToSchema;

/// How far was read.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "message": "msg-1" }))]
pub(crate) struct ReadBody {
    /// The last message that was read.
    message: String,
    /// The user, where a backend key names none in a header.
    #[schema(value_type = Option<ChosenId>)]
    author: Option<String>,
}

pub(crate) async fn mark(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(thread): Path<String>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<StatusCode, Problem> {
    let sent: ReadBody = json(&headers, &body)?;
    let context = state.acting_for(context, sent.author)?;
    let command = UserCommand::MarkRead(parse_name(&thread, "thread")?, parse_name(&sent.message, "message")?);
    state.act(context, command).await?;
    Ok(StatusCode::NO_CONTENT)
}
