//! What somebody wrote in a space, to take along.

use crate::schemas::PageQuery;
use axum::Json;
use axum::extract::State;
use engine::reads::Reads as _;
use model::calendar::Rfc3339;
use model::{Identity, SpaceId, Stamp};
use queries::paging::{format_cursor, page_limit, parse_cursor};
use serde::Serialize;
use serde_json::Value;
use server::context::RequestContext;
use server::extract::{Path, Query};
use server::problem::Problem;
use server::state::{ServerState, SharedState};
use store::views::messages::ShownContent;
use utoipa::ToSchema;

/// Events on one page.
const PAGE_MAX: usize = 200;

/// Something that somebody wrote.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Written {
    /// The event.
    id: String,
    /// What it is: `message`, `edit`, `reaction`, `thread` and so on.
    kind: String,
    /// When it was written.
    #[schema(value_type = String, format = DateTime)]
    created_at: Rfc3339,
    /// The thread or message that it belongs to.
    about: Option<String>,
    /// What it says; null if that is not here.
    content: Value,
    /// Whether its content is `here`, `missing`, `invalid` or `deleted`.
    state: &'static str,
}

/// A page of what somebody wrote, in the order of its time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Export {
    /// Who.
    user: String,
    /// The public key of their identity.
    identity: String,
    /// Since when they are here.
    #[schema(value_type = String, format = DateTime)]
    since: Rfc3339,
    events: Vec<Written>,
    /// Where to go on; absent at the end.
    next: Option<String>,
}

fn page(state: &ServerState, space: &SpaceId, user: &str, query: &PageQuery) -> Result<Export, Problem> {
    let db = state.node.snapshot()?;
    let most = page_limit(query.limit, PAGE_MAX)?;
    let after = parse_cursor(query.cursor.as_deref())?.unwrap_or(Stamp::FIRST);
    let unknown = || Problem::not_found("there is no such user");
    let known = db.user(space, user)?.ok_or_else(unknown)?;
    let identity: Identity = known.identity;
    let mut found = match (db.space_no(space)?, db.author_no(&identity)?) {
        (Some(no), Some(author)) => db.by_author(no, author, after, most + 1)?,
        _ => Vec::new(),
    };
    let has_more = found.len() > most;
    found.truncate(most);
    let mut events = Vec::new();
    for (stamp, seq) in &found {
        let Some(meta) = db.event(*seq)?.and_then(|row| row.meta) else { continue };
        let (state, content) = match db.shown(*seq)? {
            ShownContent::Here(bytes) => ("here", serde_json::from_slice(&bytes).unwrap_or(Value::Null)),
            ShownContent::Absent => ("missing", Value::Null),
            ShownContent::Invalid => ("invalid", Value::Null),
            ShownContent::Deleted(_) => ("deleted", Value::Null),
            ShownContent::Damaged => ("damaged", Value::Null),
        };
        let about = meta.subject.map(|subject| db.id_of(subject)).transpose()?.map(|id| id.to_string());
        let kind = meta.kind.to_string();
        events.push(Written { id: stamp.id.to_string(), kind, created_at: Rfc3339(stamp.at), about, content, state });
    }
    let next = found.last().filter(|_| has_more).map(|(stamp, _)| format_cursor(*stamp));
    Ok(Export { user: known.id, identity: identity.to_string(), since: Rfc3339(known.since), events, next })
}

pub(crate) async fn own(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<PageQuery>,
) -> Result<Json<Export>, Problem> {
    let viewer = context.read_as(&*state.node.snapshot()?, state.node.now())?;
    let user = viewer.caller.user.as_deref().unwrap_or_default();
    page(&state, &viewer.space, user, &query).map(Json)
}

pub(crate) async fn of_user(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(user): Path<String>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Export>, Problem> {
    page(&state, &context.space()?, &user, &query).map(Json)
}
