//! The explorer: what rests in the store, under keys that people can read.

use axum::Json;
use axum::extract::State;
use engine::reads::{Reads as _, StoreResult};
use model::SpaceId;
use node::commands::CallerKind;
use node::commands::names::NAME_BYTES_MAX;
use queries::paging::page_limit;
use serde::{Deserialize, Serialize};
use server::context::RequestContext;
use server::extract::{Path, Query};
use server::problem::Problem;
use server::state::SharedState;
use store::Db;
use store::maintenance::explorer::BadExplorerKey;
use store::tables::TableReads;
use utoipa::{IntoParams, ToSchema};

/// Which keys to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct KeyQuery {
    /// Those that begin with this text. Ids of events, spaces and identities must be whole; times and hashes may be cut.
    prefix: Option<String>,
    /// Where the page before ended: its last key.
    cursor: Option<String>,
    /// At most so many.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<usize>,
}

/// A page of keys.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyPage {
    keys: Vec<String>,
    /// The cursor of the next page, if there is one.
    next: Option<String>,
}

/// What rests under a key.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyRow {
    key: String,
    /// The row; bytes that are not JSON are in hexadecimal.
    value: serde_json::Value,
    /// What to know about how it is shown: sealed content, for instance, is not decrypted.
    note: Option<&'static str>,
}

/// The space that the caller may look into; none for the operator, who sees all.
fn visible_space(context: &RequestContext) -> Result<Option<SpaceId>, Problem> {
    if context.caller.kind == CallerKind::Operator { Ok(None) } else { context.space().map(Some) }
}

/// What stands in a key before the id of a thread or message.
const BEFORE_IDS: [&str; 5] = ["thread:", "version:msg:", "edit:msg:", "reaction:", "event:"];
/// What stands between a thread and the place of a message in it.
const BEFORE_MESSAGE: &str = ":msg:";

/// A key or prefix in which threads and messages may be named by the ids that clients chose.
fn with_event_ids<V: TableReads>(db: &Db<V>, space: Option<&SpaceId>, text: &str) -> StoreResult<String> {
    let no = space.map(|space| db.space_no(space)).transpose()?.flatten();
    let before = BEFORE_IDS.iter().find(|before| text.starts_with(**before));
    let (Some(no), Some(before)) = (no, before) else { return Ok(text.to_owned()) };
    let rest = &text[before.len()..];
    // An id may contain colons, so it ends at one of them or at the end.
    let ends: Vec<usize> = rest.match_indices(':').map(|(at, _)| at).chain([rest.len()]).collect();
    // The longest that there is: `a:b` is not `a`.
    for end in ends.into_iter().rev().filter(|end| *end <= NAME_BYTES_MAX) {
        let Some((stamp, _)) = db.chosen(no, &rest[..end])? else { continue };
        let mut key = format!("{before}{}", stamp.id);
        match rest[end..].strip_prefix(BEFORE_MESSAGE) {
            Some(message) if *before == "thread:" => {
                let found = db.chosen(no, message)?.map(|(stamp, _)| format!("{}-{}", stamp.at, stamp.id));
                key.push_str(BEFORE_MESSAGE);
                key.push_str(found.as_deref().unwrap_or(message));
            }
            _ => key.push_str(&rest[end..]),
        }
        return Ok(key);
    }
    Ok(text.to_owned())
}

pub(crate) async fn list(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<KeyQuery>,
) -> Result<Json<KeyPage>, Problem> {
    let most = page_limit(query.limit, 1000)?;
    let only = visible_space(&context)?;
    let db = state.node.snapshot()?;
    let prefix = with_event_ids(&db, context.space.as_ref(), &query.prefix.unwrap_or_default())?;
    let page = db.explore(&prefix, query.cursor.as_deref().filter(|cursor| !cursor.is_empty()), most, only.as_ref())?;
    let page = page.map_err(|why| match why {
        BadExplorerKey::Cursor => Problem::bad_request(why.to_string()),
        BadExplorerKey::OfManySpaces => Problem::forbidden(why.to_string()),
    })?;
    Ok(Json(KeyPage { keys: page.keys, next: page.next }))
}

pub(crate) async fn get(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(key): Path<String>,
) -> Result<Json<KeyRow>, Problem> {
    let db = state.node.snapshot()?;
    let key = with_event_ids(&db, context.space.as_ref(), &key)?;
    let row = db.explore_row(&key, visible_space(&context)?.as_ref())?;
    let row = row.ok_or_else(|| Problem::not_found("there is no such row in what this key may see"))?;
    Ok(Json(KeyRow { key, value: row.value, note: row.note }))
}
