//! The interface of ProgressDB 0.2 (`/frontend/v1`, `/backend/v1`), for its published clients: threads and messages by
//! `key`, lists as `data` with `pagination`. What it is made of is the same as everywhere else; docs/API.md has the table
//! of what differs from ProgressDB itself.

use crate::messages::{EditBody, MessageBody, delete_message, edit_message, post};
use crate::threads::{self, ThreadBody};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode};
use queries::QueryError;
use queries::messages::{MessageFormat, MessageRange, MessageReader, RenderedPage};
use queries::shapes::{Message, Thread};
use queries::threads::{ThreadFilter, ThreadOrder, ThreadReader};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use server::context::RequestContext;
use server::extract::{Path, Query, RequestBody};
use server::input::json;
use server::problem::Problem;
use server::reader::{with_message_reader, with_thread_reader};
use server::state::SharedState;
use std::sync::Arc;
use store::tables::TableReads;
use utoipa::{IntoParams, ToSchema};

/// Threads that are looked through for the ones before or around another.
const LOOKED_AT_MAX: usize = 2000;
/// Threads that are read at a time for that.
const CHUNK: usize = 200;
/// How many to list where nothing is said, and at most: what ProgressDB takes.
const LIMIT: usize = 50;
const LIMIT_MAX: usize = 100;

/// A thread, whose key is its id.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyedThread {
    key: String,
    #[serde(flatten)]
    thread: Thread,
}

impl KeyedThread {
    fn new(thread: Thread) -> KeyedThread {
        KeyedThread { key: thread.id.clone(), thread }
    }
}

/// A message, whose key is its id.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyedMessage {
    key: String,
    #[serde(flatten)]
    message: Message,
}

impl KeyedMessage {
    fn new(message: Message) -> KeyedMessage {
        KeyedMessage { key: message.id.clone(), message }
    }
}

/// That it was deleted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Deleted {
    deleted: bool,
}

/// Where a list goes on.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Pagination {
    /// Whether there is more in the direction of the list.
    has_more: bool,
    /// The key to go on from: as `after` for older threads, as `before` for older messages, or as what was sent.
    next_cursor: Option<String>,
    /// The key to go the other way from.
    prev_cursor: Option<String>,
    /// How many there are in this answer.
    count: usize,
}

/// A page of threads, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ThreadData {
    data: Vec<KeyedThread>,
    pagination: Pagination,
}

/// A page of messages, the newest last.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageData {
    #[schema(value_type = Vec<KeyedMessage>)]
    data: Vec<Box<RawValue>>,
    pagination: Pagination,
}

/// Which part of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PartQuery {
    /// At most so many.
    #[param(minimum = 1, maximum = 100, default = 50)]
    limit: Option<usize>,
    /// Newer threads, or older messages, than the one with this key.
    before: Option<String>,
    /// Older threads, or newer messages, than the one with this key.
    after: Option<String>,
    /// Those on either side of the one with this key, and itself.
    anchor: Option<String>,
    /// By which time threads are sorted: `created_ts` or `updated_ts`. Messages are in the order of their creation.
    sort_by: Option<SortField>,
    /// Only threads of this user.
    author: Option<String>,
    /// Only threads whose title contains this.
    title: Option<String>,
    /// Only threads with this slug.
    slug: Option<String>,
}

/// By which time threads are sorted.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SortField {
    /// When they were opened.
    CreatedTs,
    /// When something last happened.
    UpdatedTs,
}

impl PartQuery {
    /// A key that was left empty is none.
    fn without_empty(mut self) -> PartQuery {
        for key in
            [&mut self.before, &mut self.after, &mut self.anchor, &mut self.author, &mut self.title, &mut self.slug]
        {
            key.take_if(|key| key.is_empty());
        }
        self
    }

    fn limit(&self) -> Result<usize, Problem> {
        match self.limit.unwrap_or(LIMIT) {
            limit @ 1..=LIMIT_MAX => Ok(limit),
            _ => Err(Problem::bad_request(format!("limit is 1 to {LIMIT_MAX}"))),
        }
    }

    fn filter(&self) -> ThreadFilter {
        let order = match self.sort_by {
            None | Some(SortField::UpdatedTs) => ThreadOrder::Updated,
            Some(SortField::CreatedTs) => ThreadOrder::Created,
        };
        let PartQuery { author, title, slug, .. } = self;
        let (author, title, slug) = (author.clone(), title.clone(), slug.clone());
        ThreadFilter { author, title, slug, order, ..ThreadFilter::default() }
    }
}

/// The threads of a list before the one with this key, the one itself, and whether the list goes on.
fn up_to_key<V: TableReads>(
    reader: &ThreadReader<'_, V>,
    mut filter: ThreadFilter,
    key: &str,
) -> Result<(Vec<Thread>, Thread), Problem> {
    let mut before: Vec<Thread> = Vec::new();
    filter.limit = Some(CHUNK);
    // What is not there at all is not looked for.
    let wanted = reader.thread(key)?.event;
    for _ in 0..LOOKED_AT_MAX / CHUNK {
        let page = reader.page(&filter)?;
        for thread in page.threads {
            if thread.event == wanted {
                return Ok((before, thread));
            }
            before.push(thread);
        }
        let Some(next) = page.next else { break };
        filter.cursor = Some(next);
    }
    Err(Problem::not_found(format!("there is no such thread among the first {LOOKED_AT_MAX} of this list")))
}

pub(crate) async fn list_threads(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<PartQuery>,
) -> Result<Json<ThreadData>, Problem> {
    let query = query.without_empty();
    let (limit, mut filter) = (query.limit()?, query.filter());
    with_thread_reader(&state, &context, |reader| {
        let (mut found, is_first) = match (&query.before, &query.after, &query.anchor) {
            (None, None, None) => (Vec::new(), true),
            (None, Some(key), None) => {
                let thread = reader.thread(key)?;
                filter.cursor = Some(filter.cursor_at(&thread));
                (Vec::new(), false)
            }
            (Some(key), None, None) => {
                let (mut before, thread) = up_to_key(reader, filter.clone(), key)?;
                let cut = before.len().saturating_sub(limit);
                before.drain(..cut);
                return Ok(Json(thread_data(before, true, cut == 0, Some(thread))));
            }
            (None, None, Some(key)) => {
                let (mut before, thread) = up_to_key(reader, filter.clone(), key)?;
                let cut = before.len().saturating_sub(limit / 2);
                before.drain(..cut);
                filter.cursor = Some(filter.cursor_at(&thread));
                before.push(thread);
                (before, cut == 0)
            }
            _ => return Err(Problem::bad_request("before, after and anchor exclude each other")),
        };
        let room = limit.saturating_sub(found.len());
        let mut has_more = true;
        if room > 0 {
            filter.limit = Some(room);
            let page = reader.page(&filter)?;
            found.extend(page.threads);
            has_more = page.next.is_some();
        }
        Ok(Json(thread_data(found, has_more, is_first, None)))
    })
}

fn thread_data(found: Vec<Thread>, has_more: bool, is_first: bool, before: Option<Thread>) -> ThreadData {
    let key = |thread: Option<&Thread>| thread.or(before.as_ref()).map(|thread| thread.id.clone());
    let next_cursor = key(found.last()).filter(|_| has_more);
    let prev_cursor = key(found.first()).filter(|_| !is_first);
    let pagination = Pagination { has_more, next_cursor, prev_cursor, count: found.len() };
    ThreadData { data: found.into_iter().map(KeyedThread::new).collect(), pagination }
}

pub(crate) async fn create_thread(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<(StatusCode, Json<KeyedThread>), Problem> {
    let (is_new, thread) = threads::open(&state, context, json::<ThreadBody>(&headers, &body)?).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(KeyedThread::new(thread))))
}

pub(crate) async fn get_thread(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(key): Path<String>,
) -> Result<Json<KeyedThread>, Problem> {
    with_thread_reader(&state, &context, |reader| Ok(Json(KeyedThread::new(reader.thread(&key)?))))
}

pub(crate) async fn update_thread(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(key): Path<String>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Json<KeyedThread>, Problem> {
    let body = json::<ThreadBody>(&headers, &body)?;
    Ok(Json(KeyedThread::new(threads::change(&state, context, &key, &headers, body).await?)))
}

pub(crate) async fn delete_thread(
    state: State<SharedState>,
    context: RequestContext,
    key: Path<String>,
    headers: HeaderMap,
) -> Result<Json<Deleted>, Problem> {
    threads::delete(state, context, key, headers).await?;
    Ok(Json(Deleted { deleted: true }))
}

/// Messages as JSON with their key.
struct KeyedFormat;

impl MessageFormat for KeyedFormat {
    const NAME: &'static str = "progressdb";

    fn render<V: TableReads>(&self, _: &MessageReader<'_, V>, message: &Message) -> Result<Arc<str>, QueryError> {
        let broken = |_| QueryError::Broken("a message could not be written as JSON");
        let mut value = serde_json::to_value(message).map_err(broken)?;
        value["key"] = message.id.as_str().into();
        Ok(value.to_string().into())
    }
}

pub(crate) async fn list_messages(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(key): Path<String>,
    Query(query): Query<PartQuery>,
) -> Result<Json<MessageData>, Problem> {
    let query = query.without_empty();
    let limit = Some(query.limit()?);
    let is_forward = query.after.is_some() || query.anchor.is_some();
    let PartQuery { before, after, anchor, .. } = query;
    let range = MessageRange { limit, before, after, around: anchor, ..MessageRange::default() };
    with_message_reader(&state, &context, |reader| {
        let RenderedPage { messages, next, previous, .. } = reader.page(&key, &range, &KeyedFormat)?;
        // Events are known by their ids, whatever id their author chose.
        let (first, last) = (messages.first(), messages.last());
        let (next_edge, previous_edge) = if is_forward { (last, first) } else { (first, last) };
        let pagination = Pagination {
            has_more: next.is_some(),
            next_cursor: next.and(next_edge).map(|edge| edge.stamp.id.to_string()),
            prev_cursor: previous.and(previous_edge).map(|edge| edge.stamp.id.to_string()),
            count: messages.len(),
        };
        let data = messages.iter().map(|message| RawValue::from_string(message.text.to_string()));
        let data = data.collect::<Result<_, _>>().map_err(|_| Problem::broken("a message is not JSON"))?;
        Ok(Json(MessageData { data, pagination }))
    })
}

pub(crate) async fn create_message(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(key): Path<String>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Response, Problem> {
    let (result, message) = post(&state, context, Some(key), json::<MessageBody>(&headers, &body)?).await?;
    let status = if result.is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(KeyedMessage::new(message))).into_response())
}

pub(crate) async fn get_message(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((thread, key)): Path<(String, String)>,
) -> Result<Json<KeyedMessage>, Problem> {
    with_message_reader(&state, &context, |reader| Ok(Json(KeyedMessage::new(reader.message(Some(&thread), &key)?))))
}

pub(crate) async fn update_message(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((thread, key)): Path<(String, String)>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Json<KeyedMessage>, Problem> {
    let sent = json::<EditBody>(&headers, &body)?;
    Ok(Json(KeyedMessage::new(edit_message(&state, context, (Some(&thread), &key), &headers, sent).await?)))
}

pub(crate) async fn remove_message(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((thread, key)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Json<Deleted>, Problem> {
    delete_message(&state, context, (Some(&thread), &key), &headers).await?;
    Ok(Json(Deleted { deleted: true }))
}
