//! Looking inside: plots, keys and values, events with their author's chain, jobs, the audit log, what is set up.

mod chain;
pub(crate) mod files;

use crate::account::agent_name;
use crate::article::time;
use crate::plots::Plots;
use crate::shell::{NavItem, PageFrame, query_string};
use crate::waiting::{clock_notice, history_steps, home_space_name};
use axum::extract::State;
use axum::response::Response;
use engine::reads::Reads as _;
use maud::{Markup, html};
use model::envelope::Role;
use model::{EventId, Kind};
use serde::Deserialize;
use server::context::RequestContext;
use server::extract::{Path, Query};
use server::problem::Problem;
use server::state::SharedState;
use std::sync::Arc;

/// Rows of a list.
const ROWS: usize = 100;

fn tabs(here: &str) -> Markup {
    html! {
        nav.tabs aria-label="Inside" {
            @for (path, name) in [("/inside", "Status"), ("/inside/keys", "Explorer"), ("/inside/jobs", "Jobs"), ("/inside/files", "Files"),
                ("/inside/audit", "Audit log"), ("/inside/settings", "Set up")] {
                a href=(path) aria-current=[(path == here).then_some("page")] { (name) }
            }
        }
    }
}

/// Which span of time.
#[derive(Debug, Deserialize)]
pub(crate) struct StatusQuery {
    #[serde(default)]
    span: String,
}

/// The status page.
pub(crate) async fn show_status(
    State(state): State<SharedState>,
    State(plots): State<Arc<Plots>>,
    context: RequestContext,
    Query(query): Query<StatusQuery>,
) -> Result<Response, Problem> {
    let db = state.node.snapshot()?;
    let is_day = query.span == "day";
    let own = home_space_name(&state, &context)?;
    let body = html! {
        (tabs("/inside"))
        h1 { "Status" }
        nav aria-label="Time range" {
            @for (name, path, here) in [("The last hour", "/inside", !is_day), ("The last day", "/inside?span=day", is_day)] {
                a href=(path) aria-current=[here.then_some("true")] { (name) } " "
            }
        }
        div #waiting data-live=(if is_day { "/inside?span=day" } else { "/inside" }) {
            (clock_notice(state.node.clock_jump().map(|jump| jump.by_nanos), state.node.clock_behind()))
            (plots.draw(is_day))
            table { caption { "Events by stage" } thead { tr { th { "Stage" } th { "Events" } } }
                tbody { @for (stage, events) in db.stages()? { tr { td { (stage) } td.number { (events) } } } } }
        }
    };
    Ok(PageFrame::new("Status", NavItem::Inside, &context).of(&own).respond(&body))
}

/// Which keys.
#[derive(Debug, Deserialize)]
pub(crate) struct KeysQuery {
    #[serde(default)]
    prefix: String,
    cursor: Option<String>,
    row: Option<String>,
}

/// The explorer.
pub(crate) async fn explore_keys(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<KeysQuery>,
) -> Result<Response, Problem> {
    let db = state.node.snapshot()?;
    let own = home_space_name(&state, &context)?;
    let found = db.explore(&query.prefix, query.cursor.as_deref().filter(|cursor| !cursor.is_empty()), ROWS, None)?;
    let shown = match &query.row {
        Some(key) => db.explore_row(key, None)?,
        None => None,
    };
    let link = |key: &str| format!("/inside/keys?{}", query_string(&[("prefix", &query.prefix), ("row", key)]));
    let body = html! {
        (tabs("/inside/keys"))
        h1 { "Explorer" }
        p { "Rows of the store as they are stored: encrypted values are shown encrypted." }
        form.row.card role="search" aria-label="Keys" {
            label.grow { "Keys that begin with" input name="prefix" value=(query.prefix) placeholder="thread:"; }
            button { "Show" }
        }
        @if let Some(key) = &query.row {
            section.card { h2 { code { (key) } }
                @match &shown {
                    Some(row) => { pre { code { (serde_json::to_string_pretty(&row.value).unwrap_or_default()) } }
                        @if let Some(note) = row.note { p.note { (note) } } },
                    None => p { "This row does not exist any more." },
                }
            }
        }
        @match &found {
            Ok(page) => {
                @if page.keys.is_empty() { p.note { "There are no such keys." } }
                ul.plain.keys { @for key in &page.keys { li { a href=(link(key)) { code { (key) } } } } }
                @if let Some(next) = &page.next {
                    p { a href={ "/inside/keys?" (query_string(&[("prefix", &query.prefix), ("cursor", next)])) } { "More" } }
                }
            },
            Err(why) => p.bad role="alert" { (why) },
        }
    };
    Ok(PageFrame::new("Explorer", NavItem::Inside, &context).of(&own).respond(&body))
}

/// One event.
pub(crate) async fn show_event(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(event): Path<String>,
) -> Result<Response, Problem> {
    let unknown = || Problem::not_found("there is no such event here");
    let id: EventId = event.parse().map_err(|_| unknown())?;
    let db = state.node.snapshot()?;
    let own = home_space_name(&state, &context)?;
    let explanation = node::explain::explain(&db, &id)?;
    let seq = db.seq(&id)?;
    let envelope = match seq {
        Some(seq) => db.opened(seq)?,
        None => None,
    };
    let body = html! {
        (tabs("/inside/keys"))
        h1 { "Event " code { (id) } }
        (history_steps(&state.node, &explanation))
        @if let Some(envelope) = &envelope {
            section.card { h2 { "Envelope" }
                dl {
                    dt { "Kind" } dd { (envelope.kind) }
                    dt { "Written" } dd { (time(envelope.created_at.0)) }
                    dt { "Space" } dd { code { (envelope.space) } }
                    dt { "Author" } dd { code { (envelope.author) } }
                    dt { "Content" } dd { (envelope.content_len) " bytes, " code { (envelope.content_hash) } }
                    @for parent in &envelope.parents { dt { "After" } dd { (link(parent)) } }
                    @for reference in &envelope.references { dt { (format!("{:?}", reference.role)) } dd { (link(&reference.id)) } }
                }
            }
            (effects(&id, envelope))
            @if let Some(seq) = seq { (chain::draw(&db, seq, envelope)?) }
        }
    };
    Ok(PageFrame::new("An event", NavItem::Inside, &context).of(&own).respond(&body))
}

/// Where what an event did can be seen.
fn effects(id: &EventId, envelope: &model::Envelope) -> Markup {
    let at = |role: Role| envelope.references.iter().find(|reference| reference.role == role).map(|found| found.id);
    let (thread, target) = (at(Role::Thread), at(Role::Target));
    let prefix = match (envelope.kind, thread) {
        (Kind::Thread, _) => Some(format!("thread:{id}:")),
        (Kind::Message, Some(thread)) => Some(format!("thread:{thread}:msg:{:020}-{id}", envelope.created_at.0)),
        (_, Some(thread)) => Some(format!("thread:{thread}:")),
        _ => None,
    };
    html! {
        section.card { h2 { "Effects" }
            @if let Some(prefix) = &prefix {
                p { "Rows: " a href={ "/inside/keys?" (query_string(&[("prefix", prefix)])) } { code { (prefix) } } }
            }
            @if let Some(target) = &target { p { "Changes " (link(target)) "." } }
            @if prefix.is_none() && target.is_none() { p.note { "It changes rights, or carries a key." } }
        }
    }
}

fn link(id: &EventId) -> Markup {
    html! { a href={ "/inside/event/" (id) } { code { (id) } } }
}

/// The jobs, the latest first.
pub(crate) async fn list_jobs(State(state): State<SharedState>, context: RequestContext) -> Result<Response, Problem> {
    let own = home_space_name(&state, &context)?;
    let jobs = state.node.snapshot()?.jobs(u64::MAX, ROWS)?;
    let body = html! {
        (tabs("/inside/jobs"))
        h1 { "Jobs" }
        @if jobs.is_empty() { p.note { "No jobs yet." } }
        div #waiting.wide tabindex="0" role="region" aria-label="Jobs" data-live="/inside/jobs" {
            table { thead { tr { th { "Number" } th { "Work" } th { "Begun" } th { "Ended" } th { "Seen" } th { "Changed" }
                th { "By" } } }
                tbody { @for (number, job) in &jobs { tr {
                    td.number { (number) } td { (job.work.word()) } td { (time(job.begun_at.0)) }
                    td { @if let Some(failed) = &job.failed { span.bad { (failed) } }
                        @else if let Some(at) = job.ended_at { (time(at.0)) } @else { "running" } }
                    td.number { (job.receipt.seen) }
                    td.number { (job.receipt.rewritten + job.receipt.deleted + job.receipt.pruned) }
                    td { (job.who) }
                } } } }
        }
    };
    Ok(PageFrame::new("Jobs", NavItem::Inside, &context).of(&own).respond(&body))
}

/// Which entries.
#[derive(Debug, Deserialize)]
pub(crate) struct AuditQuery {
    before: Option<u64>,
}

/// The audit log, the latest first.
pub(crate) async fn show_audit_log(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<AuditQuery>,
) -> Result<Response, Problem> {
    let own = home_space_name(&state, &context)?;
    let entries = state.node.snapshot()?.audit_log(query.before.unwrap_or(u64::MAX), ROWS)?;
    let next = entries.last().filter(|_| entries.len() == ROWS).map(|(number, _)| *number);
    let body = html! {
        (tabs("/inside/audit"))
        h1 { "Audit log" }
        div.wide tabindex="0" role="region" aria-label="Entries" { table { thead { tr { th { "When" } th { "Who" } th { "What" } th { "To what" } } }
            tbody { @for (_, entry) in &entries { tr {
                td { (time(entry.at.0)) } td { (entry.who) } td { (entry.what) } td { (entry.target) }
            } } } } }
        @if let Some(next) = next { p { a href={ "?before=" (next) } { "Earlier" } } }
    };
    Ok(PageFrame::new("Audit log", NavItem::Inside, &context).of(&own).respond(&body))
}

/// What is set up: keys, retention, backups, quotas.
pub(crate) async fn show_settings(
    State(state): State<SharedState>,
    context: RequestContext,
) -> Result<Response, Problem> {
    let own = home_space_name(&state, &context)?;
    let db = state.node.snapshot()?;
    let spaces = db.hosted_spaces()?;
    let name_of = |space: &model::SpaceId| {
        spaces.iter().find(|(other, _)| other == space).map_or_else(|| space.to_string(), |(_, kept)| kept.name.clone())
    };
    let (keys, now) = (db.api_keys()?, state.node.now());
    let backups = state.backups.state();
    let mib = |bytes: Option<u64>| bytes.map_or("without a limit".to_owned(), |bytes| format!("{} MiB", bytes >> 20));
    let body = html! {
        (tabs("/inside/settings"))
        h1 { "Set up" }
        section.card { h2 { "Spaces" } ul { @for (id, kept) in &spaces {
            li { a href={ "/s/" (kept.name) } { (kept.name) } " " span.note { @if kept.sealed { "sealed, " } @else { "open, " }
                code { (id) } } } } } }
        section.card { h2 { "Members and their browsers" }
            @for (id, kept) in &spaces {
                @let sessions = db.sessions(id, ROWS)?;
                p { a href={ "/s/" (kept.name) "/people" } { "People of " (kept.name) } ", signed in with "
                    (sessions.len()) @if sessions.len() == 1 { " browser" } @else { " browsers" } }
                ul { @for (_, session) in &sessions {
                    li { b { (session.user) } " " span.note { (agent_name(&session.agent)) ", last used " (time(session.seen.0)) } }
                } }
            } }
        section.card { h2 { "API keys" }
            @if keys.is_empty() { p.note { "There are no keys. " code { "anteroom key create backend" } " creates one." } }
            div.wide tabindex="0" role="region" aria-label="API keys" { table { thead { tr { th { "Id" } th { "Role" } th { "Space" } th { "Label" } th { "State" } } }
                tbody { @for (id, key) in &keys { tr {
                    td { code { (hex::encode(id)) } }
                    td { (key.role().map_or("unknown", engine::access::KeyRole::word)) } td { (name_of(&key.space)) }
                    td { (key.label) } td { @if key.is_accepted(now) { "accepted" } @else { "ended" } }
                } } } } } }
        section.card { h2 { "Retention" }
            @let rules = db.retentions()?;
            @if rules.is_empty() { p.note { "Everything is kept. " code { "anteroom admin retain --age 365" } " keeps messages for a year." } }
            ul { @for (space, thread, rule) in &rules { li { (name_of(space))
                @if let Some(thread) = thread { ", thread " code { (thread) } }
                @if let Some(age) = rule.age_seconds { "; at most " (age / 86_400) " days" }
                @if let Some(count) = rule.count { "; the latest " (count) }
                @if let Some(deleted) = rule.deleted_seconds { "; deleted ones for " (deleted / 86_400) " days" } } } } }
        section.card { h2 { "Backups" }
            @match &state.options.backups {
                Some(plan) => p { "Into " code { (plan.folder.display()) } ", the latest " (plan.keep) " are kept." },
                None => p.note { "Not scheduled. Set " code { "backup_dir" } " in the configuration to schedule them." },
            }
            @if let Some(last) = &backups.last { p { "Last backup: " code { (last.file.display()) } ", " (time(last.at.0)) } }
            @if let Some((at, why)) = &backups.last_failure { p.bad { "Last failure " (time(at.0)) ": " (why) } } }
        section.card { h2 { "Quotas" } p { "A user may store at most " (mib(db.policy().user_bytes_max)) " in a space; a space "
            (mib(db.policy().space_bytes_max)) "." } }
    };
    Ok(PageFrame::new("Set up", NavItem::Inside, &context).of(&own).respond(&body))
}
