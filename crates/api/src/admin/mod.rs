//! Administration of a space by its admin keys, and of the node by the operator.

pub(crate) mod backups;
pub(crate) mod commands;
pub(crate) mod explorer;
pub(crate) mod files;
pub(crate) mod identities;
pub(crate) mod jobs;
pub(crate) mod keys;
pub(crate) mod links;
pub(crate) mod retention;
pub(crate) mod signing_keys;
pub(crate) mod spaces;
pub(crate) mod upkeep;
pub(crate) mod users;
pub(crate) mod webhooks;

use axum::Json;
use axum::extract::State;
use model::calendar::Rfc3339;
use node::commands::CallerKind;
use queries::paging::{next_number, page_limit, parse_number};
use serde::{Deserialize, Serialize};
use server::context::RequestContext;
use server::extract::Query;
use server::problem::Problem;
use server::state::SharedState;
use utoipa::{IntoParams, ToSchema};

/// Health and version of the node.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeHealth {
    status: &'static str,
    version: &'static str,
}

pub(crate) async fn health() -> Json<NodeHealth> {
    Json(NodeHealth { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

/// What a space holds.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Stats {
    /// Threads that are listed.
    threads: u64,
    /// Messages in these threads.
    messages: u64,
    /// Events of the space, by whomever.
    events: u64,
    /// Bytes of content that they name.
    bytes: u64,
    /// Events that wait for something they need, on the whole node: only the operator is told.
    held: Option<u64>,
    /// The latest journal position.
    position: String,
}

pub(crate) async fn stats(State(state): State<SharedState>, context: RequestContext) -> Result<Json<Stats>, Problem> {
    use engine::reads::Reads as _;
    let (db, space) = (state.node.snapshot()?, context.space()?);
    let is_operator = context.caller.kind == CallerKind::Operator;
    // A large space is counted for a while.
    let counted = tokio::task::spawn_blocking(move || {
        let Some(no) = db.space_no(&space)? else { return Err(Problem::not_found("this space is empty here")) };
        let (events, bytes) = db.usage_of(no)?;
        let (threads, messages) = db.thread_and_message_count(no)?;
        let held = if is_operator { Some(db.held_total()?) } else { None };
        Ok(Json(Stats { threads, messages, events, bytes, held, position: db.position()?.to_string() }))
    });
    counted.await.map_err(|_| Problem::broken("the counting ended early"))?
}

/// Which entries of the audit log to show.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// Where the page before ended.
    #[param(pattern = "^[0-9]{0,19}$")]
    cursor: Option<String>,
    /// At most so many.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<usize>,
}

/// An act of administration.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditEntry {
    /// Its place in the log.
    number: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Rfc3339,
    who: String,
    what: String,
    target: String,
}

/// Acts of administration, the latest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Audit {
    entries: Vec<AuditEntry>,
    /// Where to go on; absent at the end.
    next: Option<String>,
}

pub(crate) async fn audit(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<AuditQuery>,
) -> Result<Json<Audit>, Problem> {
    let most = page_limit(query.limit, 500)?;
    let is_operator = context.caller.kind == CallerKind::Operator;
    let before = parse_number(query.cursor.as_deref())?.unwrap_or(u64::MAX);
    let mut log = state.node.snapshot()?.audit_log(before, most + 1)?;
    // Where to go on, whoever may see what was looked at.
    let next = next_number(&mut log, most);
    let entries = log.into_iter().filter(|(_, entry)| is_operator || entry.space == context.space);
    let entries = entries.map(|(number, entry)| AuditEntry {
        number: number.to_string(),
        created_at: Rfc3339(entry.at),
        who: entry.who,
        what: entry.what,
        target: entry.target,
    });
    Ok(Json(Audit { entries: entries.collect(), next }))
}
