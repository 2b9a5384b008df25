//! Messages: list, create, get, edit, delete, versions, replies. [`in_thread`] has the same with their thread in the path,
//! [`bulk`] posts many at once.

pub(crate) mod bulk;
pub(crate) mod in_thread;
mod input;
mod page;

pub(crate) use input::{EditBody, MessageBody, MessageQuery, ThreadOf};
pub(crate) use page::{JsonPage, Messages, Replies, VersionQuery, Versions};

use crate::schemas::PageQuery;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use node::commands::{self, BadName, CommandResult, MessageRef, NewMessage, UserCommand};
use page::{latest, list_replies, list_versions, page_of_thread};
use queries::names::parse_name;
use queries::shapes::Message;
use server::conditional::ExpectedTag;
use server::context::RequestContext;
use server::extract::{Path, Query, RequestBody};
use server::input::{ROLE_CHARS_MAX, fits, json};
use server::problem::Problem;
use server::reader::with_message_reader;
use server::state::{ServerState, SharedState};

/// The message that a path names.
pub(crate) fn message_ref(thread: Option<&str>, id: &str) -> Result<MessageRef, Problem> {
    let thread = thread.map(|thread| parse_name(thread, "thread")).transpose()?;
    Ok(MessageRef { thread, message: parse_name(id, "message")? })
}

/// What the writer is to post, of what a client sent.
fn new_message(sent: MessageBody, thread: Option<String>) -> Result<NewMessage, Problem> {
    if sent.role.as_ref().is_some_and(|role| role.is_empty() || !fits(role, ROLE_CHARS_MAX)) {
        return Err(Problem::over_limit(format!("a role has 1 to {ROLE_CHARS_MAX} characters")));
    }
    let named = sent.thread.map(|thread| thread.parse()).transpose()?;
    let thread = thread.map(|thread| thread.parse()).transpose()?.or(named);
    let attachments = sent.attachments.unwrap_or_default();
    let attachments = attachments.iter().map(|id| id.parse());
    Ok(NewMessage {
        thread,
        content: commands::message_content_as(sent.role.as_deref(), sent.body, sent.id.as_deref())?,
        chosen: sent.id,
        reply_to: sent.reply_to.map(|id| parse_name(&id, "message to answer")).transpose()?,
        mentions: sent.mentions.unwrap_or_default(),
        attachments: attachments
            .collect::<Result<_, _>>()
            .map_err(|_: BadName| Problem::unprocessable("attachments are ids of files"))?,
    })
}

/// Posts a message, and shows what was posted.
pub(crate) async fn post(
    state: &ServerState,
    context: RequestContext,
    thread: Option<String>,
    mut sent: MessageBody,
) -> Result<(CommandResult, Message), Problem> {
    let context = state.acting_for(context, sent.author.take())?;
    let result = state.act(context.clone(), UserCommand::Post(new_message(sent, thread)?)).await?;
    Ok((result, message_after(state, &context, &result)?))
}

async fn post_message(
    state: &SharedState,
    context: RequestContext,
    thread: Option<String>,
    headers: &HeaderMap,
    bytes: &Bytes,
) -> Result<Response, Problem> {
    let (result, message) = post(state, context, thread, json(headers, bytes)?).await?;
    let place = [(LOCATION, format!("/v1/messages/{}", result.shown))];
    Ok(match result.is_new {
        true => (StatusCode::CREATED, place, Json(message)).into_response(),
        false => Json(message).into_response(),
    })
}

fn message_after(state: &ServerState, context: &RequestContext, result: &CommandResult) -> Result<Message, Problem> {
    with_message_reader(state, context, |reader| {
        // Whoever repeats a request may see less than they did then.
        let seq = if result.is_new { result.seq } else { reader.find(None, &result.shown.to_string())? };
        Ok(reader.renderer().message_at(seq)?)
    })
}

/// The same request, done only if the message is as the caller saw it, where they say so.
fn expecting(
    state: &ServerState,
    context: RequestContext,
    headers: &HeaderMap,
    (thread, id): (Option<&str>, &str),
) -> Result<RequestContext, Problem> {
    let Some(expected) = ExpectedTag::read(state, &context, headers)? else { return Ok(context) };
    let (version, message) = with_message_reader(state, &context, |reader| {
        let seq = reader.find(thread, id)?;
        Ok((reader.version(seq)?, reader.renderer().message_at(seq)?))
    })?;
    expected.check(context, &message, version)
}

pub(crate) async fn edit_message(
    state: &SharedState,
    context: RequestContext,
    (thread, id): (Option<&str>, &str),
    headers: &HeaderMap,
    sent: EditBody,
) -> Result<Message, Problem> {
    let context = expecting(state, state.acting_for(context, sent.author)?, headers, (thread, id))?;
    let content = commands::message_content(sent.body, None)?;
    let result = state.act(context.clone(), UserCommand::Edit(message_ref(thread, id)?, content)).await?;
    message_after(state, &context, &result)
}

pub(crate) async fn delete_message(
    state: &SharedState,
    context: RequestContext,
    (thread, id): (Option<&str>, &str),
    headers: &HeaderMap,
) -> Result<StatusCode, Problem> {
    let context = expecting(state, context, headers, (thread, id))?;
    state.act(context, UserCommand::DeleteMessage(message_ref(thread, id)?)).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn list(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(ThreadOf { thread }): Query<ThreadOf>,
    Query(query): Query<MessageQuery>,
) -> Result<JsonPage, Problem> {
    match thread {
        Some(thread) => page_of_thread(&state, &context, &thread, query),
        None => latest(&state, &context, query),
    }
}

pub(crate) async fn create(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Response, Problem> {
    post_message(&state, context, None, &headers, &body).await
}

pub(crate) async fn get(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(id): Path<String>,
) -> Result<Json<Message>, Problem> {
    with_message_reader(&state, &context, |reader| Ok(Json(reader.message(None, &id)?)))
}

pub(crate) async fn edit(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(id): Path<String>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Json<Message>, Problem> {
    edit_message(&state, context, (None, &id), &headers, json(&headers, &body)?).await.map(Json)
}

pub(crate) async fn delete(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    delete_message(&state, context, (None, &id), &headers).await
}

pub(crate) async fn versions(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(id): Path<String>,
    Query(query): Query<VersionQuery>,
) -> Result<Json<Versions>, Problem> {
    list_versions(&state, &context, None, &id, &query)
}

pub(crate) async fn replies(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(id): Path<String>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Replies>, Problem> {
    list_replies(&state, &context, None, &id, &query)
}
