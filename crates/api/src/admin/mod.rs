//! Administration of a space by its admin keys, and of the node by the operator.

pub(crate) mod backups;
pub(crate) mod commands;
pub(crate) mod explorer;
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
use queries::paging::page_limit;
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
    /// Events of the space, by whomever.
    events: u64,
    /// Bytes of content that they name.
    bytes: u64,
    /// Events that wait for something they need, on the whole node.
    held: u64,
    /// The latest journal position.
    position: String,
}

pub(crate) async fn stats(State(state): State<SharedState>, context: RequestContext) -> Result<Json<Stats>, Problem> {
    use engine::reads::Reads as _;
    let db = state.node.snapshot()?;
    let space = context.space()?;
    let Some(no) = db.space_no(&space)? else { return Err(Problem::not_found("this space is empty here")) };
    let (events, bytes) = db.usage_of(no)?;
    let threads = db.thread_count(no)?;
    Ok(Json(Stats { threads, events, bytes, held: db.held_total()?, position: db.position()?.to_string() }))
}

/// Which entries of the audit log to show.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// Those before this number.
    before: Option<u64>,
    /// At most so many.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<usize>,
}

/// An act of administration.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditEntry {
    number: u64,
    ts: u64,
    who: String,
    what: String,
    target: String,
}

/// Acts of administration, the latest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Audit {
    entries: Vec<AuditEntry>,
}

pub(crate) async fn audit(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<AuditQuery>,
) -> Result<Json<Audit>, Problem> {
    let most = page_limit(query.limit, 500)?;
    let is_operator = context.caller.kind == node::commands::CallerKind::Operator;
    let log = state.node.snapshot()?.audit_log(query.before.unwrap_or(u64::MAX), most)?;
    let entries = log.into_iter().filter(|(_, entry)| is_operator || entry.space == context.space);
    let entries = entries.map(|(number, entry)| AuditEntry {
        number,
        ts: entry.at.0,
        who: entry.who,
        what: entry.what,
        target: entry.target,
    });
    Ok(Json(Audit { entries: entries.collect() }))
}
