//! Threads: list, create, get, update, delete.

use crate::schemas::{ChosenId, NameOrIdText, body_to_send_back};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use engine::rows::ThreadField;
use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use node::commands::{CommandResult, NewThread, ThreadChange, UserCommand};
use queries::names::parse_name;
use queries::shapes::Thread;
use queries::threads::{ThreadFilter, ThreadOrder, ThreadPage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use server::conditional::ExpectedTag;
use server::context::RequestContext;
use server::extract::{Path, Query, RequestBody};
use server::input::{check_participants, check_title, json};
use server::problem::Problem;
use server::reader::with_thread_reader;
use server::state::{ServerState, SharedState};
use utoipa::{IntoParams, ToSchema};

body_to_send_back! { thread []
    /// What a thread can be opened or changed with. Fields that are absent are left alone; what only the node says of a
    /// thread may be sent back with it, and changes nothing.
    #[derive(Debug, Default, Deserialize, ToSchema)]
    #[serde(deny_unknown_fields)]
    #[schema(example = json!({ "id": "tea", "title": "Tea", "metadata": { "topic": "drinks" }, "participants": ["alice", "bob"] }))]
    pub(crate) struct ThreadBody {
        /// An id of your own: unique in the space, 1 to 128 characters.
        #[schema(value_type = Option<ChosenId>)]
        id: Option<String>,
        /// Its title.
        #[schema(max_length = 256)]
        title: Option<String>,
        /// The same as `title`.
        #[schema(max_length = 256)]
        name: Option<String>,
        /// Its name in addresses; made from the title if absent.
        #[schema(max_length = 256)]
        slug: Option<String>,
        /// What the application keeps with it: any JSON.
        #[schema(value_type = Value, required = false)]
        metadata: Option<Value>,
        /// The users who take part.
        #[schema(value_type = Option<Vec<ChosenId>>, max_items = 500)]
        participants: Option<Vec<String>>,
        /// Ids of messages to pin.
        #[schema(value_type = Option<Vec<NameOrIdText>>, max_items = 100)]
        pins: Option<Vec<String>>,
        /// Whether only participants see it.
        private: Option<bool>,
        /// Whether it is a direct conversation: only these participants ever see it. Said when it is opened, never changed.
        direct: Option<bool>,
        /// The user who opens it, where a backend key names no user in a header.
        #[schema(value_type = Option<ChosenId>)]
        author: Option<String>,
    }
}

/// Which threads to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ThreadQuery {
    /// Only threads of this user.
    author: Option<String>,
    /// Only threads whose title contains this, whatever the case.
    title: Option<String>,
    /// Only threads with this slug.
    slug: Option<String>,
    /// By which time, the newest first.
    sort: Option<Sort>,
    /// At most so many.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<usize>,
    /// Where the page before ended.
    #[param(pattern = "^([0-9]{1,19}-[0-9a-f]{32})?$")]
    cursor: Option<String>,
    /// Also those that were deleted.
    include_deleted: Option<bool>,
}

impl ThreadQuery {
    fn filter(self) -> ThreadFilter {
        let ThreadQuery { author, title, slug, sort, limit, cursor, include_deleted } = self;
        let order = match sort {
            None | Some(Sort::Updated) => ThreadOrder::Updated,
            Some(Sort::Created) => ThreadOrder::Created,
        };
        let include_deleted = include_deleted == Some(true);
        ThreadFilter { author, title, slug, order, limit, cursor, include_deleted }
    }
}

/// By which time threads are sorted.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sort {
    /// When something last happened.
    Updated,
    /// When they were opened.
    Created,
}

/// A page of threads.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Threads {
    threads: Vec<Thread>,
    /// Where the next page begins, if there is one.
    next: Option<String>,
}

pub(crate) async fn list(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<ThreadQuery>,
) -> Result<Json<Threads>, Problem> {
    with_thread_reader(&state, &context, |reader| {
        let ThreadPage { threads, next } = reader.page(&query.filter())?;
        Ok(Json(Threads { threads, next }))
    })
}

pub(crate) async fn create(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Response, Problem> {
    let (is_new, thread) = open(&state, context, json(&headers, &body)?).await?;
    let place = [(LOCATION, format!("/v1/threads/{}", thread.event))];
    Ok(match is_new {
        true => (StatusCode::CREATED, place, Json(thread)).into_response(),
        false => Json(thread).into_response(),
    })
}

/// Opens a thread; says whether it is new.
pub(crate) async fn open(
    state: &SharedState,
    context: RequestContext,
    sent: ThreadBody,
) -> Result<(bool, Thread), Problem> {
    let ThreadBody { id, title, name, slug, metadata, participants, private, direct, author, pins, .. } = sent;
    let context = state.acting_for(context, author)?;
    let mut fields = Map::new();
    for (name, value) in [("title", title.or(name)), ("slug", slug)] {
        if let Some(value) = value {
            check_title(&value)?;
            fields.insert(name.to_owned(), value.into());
        }
    }
    if let Some(metadata) = metadata {
        fields.insert("metadata".to_owned(), metadata);
    }
    if pins.is_some_and(|pins| !pins.is_empty()) {
        return Err(Problem::not_found("a thread that is opened has no message that could be pinned"));
    }
    let participants = participants.unwrap_or_default();
    check_participants(&participants)?;
    let (is_private, is_direct) = (private.unwrap_or(false), direct.unwrap_or(false));
    let new = NewThread { chosen: id, fields, participants, is_private, is_direct };
    let result = state.act(context.clone(), UserCommand::OpenThread(new)).await?;
    Ok((result.is_new, thread_after(state, &context, &result)?))
}

/// The same request, done only if the thread is as the caller saw it, where they say so.
fn expecting(
    state: &ServerState,
    context: RequestContext,
    headers: &HeaderMap,
    thread: &str,
) -> Result<RequestContext, Problem> {
    let Some(expected) = ExpectedTag::read(state, &context, headers)? else { return Ok(context) };
    let (thread, version) = with_thread_reader(state, &context, |reader| Ok(reader.thread_and_version(thread)?))?;
    expected.check(context, &thread, version)
}

fn thread_after(state: &SharedState, context: &RequestContext, result: &CommandResult) -> Result<Thread, Problem> {
    with_thread_reader(state, context, |reader| {
        Ok(match result.is_new {
            true => reader.thread_at(result.seq)?,
            // Whoever repeats a request may see less than they did then.
            false => reader.thread(&result.shown.to_string())?,
        })
    })
}

pub(crate) async fn get(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(thread): Path<String>,
) -> Result<Json<Thread>, Problem> {
    with_thread_reader(&state, &context, |reader| Ok(Json(reader.thread(&thread)?)))
}

pub(crate) async fn update(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(thread): Path<String>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Json<Thread>, Problem> {
    change(&state, context, &thread, &headers, json(&headers, &body)?).await.map(Json)
}

/// Changes a thread.
pub(crate) async fn change(
    state: &SharedState,
    context: RequestContext,
    thread: &str,
    headers: &HeaderMap,
    sent: ThreadBody,
) -> Result<Thread, Problem> {
    let ThreadBody { id, slug, title, name, metadata, participants, pins, private, author, .. } = sent;
    let context = expecting(state, state.acting_for(context, author)?, headers, thread)?;
    refuse_renaming(state, &context, thread, id.as_deref(), slug.as_deref())?;
    let mut fields = Vec::new();
    if let Some(title) = title.or(name) {
        check_title(&title)?;
        fields.push((ThreadField::Title, title.into()));
    }
    fields.extend(metadata.map(|metadata| (ThreadField::Metadata, metadata)));
    fields.extend(pins.map(|pins| (ThreadField::Pins, pins.into())));
    check_participants(participants.as_deref().unwrap_or_default())?;
    let change = ThreadChange { fields, participants, is_private: private };
    let command = UserCommand::UpdateThread(parse_name(thread, "thread")?, change);
    let result = state.act(context.clone(), command).await?;
    thread_after(state, &context, &result)
}

/// The id and slug of a thread are fixed when it is opened; sending them unchanged is fine.
fn refuse_renaming(
    state: &SharedState,
    context: &RequestContext,
    thread: &str,
    id: Option<&str>,
    slug: Option<&str>,
) -> Result<(), Problem> {
    if id.is_none() && slug.is_none() {
        return Ok(());
    }
    let now = with_thread_reader(state, context, |reader| Ok(reader.thread(thread)?))?;
    let differs = |said: Option<&str>, is: &str| said.is_some_and(|said| said != is);
    match differs(id, &now.id) || differs(slug, &now.slug) {
        true => Err(Problem::conflict("the id and the slug of a thread cannot be changed")),
        false => Ok(()),
    }
}

pub(crate) async fn delete(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(thread): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let context = expecting(&state, context, &headers, &thread)?;
    state.act(context, UserCommand::DeleteThread(parse_name(&thread, "thread")?)).await?;
    Ok(StatusCode::NO_CONTENT)
}
