//! Messages: list, create, get, edit, delete, versions, replies. [`in_thread`] has the same with their thread in the path.

pub(crate) mod in_thread;

use queries::names::parse_name;

use crate::schemas::{ChosenId, EventIdText};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use node::commands::{self, CommandResult, MessageRef, NewMessage, UserCommand};
use queries::QueryError;
use queries::messages::{MessageFormat, MessageRange, MessageReader, RenderedPage};
use queries::shapes::Message;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use server::context::RequestContext;
use server::extract::{Path, Query, RequestBody};
use server::input::json;
use server::problem::Problem;
use server::reader::with_message_reader;
use server::state::SharedState;
use std::sync::Arc;
use store::tables::TableReads;
use utoipa::{IntoParams, ToSchema};

/// A message to post. What only the node says of a message may be sent along, and changes nothing.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessageBody {
    /// An id of your own: unique in the space, 1 to 128 characters.
    #[schema(value_type = Option<ChosenId>)]
    id: Option<String>,
    /// The thread, where the path does not name it. One that does not exist is opened.
    #[schema(value_type = Option<ChosenId>)]
    thread: Option<String>,
    /// The user who writes, where a backend key names no user in a header.
    #[schema(value_type = Option<ChosenId>)]
    author: Option<String>,
    /// What it says: any JSON, at most 64 KiB.
    body: Value,
    /// The message it answers.
    reply_to: Option<String>,
    /// The users it mentions.
    #[schema(value_type = Option<Vec<ChosenId>>, max_items = 61)]
    mentions: Option<Vec<String>>,
    /// Ids of the files it carries.
    #[schema(value_type = Option<Vec<EventIdText>>)]
    attachments: Option<Vec<String>>,
    #[serde(rename = "ts", default)]
    #[schema(ignore)]
    _ts: IgnoredAny,
    #[serde(rename = "reactions", default)]
    #[schema(ignore)]
    _reactions: IgnoredAny,
    #[serde(rename = "replies", default)]
    #[schema(ignore)]
    _replies: IgnoredAny,
    #[serde(rename = "deleted", default)]
    #[schema(ignore)]
    _deleted: IgnoredAny,
    #[serde(rename = "version", default)]
    #[schema(ignore)]
    _version: IgnoredAny,
    #[serde(rename = "version_ts", default)]
    #[schema(ignore)]
    _version_ts: IgnoredAny,
    #[serde(rename = "state", default)]
    #[schema(ignore)]
    _state: IgnoredAny,
    #[serde(rename = "event", default)]
    #[schema(ignore)]
    _event: IgnoredAny,
}

/// A new version of a message. The other fields of a message may be sent along, and change nothing.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditBody {
    /// What it says now: any JSON, at most 64 KiB.
    body: Value,
    /// The user who edits, where a backend key names no user in a header.
    #[schema(value_type = Option<ChosenId>)]
    author: Option<String>,
    #[serde(rename = "id", default)]
    #[schema(ignore)]
    _id: IgnoredAny,
    #[serde(rename = "thread", default)]
    #[schema(ignore)]
    _thread: IgnoredAny,
    #[serde(rename = "reply_to", default)]
    #[schema(ignore)]
    _reply_to: IgnoredAny,
    #[serde(rename = "mentions", default)]
    #[schema(ignore)]
    _mentions: IgnoredAny,
    #[serde(rename = "attachments", default)]
    #[schema(ignore)]
    _attachments: IgnoredAny,
    #[serde(rename = "ts", default)]
    #[schema(ignore)]
    _ts: IgnoredAny,
    #[serde(rename = "reactions", default)]
    #[schema(ignore)]
    _reactions: IgnoredAny,
    #[serde(rename = "replies", default)]
    #[schema(ignore)]
    _replies: IgnoredAny,
    #[serde(rename = "deleted", default)]
    #[schema(ignore)]
    _deleted: IgnoredAny,
    #[serde(rename = "version", default)]
    #[schema(ignore)]
    _version: IgnoredAny,
    #[serde(rename = "version_ts", default)]
    #[schema(ignore)]
    _version_ts: IgnoredAny,
    #[serde(rename = "state", default)]
    #[schema(ignore)]
    _state: IgnoredAny,
    #[serde(rename = "event", default)]
    #[schema(ignore)]
    _event: IgnoredAny,
}

/// Whose messages to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ThreadOf {
    /// The thread.
    thread: String,
}

/// Which messages to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct MessageQuery {
    /// At most so many.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<usize>,
    /// Those before this message.
    before: Option<String>,
    /// Those after this message.
    after: Option<String>,
    /// Those on either side of this message, and itself.
    around: Option<String>,
    /// Also those that were deleted.
    include_deleted: Option<bool>,
}

impl MessageQuery {
    fn range(self) -> MessageRange {
        let MessageQuery { limit, before, after, around, include_deleted } = self;
        MessageRange { limit, before, after, around, include_deleted: include_deleted == Some(true) }
    }
}

/// Messages as JSON.
struct JsonFormat;

impl MessageFormat for JsonFormat {
    const NAME: &'static str = "json";

    fn render<V: TableReads>(&self, _: &MessageReader<'_, V>, message: &Message) -> Result<Arc<str>, QueryError> {
        let text = serde_json::to_string(message);
        Ok(text.map_err(|_| QueryError::Broken("a message could not be written as JSON"))?.into())
    }
}

/// A page whose messages are rendered already; clients see [`Messages`].
pub(crate) struct JsonPage(RenderedPage);

impl IntoResponse for JsonPage {
    fn into_response(self) -> Response {
        let RenderedPage { thread, messages, .. } = self.0;
        let length: usize = messages.iter().map(|message| message.text.len() + 1).sum();
        let mut text = String::with_capacity(length + thread.len() + 64);
        text.push_str("{\"thread\":");
        text.push_str(&Value::from(thread).to_string());
        text.push_str(",\"messages\":[");
        for (number, message) in messages.iter().enumerate() {
            if number > 0 {
                text.push(',');
            }
            text.push_str(&message.text);
        }
        text.push_str("]}");
        ([(CONTENT_TYPE, "application/json")], text).into_response()
    }
}

fn page_of_thread(
    state: &SharedState,
    context: &RequestContext,
    thread: &str,
    query: MessageQuery,
) -> Result<JsonPage, Problem> {
    with_message_reader(state, context, |reader| Ok(JsonPage(reader.page(thread, &query.range(), &JsonFormat)?)))
}

fn list_replies(
    state: &SharedState,
    context: &RequestContext,
    thread: Option<&str>,
    id: &str,
) -> Result<Json<Messages>, Problem> {
    with_message_reader(state, context, |reader| {
        let (thread, messages) = reader.replies(reader.find(thread, id)?)?;
        Ok(Json(Messages { thread, messages }))
    })
}

/// A page of messages, the newest last.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Messages {
    thread: String,
    messages: Vec<Message>,
}

/// All versions of a message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Versions {
    id: String,
    versions: Vec<Message>,
}

/// The message that a path names.
pub(crate) fn message_ref(thread: Option<&str>, id: &str) -> Result<MessageRef, Problem> {
    let thread = thread.map(|thread| parse_name(thread, "thread")).transpose()?;
    Ok(MessageRef { thread, message: parse_name(id, "message")? })
}

async fn post_message(
    state: &SharedState,
    context: RequestContext,
    thread: Option<String>,
    headers: &HeaderMap,
    bytes: &Bytes,
) -> Result<(StatusCode, Json<Message>), Problem> {
    let sent: MessageBody = json(headers, bytes)?;
    let context = context.acting_for(sent.author)?;
    let thread = match thread.or(sent.thread) {
        Some(thread) => Some(thread.parse().map_err(Problem::from)?),
        None => None,
    };
    let attachments = sent.attachments.unwrap_or_default();
    let attachments = attachments.iter().map(|id| id.parse());
    let new = NewMessage {
        thread,
        content: commands::message_content(sent.body, sent.id.as_deref())?,
        chosen: sent.id,
        reply_to: sent.reply_to.map(|id| parse_name(&id, "message to answer")).transpose()?,
        mentions: sent.mentions.unwrap_or_default(),
        attachments: attachments
            .collect::<Result<_, _>>()
            .map_err(|_| Problem::unprocessable("attachments are ids of files"))?,
    };
    let result = state.act(context.clone(), UserCommand::Post(new)).await?;
    let status = if result.is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(message_after(state, &context, &result)?)))
}

fn message_after(state: &SharedState, context: &RequestContext, result: &CommandResult) -> Result<Message, Problem> {
    with_message_reader(state, context, |reader| {
        // Whoever repeats a request may see less than they did then.
        let seq = if result.is_new { result.seq } else { reader.find(None, &result.shown.to_string())? };
        Ok(reader.renderer().message_at(seq)?)
    })
}

async fn edit_message(
    state: &SharedState,
    context: RequestContext,
    place: MessageRef,
    headers: &HeaderMap,
    bytes: &Bytes,
) -> Result<Json<Message>, Problem> {
    let sent: EditBody = json(headers, bytes)?;
    let context = context.acting_for(sent.author)?;
    let content = commands::message_content(sent.body, None)?;
    let result = state.act(context.clone(), UserCommand::Edit(place, content)).await?;
    Ok(Json(message_after(state, &context, &result)?))
}

async fn delete_message(
    state: &SharedState,
    context: RequestContext,
    place: MessageRef,
) -> Result<StatusCode, Problem> {
    state.act(context, UserCommand::DeleteMessage(place)).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn list_versions(
    state: &SharedState,
    context: &RequestContext,
    thread: Option<&str>,
    id: &str,
) -> Result<Json<Versions>, Problem> {
    with_message_reader(state, context, |reader| {
        let seq = reader.find(thread, id)?;
        let versions = reader.history(seq)?;
        Ok(Json(Versions { id: reader.renderer().name(seq)?, versions }))
    })
}

pub(crate) async fn list(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(ThreadOf { thread }): Query<ThreadOf>,
    Query(query): Query<MessageQuery>,
) -> Result<JsonPage, Problem> {
    page_of_thread(&state, &context, &thread, query)
}

pub(crate) async fn create(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<(StatusCode, Json<Message>), Problem> {
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
    edit_message(&state, context, message_ref(None, &id)?, &headers, &body).await
}

pub(crate) async fn delete(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    delete_message(&state, context, message_ref(None, &id)?).await
}

pub(crate) async fn versions(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(id): Path<String>,
) -> Result<Json<Versions>, Problem> {
    list_versions(&state, &context, None, &id)
}

pub(crate) async fn replies(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(id): Path<String>,
) -> Result<Json<Messages>, Problem> {
    list_replies(&state, &context, None, &id)
}
