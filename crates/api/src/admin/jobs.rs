//! Jobs: what goes on in the background, and what it came to.

use axum::Json;
use axum::extract::State;
use http::header::LOCATION;
use http::{HeaderMap, HeaderName, StatusCode};
use model::calendar::Rfc3339;
use node::commands::{AdminCommand, AdminResult, CallerKind};
use queries::paging::{page_limit, parse_number};
use serde::{Deserialize, Serialize};
use server::context::RequestContext;
use server::extract::{Path, Query, RequestBody};
use server::input::json;
use server::problem::Problem;
use server::state::{ServerState, SharedState};
use store::shared::jobs::{Job, JobKind};
use utoipa::{IntoParams, ToSchema};

/// A job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobEntry {
    /// What it is found by.
    number: String,
    /// What it does: `retain`, `erase`, `end space`, `encrypt`, `rotate` or `rewrap`.
    work: &'static str,
    /// The space it is about, if it is about one.
    space: Option<String>,
    /// Who began it.
    who: String,
    /// When it was asked for.
    #[schema(value_type = String, format = DateTime)]
    begun_at: Rfc3339,
    /// When its first part was done; absent while it waits for its turn.
    #[schema(value_type = Option<String>, format = DateTime)]
    started_at: Option<Rfc3339>,
    /// The job of the same work that has to end before it starts.
    after: Option<String>,
    /// When it ended; absent while it goes on.
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Rfc3339>,
    /// Why it ended before it was done.
    failed: Option<String>,
    /// Rows or messages that were looked at so far.
    seen: u64,
    /// Values that were written anew.
    rewritten: u64,
    /// Contents that were purged by a delete event, which travels.
    deleted: u64,
    /// Contents that were dropped on this node only.
    pruned: u64,
}

/// Jobs, the latest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Jobs {
    jobs: Vec<JobEntry>,
    /// Where to go on; absent at the end.
    next: Option<String>,
}

/// Which jobs to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct JobQuery {
    /// Where the page before ended.
    #[param(pattern = "^[0-9]{0,19}$")]
    cursor: Option<String>,
    /// At most so many.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<usize>,
}

/// A kind of work.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WorkWord {
    /// Purge what retention says, now.
    Retain,
    /// Move the space to a new storage key.
    Rotate,
    /// Encrypt what rests otherwise than its protection says, in all spaces; for the operator.
    Encrypt,
}

/// A job to begin.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "work": "retain" }))]
pub(crate) struct WorkBody {
    work: WorkWord,
}

/// A job that was begun.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Begun {
    pub(super) job: String,
}

fn entry(number: u64, job: Job) -> JobEntry {
    JobEntry {
        number: number.to_string(),
        work: job.work.word(),
        space: job.work.space().map(|space| space.to_string()),
        who: job.who,
        begun_at: Rfc3339(job.begun_at),
        started_at: job.started_at.map(Rfc3339),
        after: job.after.map(|number| number.to_string()),
        ended_at: job.ended_at.map(Rfc3339),
        failed: job.failed,
        seen: job.receipt.seen,
        rewritten: job.receipt.rewritten,
        deleted: job.receipt.deleted,
        pruned: job.receipt.pruned,
    }
}

/// Whether whoever administers a space may know of a job; the operator knows of all.
fn concerns(job: &Job, context: &RequestContext) -> bool {
    let is_own = || job.work.space().is_some_and(|space| Some(space) == context.space);
    context.caller.kind == CallerKind::Operator || is_own()
}

/// The answer to whoever began a job: its number, and where to look for it.
pub(super) fn begun(job: u64) -> BegunJob {
    (StatusCode::ACCEPTED, [(LOCATION, format!("/admin/jobs/{job}"))], Json(Begun { job: job.to_string() }))
}

/// What [`begun`] says.
pub(crate) type BegunJob = (StatusCode, [(HeaderName, String); 1], Json<Begun>);

/// Begins what leads to a job.
pub(super) async fn begin_job(
    state: &ServerState,
    context: &RequestContext,
    what: AdminCommand,
) -> Result<BegunJob, Problem> {
    match state.administer(context, what).await? {
        AdminResult::Begun(job) => Ok(begun(job)),
        _ => Err(Problem::broken("no job was begun")),
    }
}

pub(crate) async fn list(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<JobQuery>,
) -> Result<Json<Jobs>, Problem> {
    let most = page_limit(query.limit, 200)?;
    let before = parse_number(query.cursor.as_deref())?.unwrap_or(u64::MAX);
    let found = state.node.snapshot()?.jobs(before, usize::MAX)?.into_iter();
    let mut found = found.filter(|(_, job)| concerns(job, &context));
    let jobs: Vec<_> = found.by_ref().take(most).map(|(number, job)| entry(number, job)).collect();
    let next = found.next().and_then(|_| Some(jobs.last()?.number.clone()));
    Ok(Json(Jobs { jobs, next }))
}

pub(crate) async fn get(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(number): Path<String>,
) -> Result<Json<JobEntry>, Problem> {
    let unknown = || Problem::not_found("there is no such job");
    let number = number.parse().map_err(|_| unknown())?;
    let job = state.node.snapshot()?.job(number)?.filter(|job| concerns(job, &context)).ok_or_else(unknown)?;
    Ok(Json(entry(number, job)))
}

pub(crate) async fn create(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<BegunJob, Problem> {
    let space = context.space()?;
    let work = match json::<WorkBody>(&headers, &body)?.work {
        WorkWord::Retain => JobKind::Retain(Some(space)),
        WorkWord::Rotate => JobKind::Rotate(space),
        WorkWord::Encrypt if context.caller.kind == CallerKind::Operator => JobKind::Encrypt,
        WorkWord::Encrypt => {
            return Err(Problem::forbidden("this walks over all spaces and needs the operator's token"));
        }
    };
    begin_job(&state, &context, AdminCommand::Begin(work)).await
}
