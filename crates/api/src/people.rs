//! What users do about each other and themselves: mentions, blocking and muting, reports, leaving, taking their data along.

use crate::schemas::{ChosenId, PageQuery};
use axum::Json;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use model::Stamp;
use node::commands::UserCommand;
use queries::names::parse_name;
use queries::paging::{format_cursor, page_limit, parse_cursor};
use queries::shapes::Message;
use queries::visibility::blocked_or_muted;
use serde::{Deserialize, Serialize};
use server::context::RequestContext;
use server::extract::{Path, Query, RequestBody};
use server::input::json;
use server::problem::Problem;
use server::reader::with_message_reader;
use server::state::SharedState;
use store::shared::moderation::BlockKind;
use utoipa::ToSchema;

/// Messages on one page.
const PAGE_MAX: usize = 200;

/// A page of messages from anywhere in the space, the latest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Mentions {
    messages: Vec<Message>,
    /// Where to go on; absent at the end.
    next: Option<String>,
}

pub(crate) async fn mentions(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<PageQuery>,
) -> Result<Json<Mentions>, Problem> {
    let most = page_limit(query.limit, PAGE_MAX)?;
    let before = parse_cursor(query.cursor.as_deref())?.unwrap_or(Stamp::LAST);
    with_message_reader(&state, &context, |reader| {
        let (messages, next) = reader.mentions(before, most)?;
        Ok(Json(Mentions { messages, next: next.map(format_cursor) }))
    })
}

/// How to block or mute a user.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BlockWord {
    /// Their messages are not shown.
    Block,
    /// Their messages are shown, but never unread, and their mentions are left out.
    Mute,
}

/// How to block or mute a user.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "kind": "mute" }))]
pub(crate) struct BlockBody {
    kind: BlockWord,
}

/// A user who is blocked or muted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Blocked {
    user: String,
    kind: BlockWord,
}

/// The users whom the caller blocks or mutes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Blocks {
    blocks: Vec<Blocked>,
}

pub(crate) async fn blocks(State(state): State<SharedState>, context: RequestContext) -> Result<Json<Blocks>, Problem> {
    with_message_reader(&state, &context, |reader| {
        let renderer = reader.renderer();
        let mut blocks = Vec::new();
        for (identity, block) in blocked_or_muted(reader.db, reader.viewer)? {
            let kind = match block {
                BlockKind::Block => BlockWord::Block,
                BlockKind::Mute => BlockWord::Mute,
            };
            blocks.push(Blocked { user: renderer.author(&identity)?, kind });
        }
        Ok(Json(Blocks { blocks }))
    })
}

pub(crate) async fn block(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(user): Path<String>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<StatusCode, Problem> {
    let kind = match json::<BlockBody>(&headers, &body)?.kind {
        BlockWord::Block => BlockKind::Block,
        BlockWord::Mute => BlockKind::Mute,
    };
    state.set_block(context, user, Some(kind)).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn unblock(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(user): Path<String>,
) -> Result<StatusCode, Problem> {
    state.set_block(context, user, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A report to the moderators.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "message": "msg-1", "reason": "This is an advertisement." }))]
pub(crate) struct ReportBody {
    /// The message that it is about.
    message: String,
    /// Why.
    #[serde(default)]
    #[schema(max_length = 500)]
    reason: String,
    /// The user who reports, where a backend key names none in a header.
    #[schema(value_type = Option<ChosenId>)]
    author: Option<String>,
}

pub(crate) async fn report(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<StatusCode, Problem> {
    let sent: ReportBody = json(&headers, &body)?;
    if !server::input::fits(&sent.reason, 500) {
        return Err(Problem::over_limit("a reason has at most 500 characters"));
    }
    let context = state.acting_for(context, sent.author)?;
    state.act(context, UserCommand::Report(parse_name(&sent.message, "message")?, sent.reason)).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn leave(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(user): Path<String>,
) -> Result<StatusCode, Problem> {
    // Where the request may be repeated, the writer says whether they are still here: it knows whether they ask again.
    if context.idempotency.is_none() {
        context.read_as(&*state.node.snapshot()?, state.node.now())?;
    }
    if context.caller.user.as_deref() != Some(user.as_str()) {
        return Err(Problem::not_found("members leave by themselves; an admin removes others at /admin/users"));
    }
    state.act(context, UserCommand::Leave).await?;
    Ok(StatusCode::NO_CONTENT)
}
