//! Upkeep: erasing users, ending spaces, keys at rest, purging, reports, looking again, verifying.

use super::jobs::{BegunJob, begin_job, begun};
use crate::schemas::EventIdText;
use axum::Json;
use axum::extract::State;
use engine::reads::Reads as _;
use http::{HeaderMap, StatusCode};
use model::calendar::Rfc3339;
use model::nostr::parse_repository;
use model::{EventId, Group, Need, SpaceId};
use node::commands::AdminCommand;
use node::jobs::PurgeResult;
use node::node_commands::{HuntNow, Purge};
use queries::paging::{next_number, page_limit, parse_number};
use serde::{Deserialize, Serialize};
use server::context::RequestContext;
use server::extract::{Path, Query, RequestBody};
use server::input::json;
use server::problem::Problem;
use server::state::{ServerState, SharedState};
use std::sync::Arc;
use store::Protection;
use store::shared::api_keys::RequestOutcome;
use utoipa::{IntoParams, ToSchema};

/// Needs of a repository that are looked at to see whether it waits for anything.
const NEEDS_MAX: usize = 1000;
/// Events that one request purges.
const PURGED_MAX: usize = 100;

pub(crate) async fn erase(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(user): Path<String>,
) -> Result<BegunJob, Problem> {
    let begun = begin_job(&state, &context, AdminCommand::EraseUser(context.space()?, user)).await;
    state.rendered.clear();
    begun
}

/// A space that the node keeps, by its name or id.
fn find_kept_space(state: &ServerState, name: &str) -> Result<SpaceId, Problem> {
    let spaces = state.node.snapshot()?.hosted_spaces()?;
    if let Some((space, _)) = spaces.iter().find(|(space, kept)| kept.name == name || space.to_string() == name) {
        return Ok(*space);
    }
    // Once its keys were destroyed, a space has no name any more.
    let space = name.parse().ok().filter(|space| state.node.snapshot().is_ok_and(|db| db.is_hosted(space)));
    space.ok_or_else(|| Problem::not_found("this node keeps no such space"))
}

pub(crate) async fn end_space(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(space): Path<String>,
) -> Result<BegunJob, Problem> {
    if let Some(RequestOutcome::Job(job)) = state.repeated(&context)?.map(|earlier| earlier.outcome) {
        return Ok(begun(job));
    }
    let space = find_kept_space(&state, &space)?;
    if state.options.keys.values().any(|key| key.space == space) {
        return Err(Problem::declared("a key of this space is declared in the configuration; remove it there first"));
    }
    let no = state.node.snapshot()?.space_no(&space)?;
    let begun = begin_job(&state, &context, AdminCommand::EndSpace(space)).await;
    state.forget_space(&space);
    // Whoever listens does so no longer.
    if let Some(no) = no {
        state.hub.change_rights(no, queries::live::ChangedRights::Everyone);
    }
    begun
}

pub(crate) async fn destroy_keys(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(space): Path<String>,
) -> Result<StatusCode, Problem> {
    if state.repeated(&context)?.is_some() {
        return Ok(StatusCode::NO_CONTENT);
    }
    let space = find_kept_space(&state, &space)?;
    let done = state.administer(&context, AdminCommand::DestroyKeys(space)).await;
    state.forget_space(&space);
    done.map(|_| StatusCode::NO_CONTENT)
}

/// How content of an open space rests.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProtectionWord {
    /// Encrypted as a whole.
    Whole,
    /// Named fields of its JSON are encrypted.
    Fields,
    /// As it is.
    None,
}

/// What of a space's content is encrypted at rest.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "encrypt": "fields", "fields": ["body.text"] }))]
pub(crate) struct ProtectionBody {
    encrypt: ProtectionWord,
    /// Paths into the content, such as `body.text` or `body.*.secret`.
    #[serde(default)]
    #[schema(max_items = 100)]
    fields: Vec<String>,
}

pub(crate) async fn protect(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(space): Path<String>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<BegunJob, Problem> {
    let body: ProtectionBody = json(&headers, &body)?;
    let space = find_kept_space(&state, &space)?;
    let protection = match body.encrypt {
        ProtectionWord::Whole => Protection::Whole,
        ProtectionWord::None => Protection::Nothing,
        ProtectionWord::Fields => {
            let fields: Vec<&str> = body.fields.iter().map(String::as_str).collect();
            Protection::fields(&fields).map_err(|why| Problem::unprocessable(why.to_string()))?
        }
    };
    begin_job(&state, &context, AdminCommand::Protect(space, protection)).await
}

/// Events to purge.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "events": ["3be9f54074dbd655150de80e02aedb4e"] }))]
pub(crate) struct PurgeBody {
    #[schema(value_type = Vec<EventIdText>, max_items = 100)]
    events: Vec<String>,
}

/// What became of an event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PurgedEntry {
    event: String,
    /// How it was purged: by a `delete` event, which travels, or by `prune`, on this node only; absent if it was not.
    how: Option<&'static str>,
    /// Why there was nothing to purge.
    why_not: Option<&'static str>,
}

/// The receipt of a purge.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PurgeReceipt {
    purged: Vec<PurgedEntry>,
}

pub(crate) async fn purge(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Json<PurgeReceipt>, Problem> {
    let events = json::<PurgeBody>(&headers, &body)?.events;
    if events.len() > PURGED_MAX {
        return Err(Problem::over_limit(format!("at most {PURGED_MAX} events at a time")));
    }
    let ids = events.iter().map(|id| id.parse::<EventId>()).collect::<Result<Vec<_>, _>>();
    let ids = ids.map_err(|_| Problem::unprocessable("events are ids of 32 hexadecimal digits"))?;
    if context.idempotency.is_some() {
        state.administer(&context, AdminCommand::Note("ask for a purge", format!("{} events", ids.len()))).await?;
    }
    let audit_name = context.caller.audit_name.clone();
    let done = state.ask(Purge { space: context.space()?, targets: ids, audit_name }).await?;
    let entry = |(event, purged): (EventId, PurgeResult)| {
        let (how, why_not) = match purged {
            PurgeResult::Deleted => (Some("delete"), None),
            PurgeResult::Pruned => (Some("prune"), None),
            PurgeResult::Nothing(why) => (None, Some(why)),
        };
        PurgedEntry { event: event.to_string(), how, why_not }
    };
    Ok(Json(PurgeReceipt { purged: done.into_iter().map(entry).collect() }))
}

/// What to look at again: one of the three.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "event": "3be9f54074dbd655150de80e02aedb4e" }))]
pub(crate) struct RetryBody {
    /// An event that waits.
    #[schema(value_type = Option<EventIdText>)]
    event: Option<String>,
    /// A need, as `held` and `explain` write it.
    need: Option<String>,
    /// A git repository: the public key of its owner (`npub1…`), a slash and its identifier.
    repository: Option<String>,
}

/// What events about a git repository wait for, as one group.
fn missing_of_repository(state: &ServerState, text: &str) -> Result<HuntNow, Problem> {
    let unknown = || Problem::not_found("nothing waits for data of that repository");
    let (owner, identifier) = parse_repository(text).ok_or_else(|| {
        Problem::unprocessable("a repository is written npub1…/identifier, as `anteroom repos list` prints it")
    })?;
    let group = Group::Repository(identifier);
    let needs = state.node.snapshot()?.needs_of(&group, NEEDS_MAX)?;
    let is_of_owner = |need: &Need| need.repository_owner() == Some(&owner);
    if needs.iter().any(is_of_owner) { Ok(HuntNow::ForGroup(group)) } else { Err(unknown()) }
}

pub(crate) async fn retry(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<StatusCode, Problem> {
    let RetryBody { event, need, repository } = json(&headers, &body)?;
    let target = event.clone().or(need.clone()).or(repository.clone()).unwrap_or_default();
    let request = match (event, need, repository) {
        (Some(event), None, None) => {
            let unknown = || Problem::not_found("there is no such event here");
            let id: EventId = event.parse().map_err(|_| unknown())?;
            state.node.snapshot()?.seq(&id)?.ok_or_else(unknown)?;
            HuntNow::ForEvent(id)
        }
        (None, None, Some(repository)) => missing_of_repository(&state, &repository)?,
        (None, Some(need), None) => {
            let need: Need = need.parse().map_err(|_| Problem::unprocessable("that is not how a need is written"))?;
            HuntNow::ForNeed(need)
        }
        _ => return Err(Problem::unprocessable("name an event, a need or a repository, one of them")),
    };
    state.administer(&context, AdminCommand::Note("retry", target)).await?;
    state.ask(request).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Held by whoever checks the whole store: one at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct VerifyLock(Arc<tokio::sync::Mutex<()>>);

/// What a check of the whole store found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VerifySummary {
    events: u64,
    contents: u64,
    /// What rests under keys that were destroyed, and is not looked into.
    unreadable: u64,
    /// The digest of the views.
    digest: String,
    /// What is wrong; empty if nothing is.
    problems: Vec<String>,
}

pub(crate) async fn verify(
    State(state): State<SharedState>,
    State(verifying): State<VerifyLock>,
    context: RequestContext,
) -> Result<Json<VerifySummary>, Problem> {
    let Ok(permit) = verifying.0.try_lock_owned() else {
        return Err(Problem::overloaded("a check is under way").after(60));
    };
    state.administer(&context, AdminCommand::Note("verify", String::new())).await?;
    let node = state.node.clone();
    let report = tokio::task::spawn_blocking(move || {
        let report = node.store().verify_beside();
        drop(permit);
        report
    });
    let report = report.await.map_err(|_| Problem::broken("the check was given up"))??;
    let store::maintenance::verify::VerifyReport { events, contents, digest, unreadable, mut problems, parked } =
        report;
    problems.extend(parked);
    Ok(Json(VerifySummary { events, contents, unreadable, digest, problems }))
}

/// A report of a user.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReportEntry {
    /// What it is found by.
    number: String,
    reporter: String,
    /// The message, by the id of its event.
    message: String,
    reason: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Rfc3339,
    /// Who settled it; absent while it is open.
    settled_by: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime)]
    settled_at: Option<Rfc3339>,
    note: Option<String>,
}

/// Reports, the latest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Reports {
    reports: Vec<ReportEntry>,
    /// Where to go on; absent at the end.
    next: Option<String>,
}

/// Which reports to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReportQuery {
    /// Where the page before ended.
    #[param(pattern = "^[0-9]{0,19}$")]
    cursor: Option<String>,
    /// At most so many.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<usize>,
}

/// How a report was settled.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "note": "The message was deleted." }))]
pub(crate) struct SettleBody {
    #[serde(default)]
    #[schema(max_length = 500)]
    note: String,
}

pub(crate) async fn reports(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<ReportQuery>,
) -> Result<Json<Reports>, Problem> {
    let most = page_limit(query.limit, 200)?;
    let (db, space) = (state.node.snapshot()?, context.space()?);
    let mut reports = Vec::new();
    let before = parse_number(query.cursor.as_deref())?.unwrap_or(u64::MAX);
    let mut found = db.reports(&space, before, most + 1)?;
    let next = next_number(&mut found, most);
    for (number, report) in found {
        let (settled_by, settled_at, note) = match report.settled {
            Some((who, at, note)) => (Some(who), Some(Rfc3339(at)), Some(note)),
            None => (None, None, None),
        };
        let name = db.user_name(&space, &report.reporter)?;
        let reporter = name.map_or_else(|| report.reporter.to_string(), |name| name.to_string());
        let (reason, message, created_at) = (report.reason, report.message.to_string(), Rfc3339(report.at));
        let number = number.to_string();
        reports.push(ReportEntry { number, reporter, message, reason, created_at, settled_by, settled_at, note });
    }
    Ok(Json(Reports { reports, next }))
}

pub(crate) async fn settle(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(number): Path<String>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<StatusCode, Problem> {
    let SettleBody { note } = json(&headers, &body)?;
    if !server::input::fits(&note, 500) {
        return Err(Problem::over_limit("a note has at most 500 characters"));
    }
    let number = number.parse().map_err(|_| Problem::not_found("there is no such report"))?;
    state.administer(&context, AdminCommand::SettleReport(context.space()?, number, note)).await?;
    Ok(StatusCode::NO_CONTENT)
}
