//! How long messages are kept.

use crate::schemas::whole;
use axum::Json;
use axum::extract::State;
use engine::reads::Reads as _;
use http::{HeaderMap, StatusCode};
use model::calendar::Rfc3339;
use model::{EventId, Kind};
use node::commands::{self, AdminCommand};
use node::jobs::retention::{PlanCursor, plan};
use queries::names::parse_name;
use serde::{Deserialize, Serialize};
use server::context::RequestContext;
use server::extract::{Query, RequestBody};
use server::input::json;
use server::problem::Problem;
use server::state::{ServerState, SharedState};
use store::shared::retention::Retention;
use utoipa::{IntoParams, ToSchema};

/// Messages that a preview looks at, and that it lists.
const LOOKED_AT_MAX: usize = 100_000;
const LISTED_MAX: usize = 1000;
/// A hundred years.
const SECONDS_MAX: u64 = 100 * 366 * 24 * 3600;

/// How long messages of the space or of one thread are kept. What is absent sets no limit.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "age_seconds": 2_592_000, "thread": "tea" }))]
pub(crate) struct Rule {
    /// The thread; absent for all threads of the space that have no rule of their own.
    thread: Option<String>,
    /// Messages older than so many seconds are purged.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 1, maximum = 3_162_240_000_u64)]
    age_seconds: Option<u64>,
    /// Messages beyond the latest so many of their thread are purged.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    count: Option<u64>,
    /// Messages that were deleted softly are purged after so many seconds.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 0, maximum = 3_162_240_000_u64)]
    deleted_seconds: Option<u64>,
}

/// The rules of a space.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Rules {
    rules: Vec<Rule>,
    /// When they are next looked at.
    #[schema(value_type = Option<String>, format = DateTime)]
    next_at: Option<Rfc3339>,
}

/// Whose rule to lift.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RuleQuery {
    /// The thread; absent for the space.
    thread: Option<String>,
}

/// A message that would be purged.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WouldGo {
    thread: String,
    message: String,
    /// Why: `age`, `count` or `deleted`.
    why: &'static str,
    /// How: by a `delete` event, which travels, or by `prune`, on this node only.
    how: &'static str,
}

/// What the rules would purge now.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Preview {
    /// How many messages were looked at.
    seen: u64,
    /// How many of them would go.
    going: usize,
    /// The first of them.
    messages: Vec<WouldGo>,
    /// Whether there was more to look at.
    more: bool,
}

fn find_thread(state: &ServerState, context: &RequestContext, id: Option<&str>) -> Result<Option<EventId>, Problem> {
    let unknown = || Problem::not_found("there is no such thread");
    let Some(id) = id else { return Ok(None) };
    let db = state.node.snapshot()?;
    let no = db.space_no(&context.space()?)?.ok_or_else(unknown)?;
    let found = commands::find(&db, no, &parse_name(id, "thread")?, Kind::Thread)?.ok_or_else(unknown)?;
    Ok(Some(found.0.id))
}

pub(crate) async fn list(State(state): State<SharedState>, context: RequestContext) -> Result<Json<Rules>, Problem> {
    let (db, space) = (state.node.snapshot()?, context.space()?);
    let rules = db.retentions()?.into_iter().filter(|(other, ..)| *other == space);
    let rules = rules.map(|(_, thread, rule)| Rule {
        thread: thread.map(|thread| thread.to_string()),
        age_seconds: rule.age_seconds,
        count: rule.count,
        deleted_seconds: rule.deleted_seconds,
    });
    Ok(Json(Rules { rules: rules.collect(), next_at: db.next_retention()?.map(Rfc3339) }))
}

pub(crate) async fn put(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<StatusCode, Problem> {
    let rule: Rule = json(&headers, &body)?;
    let is_long = |seconds: Option<u64>| seconds.is_some_and(|seconds| seconds > SECONDS_MAX);
    if is_long(rule.age_seconds) || is_long(rule.deleted_seconds) {
        return Err(Problem::over_limit(format!("times are at most {SECONDS_MAX} seconds")));
    }
    if rule.age_seconds == Some(0) || rule.count.is_some_and(|count| count == 0 || count > 1_000_000_000) {
        return Err(Problem::over_limit("an age is at least a second, a count between one and a billion"));
    }
    let thread = find_thread(&state, &context, rule.thread.as_deref())?;
    let Rule { age_seconds, count, deleted_seconds, .. } = rule;
    let kept = Retention { age_seconds, count, deleted_seconds };
    state.administer(&context, AdminCommand::Retain(context.space()?, thread, Some(kept))).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn lift(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<RuleQuery>,
) -> Result<StatusCode, Problem> {
    let thread = find_thread(&state, &context, query.thread.as_deref())?;
    state.administer(&context, AdminCommand::Retain(context.space()?, thread, None)).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn preview(
    State(state): State<SharedState>,
    context: RequestContext,
) -> Result<Json<Preview>, Problem> {
    let (db, space, now) = (state.node.snapshot()?, context.space()?, state.node.now());
    let how = if db.hosted_space(&space)?.is_some() { "delete" } else { "prune" };
    let plan = tokio::task::spawn_blocking(move || plan(&db, Some(space), now, PlanCursor::FIRST, LOOKED_AT_MAX));
    let plan = plan.await.map_err(|_| Problem::broken("the preview was given up"))??;
    let messages = plan.going.iter().take(LISTED_MAX).map(|going| WouldGo {
        thread: going.thread.to_string(),
        message: going.message.to_string(),
        why: going.why.word(),
        how,
    });
    let (seen, more) = (plan.seen, plan.next.is_some());
    Ok(Json(Preview { seen, going: plan.going.len(), messages: messages.collect(), more }))
}
