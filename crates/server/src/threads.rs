//! Threads: list, create, get, update, delete.

use crate::ask::{json, named};
use crate::caller::{RequestContext, Viewer};
use crate::extract::{Path, Query, RequestBody};
use crate::problem::Problem;
use crate::render::{Renderer, Thread};
use crate::shapes::{ChosenId, TITLE_CHARS_MAX, fits};
use crate::state::SharedState;
use axum::Json;
use axum::extract::State;
use engine::rows::ThreadField;
use http::{HeaderMap, StatusCode};
use model::{EventId, Kind, Nanos, Seq, Stamp};
use node::commands::{self, CommandResult, NameOrId, NewThread, ThreadChange, UserCommand};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::Db;
use store::tables::TableReads;
use utoipa::{IntoParams, ToSchema};

/// Threads on one page.
const PAGE_MAX: usize = 200;
/// Threads whose unread messages are counted together.
const COUNTED_MAX: usize = 20;
/// Threads that one request looks at while it filters.
const LOOKED_AT_MAX: usize = 5000;
/// People in one thread.
const PARTICIPANTS_MAX: usize = 500;

/// What a thread can be opened or changed with. Fields that are absent are left alone; what only the node says of a
/// thread may be sent back with it, and changes nothing.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
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
    pins: Option<Vec<String>>,
    /// Whether only participants see it.
    private: Option<bool>,
    /// The user who opens it, where a backend key names no user in a header.
    #[schema(value_type = Option<ChosenId>)]
    author: Option<String>,
    #[serde(rename = "created_ts", default)]
    #[schema(ignore)]
    _created_ts: IgnoredAny,
    #[serde(rename = "updated_ts", default)]
    #[schema(ignore)]
    _updated_ts: IgnoredAny,
    #[serde(rename = "deleted", default)]
    #[schema(ignore)]
    _deleted: IgnoredAny,
    #[serde(rename = "last_message", default)]
    #[schema(ignore)]
    _last_message: IgnoredAny,
    #[serde(rename = "unread", default)]
    #[schema(ignore)]
    _unread: IgnoredAny,
    #[serde(rename = "event", default)]
    #[schema(ignore)]
    _event: IgnoredAny,
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
    /// A page of the list, the latest first.
    pub(crate) fn page(title: Option<String>, cursor: Option<String>) -> ThreadQuery {
        ThreadQuery { author: None, title, slug: None, sort: None, limit: None, cursor, include_deleted: None }
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
    pub(crate) threads: Vec<Thread>,
    /// Where the next page begins, if there is one.
    pub(crate) next: Option<String>,
}

/// List threads, the latest first
#[utoipa::path(get, path = "/v1/threads", tag = "threads", params(ThreadQuery), responses(
    (status = 200, body = Threads), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn list(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<ThreadQuery>,
) -> Result<Json<Threads>, Problem> {
    let db = state.node.snapshot()?;
    let viewer = context.read_as(&db, state.node.now())?;
    ThreadListing { db: &db, viewer: &viewer, query: &query }.page().map(Json)
}

/// A list of threads that the caller may see.
pub(crate) struct ThreadListing<'a, V> {
    pub(crate) db: &'a Db<V>,
    pub(crate) viewer: &'a Viewer,
    pub(crate) query: &'a ThreadQuery,
}

impl<V: TableReads> ThreadListing<'_, V> {
    pub(crate) fn page(&self) -> Result<Threads, Problem> {
        let most = limit(self.query.limit, PAGE_MAX)?;
        let mut cursor = self
            .query
            .cursor
            .as_deref()
            .filter(|text| !text.is_empty())
            .map_or(Ok((Nanos(u64::MAX), Seq(u64::MAX))), |text| self.cursor(text))?;
        let renderer = Renderer { db: self.db, viewer: self.viewer };
        let mut threads = Vec::new();
        let mut looked_at = 0;
        loop {
            let chunk = match self.query.sort.unwrap_or(Sort::Updated) {
                Sort::Updated => self.db.recent_threads(self.viewer.no, cursor, most)?,
                Sort::Created => self.db.latest_threads(self.viewer.no, cursor, most)?,
            };
            let is_last = chunk.len() < most;
            for (at, seq) in chunk {
                cursor = (at, seq);
                looked_at += 1;
                if let Some(thread) = self.fitting(&renderer, seq)? {
                    threads.push(thread);
                }
                if threads.len() == most || looked_at >= LOOKED_AT_MAX {
                    let next = Some(format!("{}-{}", cursor.0.0, self.db.id_of(cursor.1)?));
                    return Ok(Threads { threads, next });
                }
            }
            if is_last {
                return Ok(Threads { threads, next: None });
            }
        }
    }

    /// What is unread in the threads that were last talked in.
    pub(crate) fn unread(&self) -> Result<u64, Problem> {
        let renderer = Renderer { db: self.db, viewer: self.viewer };
        let mut unread = 0;
        for (_, seq) in self.db.recent_threads(self.viewer.no, (Nanos(u64::MAX), Seq(u64::MAX)), COUNTED_MAX)? {
            if self.is_seen(seq)? {
                unread += renderer.unread(seq)?.unwrap_or(0);
            }
        }
        Ok(unread)
    }

    /// Whether the caller may see a thread, and wants to.
    fn is_seen(&self, seq: Seq) -> Result<bool, Problem> {
        use engine::reads::Reads as _;
        let Some(meta) = self.db.event(seq)?.and_then(|row| row.meta) else { return Ok(false) };
        let sight =
            commands::thread_visibility(self.db, seq, &meta, Some(&self.viewer.caller), self.viewer.identity())?;
        Ok(self.viewer.may_see(&sight) && (!sight.is_deleted || self.query.include_deleted == Some(true)))
    }

    /// A cursor is a time and the id of a thread of this space; others are nobody's.
    fn cursor(&self, text: &str) -> Result<(Nanos, Seq), Problem> {
        let parse = || {
            let (at, id) = text.split_once('-')?;
            Some((Nanos(at.parse().ok()?), id.parse::<EventId>().ok()?))
        };
        let bad = || Problem::bad_request("the cursor is not one that a list of threads gave out");
        let (at, id) = parse().ok_or_else(bad)?;
        let found = commands::find(self.db, self.viewer.no, &NameOrId::Event(id), Kind::Thread)?;
        found.map(|(_, seq, _)| (at, seq)).ok_or_else(bad)
    }

    fn fitting(&self, renderer: &Renderer<'_, V>, seq: Seq) -> Result<Option<Thread>, Problem> {
        if !self.is_seen(seq)? {
            return Ok(None);
        }
        let Some(found) = self.db.thread(seq)? else { return Ok(None) };
        let thread = renderer.thread(&found)?;
        let fits = self.query.author.as_ref().is_none_or(|author| *author == thread.author)
            && self.query.slug.as_ref().is_none_or(|slug| *slug == thread.slug)
            && self.query.title.as_ref().is_none_or(|part| contains(&thread.title, part));
        Ok(fits.then_some(thread))
    }
}

fn contains(title: &str, part: &str) -> bool {
    title.to_lowercase().contains(&part.to_lowercase())
}

/// How many to list.
pub(crate) fn limit(asked: Option<usize>, most: usize) -> Result<usize, Problem> {
    match asked {
        None => Ok(50.min(most)),
        Some(0) => Err(Problem::bad_request("limit is at least 1")),
        Some(number) if number > most => Err(Problem::bad_request(format!("limit is at most {most}"))),
        Some(number) => Ok(number),
    }
}

/// Open a thread
#[utoipa::path(post, path = "/v1/threads", tag = "threads", request_body = ThreadBody, responses(
    (status = 201, body = Thread), (status = 200, description = "It was there already", body = Thread),
    (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn create(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<(StatusCode, Json<Thread>), Problem> {
    let ThreadBody { id, title, name, slug, metadata, participants, private, author, pins, .. } =
        json(&headers, &body)?;
    let context = context.acting_for(author)?;
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
    if let Some(pins) = pins {
        fields.insert("pins".to_owned(), pins.into());
    }
    let participants = participants.unwrap_or_default();
    check_participants(&participants)?;
    let new = NewThread { chosen: id, fields, participants, is_private: private.unwrap_or(false) };
    let result = state.act(context.clone(), UserCommand::OpenThread(new)).await?;
    let status = if result.is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(shown(&state, &context, &result)?)))
}

pub(crate) fn check_title(text: &str) -> Result<(), Problem> {
    match fits(text, TITLE_CHARS_MAX) {
        true => Ok(()),
        false => Err(Problem::unprocessable("a title or slug has at most 256 characters")),
    }
}

pub(crate) fn check_participants(users: &[String]) -> Result<(), Problem> {
    match users.len() > PARTICIPANTS_MAX {
        true => Err(Problem::unprocessable("a thread has at most 500 participants")),
        false => users
            .iter()
            .filter(|user| user.parse::<model::Identity>().is_err())
            .try_for_each(|user| commands::names::check_name(user).map_err(Problem::from)),
    }
}

fn shown(state: &SharedState, context: &RequestContext, result: &CommandResult) -> Result<Thread, Problem> {
    let db = state.node.snapshot()?;
    let viewer = context.read_as(&db, state.node.now())?;
    // Whoever repeats a request may see less than they did then.
    let seq = if result.is_new { result.seq } else { visible(&db, &viewer, &result.shown.to_string())?.1 };
    let found = db.thread(seq)?.ok_or_else(|| Problem::not_found("there is no such thread"))?;
    Renderer { db: &db, viewer: &viewer }.thread(&found)
}

/// The thread of that name, if the caller may see it.
pub(crate) fn visible<V: TableReads>(db: &Db<V>, viewer: &Viewer, name: &str) -> Result<(Stamp, Seq), Problem> {
    let unknown = || Problem::not_found("there is no such thread");
    let named = named(name, "thread")?;
    let (stamp, seq, meta) = commands::find(db, viewer.no, &named, Kind::Thread)?.ok_or_else(unknown)?;
    let sight = commands::thread_visibility(db, seq, &meta, Some(&viewer.caller), viewer.identity())?;
    if !viewer.may_see(&sight) || sight.is_deleted { Err(unknown()) } else { Ok((stamp, seq)) }
}

/// Get a thread
#[utoipa::path(get, path = "/v1/threads/{thread}", tag = "threads", params(("thread" = String, Path)), responses(
    (status = 200, body = Thread), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn get(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(thread): Path<String>,
) -> Result<Json<Thread>, Problem> {
    let db = state.node.snapshot()?;
    let viewer = context.read_as(&db, state.node.now())?;
    let (_, seq) = visible(&db, &viewer, &thread)?;
    let found = db.thread(seq)?.ok_or_else(|| Problem::not_found("there is no such thread"))?;
    Ok(Json(Renderer { db: &db, viewer: &viewer }.thread(&found)?))
}

/// Change the title, metadata, participants or pins of a thread, or who sees it
#[utoipa::path(put, path = "/v1/threads/{thread}", tag = "threads", params(("thread" = String, Path)),
    request_body = ThreadBody, responses(
    (status = 200, body = Thread), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn update(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(thread): Path<String>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Json<Thread>, Problem> {
    let ThreadBody { id, slug, title, name, metadata, participants, pins, private, author, .. } =
        json(&headers, &body)?;
    let context = context.acting_for(author)?;
    check_fixed(&state, &context, &thread, id.as_deref(), slug.as_deref())?;
    let mut fields = Vec::new();
    if let Some(title) = title.or(name) {
        check_title(&title)?;
        fields.push((ThreadField::Title, title.into()));
    }
    fields.extend(metadata.map(|metadata| (ThreadField::Metadata, metadata)));
    fields.extend(pins.map(|pins| (ThreadField::Pins, pins.into())));
    check_participants(participants.as_deref().unwrap_or_default())?;
    let change = ThreadChange { fields, participants, is_private: private };
    let command = UserCommand::UpdateThread(named(&thread, "thread")?, change);
    let result = state.act(context.clone(), command).await?;
    Ok(Json(shown(&state, &context, &result)?))
}

/// What a thread is called in addresses is said when it is opened; saying it again is no change.
fn check_fixed(
    state: &SharedState,
    context: &RequestContext,
    thread: &str,
    id: Option<&str>,
    slug: Option<&str>,
) -> Result<(), Problem> {
    if id.is_none() && slug.is_none() {
        return Ok(());
    }
    let db = state.node.snapshot()?;
    let viewer = context.read_as(&db, state.node.now())?;
    let (_, seq) = visible(&db, &viewer, thread)?;
    let found = db.thread(seq)?.ok_or_else(|| Problem::not_found("there is no such thread"))?;
    let now = Renderer { db: &db, viewer: &viewer }.thread(&found)?;
    let differs = |said: Option<&str>, is: &str| said.is_some_and(|said| said != is);
    match differs(id, &now.id) || differs(slug, &now.slug) {
        true => Err(Problem::conflict("the id and the slug of a thread are said when it is opened, and stay")),
        false => Ok(()),
    }
}

/// Delete a thread softly: it is not listed any more
#[utoipa::path(delete, path = "/v1/threads/{thread}", tag = "threads", params(("thread" = String, Path)), responses(
    (status = 204), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn delete(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(thread): Path<String>,
) -> Result<StatusCode, Problem> {
    state.act(context, UserCommand::DeleteThread(named(&thread, "thread")?)).await?;
    Ok(StatusCode::NO_CONTENT)
}
