//! Events that wait, by what they wait for, and the history of one event.

use crate::article::time;
use crate::fetching::{domain_list, duration_text, hunt_status, relay_list};
use crate::shell::{NavItem, PageFrame, query_string, redirect_to};
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use model::{EventId, Nanos, Need};
use node::Node;
use node::commands::AdminCommand;
use node::explain::{Explanation, HeldFilter, HeldNeed, HuntState, StageExplanation, Unmet, explain, held};
use node::node_commands::HuntNow;
use serde::Deserialize;
use server::context::RequestContext;
use server::extract::{FormFields, Path, Query};
use server::problem::Problem;
use server::state::{ServerState, SharedState};
use store::Db;
use store::tables::Snapshot;

/// Needs on one page.
const NEEDS_MAX: usize = 200;
/// What takes longer than this from coming to being applied has waited.
const WAITED_NANOS: u64 = Nanos::SECOND / 2;
/// Kinds of needs that can be asked for.
const WORDS: [&str; 7] = ["event", "key", "content", "address", "git", "repository", "time"];

/// Which needs.
#[derive(Debug, Deserialize)]
pub(crate) struct WaitingQuery {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    space: String,
}

/// The name of the home space of whoever is signed in.
pub(crate) fn home_space_name(state: &ServerState, context: &RequestContext) -> Result<String, Problem> {
    let home = context.session.as_ref().map(|session| session.home).or(context.space);
    let kept = match home {
        Some(home) => state.node.snapshot()?.hosted_space(&home)?,
        None => None,
    };
    Ok(kept.map(|kept| kept.name).unwrap_or_default())
}

/// What is wrong with the clock, if anything is.
pub(crate) fn clock_notice(jump: Option<i64>, behind: Nanos) -> Markup {
    html! {
        @if let Some(by_nanos) = jump {
            p.card role="status" {
                "The system clock jumped " (if by_nanos > 0 { "forward" } else { "back" }) " by "
                (duration_text(by_nanos.unsigned_abs())) ". This node continues with the time it had, until the clock is "
                "back or has stayed there for five minutes. Check the clock of the machine."
            }
        }
        @if behind > Nanos(0) {
            p.card role="status" {
                "The system clock is " (duration_text(behind.0)) " behind the latest time at which this node has written. "
                "If the clock is right now, what was written in between has a time in the future: " code { "anteroom clock list" }
                " shows it, and " code { "anteroom clock settle" } " gives it the right time."
            }
        }
    }
}

/// The page.
pub(crate) async fn list(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<WaitingQuery>,
) -> Result<Response, Problem> {
    let db = state.node.snapshot()?;
    let spaces = db.hosted_spaces()?;
    let space = spaces.iter().find(|(_, kept)| kept.name == query.space).map(|(space, _)| *space);
    let word = Some(query.kind.clone()).filter(|word| !word.is_empty());
    let list = held(&db, NEEDS_MAX, &HeldFilter { word, space })?;
    let own = home_space_name(&state, &context)?;
    let body = html! {
        h1 { "Waiting" }
        p { "Events waiting for something that has not arrived yet. The node requests what is missing, and applies an event as soon as everything it needs is here." }
        form.row.card {
            label { "Waits for" select name="kind" { option value="" { "anything" }
                @for word in WORDS { option value=(word) selected[word == query.kind] { (word) } } } }
            label { "In" select name="space" { option value="" { "any space" }
                @for (_, kept) in &spaces { option selected[kept.name == query.space] { (kept.name) } } } }
            button { "Show" }
        }
        div #waiting data-live={ "/anteroom?" (query_string(&[("kind", &query.kind), ("space", &query.space)])) } {
            (clock_notice(state.node.clock_jump().map(|jump| jump.by_nanos), state.node.clock_behind()))
            p role="status" { b { (list.held) } @if list.held == 1 { " event waits." } @else { " events wait." } }
            @if list.needs.is_empty() { p.note { "Nothing is missing." } }
            ul.plain { @for need in &list.needs { (entry(&state.node, need)) } }
            @if list.and_more { p.note { "There are more; filter by what they wait for above." } }
            (domain_list(&state.node))
            (relay_list(&state.gather_reports.all(), state.node.now().0))
        }
    };
    Ok(PageFrame::new("Waiting", NavItem::Waiting, &context).of(&own).respond(&body))
}

/// What a need names, with a link where there is something to see.
fn need_text(need: &Need) -> Markup {
    let text = need.to_string();
    match need {
        Need::Event(id) => html! { a href={ "/anteroom/" (id) } { code { (text) } } },
        _ => html! { code { (text) } },
    }
}

fn entry(node: &Node, need: &HeldNeed) -> Markup {
    let waited = node.now().0.saturating_sub(need.since);
    html! {
        li.card.row {
            div.grow {
                b { (need.waiting) @if need.and_more { "+" } } " waiting for " (need_text(&need.need)) br;
                @for (number, waiting) in need.first.iter().enumerate() {
                    @if number > 0 { ", " }
                    (waiting.kind.as_deref().unwrap_or("event")) " "
                    a href={ "/anteroom/" (waiting.id) } { code { (waiting.id.to_string()[..8]) "…" } }
                }
                @if need.waiting > need.first.len() as u64 { ", and more" }
                div.note { "for " (duration_text(waited)) "; " (hunt_status(node, need.hunted.as_ref())) }
            }
            form method="post" action="/anteroom" {
                button name="need" value=(need.need) { "Try now" }
            }
        }
    }
}

/// What to look at again.
#[derive(Debug, Deserialize)]
pub(crate) struct RetryForm {
    need: Option<String>,
    event: Option<String>,
}

/// Asks for a need now, or looks at an event again.
pub(crate) async fn retry(
    State(state): State<SharedState>,
    context: RequestContext,
    FormFields(form): FormFields<RetryForm>,
) -> Result<Response, Problem> {
    let (request, target, next) = match (form.need, form.event) {
        (Some(need), None) => {
            let parsed: Need = need.parse().map_err(|_| Problem::unprocessable("that is not how a need is written"))?;
            (HuntNow::ForNeed(parsed), need, "/anteroom".to_owned())
        }
        (None, Some(event)) => {
            let id: EventId = event.parse().map_err(|_| Problem::not_found("there is no such event here"))?;
            (HuntNow::ForEvent(id), event, format!("/anteroom/{id}"))
        }
        _ => return Err(Problem::unprocessable("name an event or a need, one of them")),
    };
    state.administer(&context, AdminCommand::Note("retry", target)).await?;
    state.ask(request).await?;
    Ok(redirect_to(&next))
}

/// What happened to one event so far.
pub(crate) async fn explain_event(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(event): Path<String>,
) -> Result<Response, Problem> {
    let id: EventId = event.parse().map_err(|_| Problem::not_found("an event has an id of 32 hexadecimal digits"))?;
    let db = state.node.snapshot()?;
    let explanation = explain(&db, &id)?;
    let hunted = match &explanation.standing {
        StageExplanation::Unknown => hunt_of_unknown(&db, &explanation)?,
        _ => None,
    };
    let own = home_space_name(&state, &context)?;
    let body = html! {
        p { a href="/anteroom" { "← All waiting events" } " · " a href={ "/inside/event/" (id) } { "Event details" } }
        h1 { "History of event " code { (id) } }
        div #waiting data-live={ "/anteroom/" (id) } {
            (history_steps(&state.node, &explanation))
            @if hunted.is_some() { div.card { (hunt_status(&state.node, hunted.as_ref())) } }
        }
        form method="post" action="/anteroom" { button name="event" value=(id) { "Check again" } }
    };
    Ok(PageFrame::new("Event history", NavItem::Waiting, &context).of(&own).respond(&body))
}

/// How something is sought that never came, as those know that wait for it.
fn hunt_of_unknown(db: &Db<Snapshot>, explanation: &Explanation) -> Result<Option<HuntState>, Problem> {
    let Some(Ok(first)) = explanation.waiters.first.first().map(|id| id.parse::<EventId>()) else { return Ok(None) };
    let StageExplanation::Held { needs, .. } = explain(db, &first)?.standing else { return Ok(None) };
    Ok(needs.into_iter().find(|unmet| unmet.need == Need::Event(explanation.id)).and_then(|unmet| unmet.hunted))
}

/// The history of an event as steps.
pub(crate) fn history_steps(node: &Node, explanation: &Explanation) -> Markup {
    html! {
        ol.story {
            @if let Some(arrival) = &explanation.arrival {
                li { b { "Received" } " " (time(arrival.at)) ", " (arrival.through)
                    @if let Some(kind) = &arrival.kind { ", as " b { (kind) } } ", number " (arrival.number) "." }
            }
            @if let (Some(arrival), StageExplanation::Applied(applied)) = (&explanation.arrival, &explanation.standing)
                && let Some(at) = applied.at && at.saturating_sub(arrival.at) >= WAITED_NANOS {
                li { b { "Waited" } " " (duration_text(at - arrival.at)) " for what it needs." }
            }
            (stage_step(node, &explanation.standing))
            @if explanation.waiters.count > 0 {
                li { b { (explanation.waiters.count) @if explanation.waiters.and_more { "+" } }
                    @if explanation.waiters.count == 1 { " waits for it: " } @else { " wait for it: " }
                    @for id in &explanation.waiters.first { a href={ "/anteroom/" (id) } { code { (id) } } " " } }
            }
        }
    }
}

fn stage_step(node: &Node, standing: &StageExplanation) -> Markup {
    html! {
        @match standing {
            StageExplanation::Unknown => li { "This event was never received here, or nothing of it was kept." },
            StageExplanation::Refused { why } => li.bad { b { "Refused" } ": " (why) ". It will never be valid." },
            StageExplanation::Expired { at } => li { "Expired " (time(*at)) " without what it needed. It may be received again." },
            StageExplanation::Ready => li { "Everything it needs is here; it will be processed in a moment." },
            StageExplanation::Parked { why } => li { "Parked: a step of the node failed on it (" (why) "). \u{201c}Try now\u{201d} looks at it again." },
            StageExplanation::Carried { space } => li { "Carried for others; nobody on this node can decrypt it."
                @if let Some(space) = space { " Space " code { (space) } } },
            StageExplanation::Held { since, until, needs, cycles } => {
                li { b { "Waiting" } " since " (time(*since)) ", at most until " (time(*until)) ", for:"
                    ul { @for need in needs { (unmet(node, need)) } } }
                @for cycle in cycles { li.bad { "These events wait for each other: " (cycle.join(", ")) } }
            },
            StageExplanation::Applied(applied) => {
                li { b { "Applied" } @if let Some(at) = applied.at { " " (time(at)) } " at position " (applied.position)
                    @if applied.counts { ", and counts." } @else { ", but does not count: its author had no right to it, or has it no longer." } }
                li { "Its content (" (applied.content.bytes) " bytes) is " b { (applied.content.state) }
                    @if let Some(by) = &applied.content.deleted_by { ", by " code { (by) } }
                    @if let Some(since) = applied.content.missing_since { ", missing since " (time(since)) } "."
                    @if applied.content.missing_since.is_some() {
                        div.note { (hunt_status(node, applied.content.hunted.as_ref())) }
                    } }
            },
        }
    }
}

fn unmet(node: &Node, need: &Unmet) -> Markup {
    html! {
        li { (need_text(&need.need)) " " div.note { "since " (time(need.since)) "; " (hunt_status(node, need.hunted.as_ref())) }
            @if !need.needs.is_empty() { ul { @for inner in &need.needs { (unmet(node, inner)) } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_jumped_or_is_behind_is_named() {
        const HOUR: i64 = 3_600_000_000_000;
        let notice = |jump, behind| clock_notice(jump, Nanos(behind)).into_string();
        assert_eq!(notice(None, 0), "");
        assert!(notice(Some(26 * HOUR), 0).contains("jumped forward by 1 day"));
        assert!(notice(Some(-2 * HOUR), 0).contains("jumped back by 2 hours"));
        let behind = notice(None, 3 * HOUR as u64);
        assert!(behind.contains("is 3 hours behind") && behind.contains("anteroom clock settle"));
    }
}
