//! The anteroom: everything that waits, by what it waits for, and one event's whole story.

use super::message::time;
use super::shell::{NavItem, PageFrame, query as query_string, to};
use crate::caller::RequestContext;
use crate::extract::{FormFields, Path, Query};
use crate::problem::Problem;
use crate::state::{ServerState, SharedState};
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use model::{EventId, Nanos, Need};
use node::Node;
use node::commands::AdminCommand;
use node::explain::{Explanation, HeldFilter, HeldNeed, HuntState, StageExplanation, Unmet, explain, held};
use node::fetch::answers::AskedSource;
use node::node_commands::HuntNow;
use serde::Deserialize;
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

/// The name of the space that a guest is at home in.
pub(super) fn home(state: &ServerState, context: &RequestContext) -> Result<String, Problem> {
    let home = context.signed.as_ref().map(|signed| signed.home).or(context.space);
    let kept = match home {
        Some(home) => state.node.snapshot()?.kept_space(&home)?,
        None => None,
    };
    Ok(kept.map(|kept| kept.name).unwrap_or_default())
}

/// A length of time in its greatest unit.
fn span(nanos: u64) -> String {
    let seconds = nanos / Nanos::SECOND;
    let units = [(86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")];
    match units.iter().find(|(length, _)| seconds >= *length) {
        Some((length, unit)) => {
            let number = seconds / length;
            format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
        }
        None => "less than a second".to_owned(),
    }
}

/// How the search for something goes: who was asked, how often, with what answer, and when next.
fn hunt(node: &Node, hunted: Option<&HuntState>) -> Markup {
    let now = node.now().0;
    let Some(hunted) = hunted else { return html! { "only time or a person brings it" } };
    let (asked, places) = (node.asked(&hunted.group), node.places(&hunted.group));
    let never: Vec<_> = places.iter().filter(|place| asked.iter().all(|asked| asked.place != **place)).collect();
    html! {
        @match (hunted.attempts, hunted.last) {
            _ if places.is_empty() => "this node knows nobody to ask; it waits to be brought",
            (0, _) | (_, None) if !asked.is_empty() => "to be asked for again, since something new waits",
            (0, _) | (_, None) => "not asked for yet",
            (attempts, Some(last)) => { "asked for " (attempts) @if attempts == 1 { " time" } @else { " times" } ", last "
                (span(now.saturating_sub(last))) " ago" }
        }
        "; next reader "
        @if hunted.next <= now { "now" } @else { "in " (span(hunted.next - now)) }
        @if !asked.is_empty() || !never.is_empty() {
            ul { @for asked in &asked { (answer(now, asked)) } @for place in never { li { (place) ": not asked yet" } } }
        }
    }
}

fn answer(now: u64, asked: &AskedSource) -> Markup {
    html! {
        li {
            (asked.place) ", " (span(now.saturating_sub(asked.at.0))) " ago: "
            @match (asked.brought, &asked.failed) {
                (0, Some(why)) => { "no answer (" (why) ")" },
                (0, None) => "does not have it",
                (1, _) => "brought one thing",
                (many, _) => { "brought " (many) " things" },
            }
            @if let (1.., Some(why)) = (asked.brought, &asked.failed) { ", then failed (" (why) ")" }
            @if asked.unasked > 0 { ", and " (asked.unasked) " that nobody had asked for or that were not what they claimed" }
        }
    }
}

/// The page.
pub(crate) async fn page(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<WaitingQuery>,
) -> Result<Response, Problem> {
    let db = state.node.snapshot()?;
    let spaces = db.kept_spaces()?;
    let space = spaces.iter().find(|(_, kept)| kept.name == query.space).map(|(space, _)| *space);
    let word = Some(query.kind.clone()).filter(|word| !word.is_empty());
    let list = held(&db, NEEDS_MAX, &HeldFilter { word, space })?;
    let own = home(&state, &context)?;
    let body = html! {
        h1 { "Waiting" }
        p { "What arrived before what it needs waits here, is asked for, and is let in the moment the last of it comes." }
        form.row.card {
            label { "Waits for" select name="kind" { option value="" { "anything" }
                @for word in WORDS { option value=(word) selected[word == query.kind] { (word) } } } }
            label { "In" select name="space" { option value="" { "any space" }
                @for (_, kept) in &spaces { option selected[kept.name == query.space] { (kept.name) } } } }
            button { "Show" }
        }
        div #waiting data-live={ "/anteroom?" (query_string(&[("kind", &query.kind), ("space", &query.space)])) } {
            p role="status" { b { (list.held) } @if list.held == 1 { " event waits." } @else { " events wait." } }
            @if list.needs.is_empty() { p.note { "Nothing is missing." } }
            ul.plain { @for need in &list.needs { (entry(&state.node, need)) } }
            @if list.and_more { p.note { "There is more; choose what it waits for above." } }
        }
    };
    Ok(PageFrame::new("Waiting", NavItem::Waiting, &context).of(&own).respond(&body))
}

/// What a need names, with a link where there is something to see.
fn named(need: &Need) -> Markup {
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
                b { (need.waiting) @if need.and_more { "+" } } " waiting for " (named(&need.need)) br;
                @for (number, waiting) in need.first.iter().enumerate() {
                    @if number > 0 { ", " }
                    (waiting.kind.as_deref().unwrap_or("event")) " "
                    a href={ "/anteroom/" (waiting.id) } { code { (waiting.id.to_string()[..8]) "…" } }
                }
                @if need.waiting > need.first.len() as u64 { ", and more" }
                div.note { "for " (span(waited)) "; " (hunt(node, need.hunted.as_ref())) }
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
    Ok(to(&next))
}

/// The whole story of one event.
pub(crate) async fn story(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(event): Path<String>,
) -> Result<Response, Problem> {
    let id: EventId = event.parse().map_err(|_| Problem::not_found("an event has an id of 32 hexadecimal digits"))?;
    let db = state.node.snapshot()?;
    let told = explain(&db, &id)?;
    let hunted = match &told.standing {
        StageExplanation::Unknown => sought(&db, &told)?,
        _ => None,
    };
    let own = home(&state, &context)?;
    let body = html! {
        p { a href="/anteroom" { "← Everything that waits" } " · " a href={ "/inside/event/" (id) } { "Look inside" } }
        h1 { "The story of " code { (id) } }
        div #waiting data-live={ "/anteroom/" (id) } {
            (steps(&state.node, &told))
            @if hunted.is_some() { div.card { (hunt(&state.node, hunted.as_ref())) } }
        }
        form method="post" action="/anteroom" { button name="event" value=(id) { "Look at it again" } }
    };
    Ok(PageFrame::new("A story", NavItem::Waiting, &context).of(&own).respond(&body))
}

/// How something is sought that never came, as those know that wait for it.
fn sought(db: &Db<Snapshot>, told: &Explanation) -> Result<Option<HuntState>, Problem> {
    let Some(Ok(first)) = told.waiters.first.first().map(|id| id.parse::<EventId>()) else { return Ok(None) };
    let StageExplanation::Held { needs, .. } = explain(db, &first)?.standing else { return Ok(None) };
    Ok(needs.into_iter().find(|unmet| unmet.need == Need::Event(told.id)).and_then(|unmet| unmet.hunted))
}

/// The story as steps.
pub(super) fn steps(node: &Node, told: &Explanation) -> Markup {
    html! {
        ol.story {
            @if let Some(arrival) = &told.arrival {
                li { b { "It came" } " " (time(arrival.at)) ", " (arrival.through)
                    @if let Some(kind) = &arrival.kind { ", as a " b { (kind) } } ", and got the number " (arrival.number) "." }
            }
            @if let (Some(arrival), StageExplanation::Applied(applied)) = (&told.arrival, &told.standing)
                && let Some(at) = applied.at && at.saturating_sub(arrival.at) >= WAITED_NANOS {
                li { b { "It waited" } " " (span(at - arrival.at)) " for what it needs." }
            }
            (standing(node, &told.standing))
            @if told.waiters.count > 0 {
                li { b { (told.waiters.count) @if told.waiters.and_more { "+" } }
                    @if told.waiters.count == 1 { " waits for it: " } @else { " wait for it: " }
                    @for id in &told.waiters.first { a href={ "/anteroom/" (id) } { code { (id) } } " " } }
            }
        }
    }
}

fn standing(node: &Node, standing: &StageExplanation) -> Markup {
    html! {
        @match standing {
            StageExplanation::Unknown => li { "It never came here, or nothing of it was kept." },
            StageExplanation::Refused { why } => li.bad { b { "It was refused" } ": " (why) ". It will never be valid." },
            StageExplanation::Expired { at } => li { "Its wait ended " (time(*at)) " without what it needed. It may come again." },
            StageExplanation::Ready => li { "Its last need was met; it is looked at again in a moment." },
            StageExplanation::Carried { space } => li { "It is kept for others; nobody here can open it."
                @if let Some(space) = space { " Space " code { (space) } } },
            StageExplanation::Held { since, until, needs, cycles } => {
                li { b { "It waits" } " since " (time(*since)) ", at most until " (time(*until)) ", for:"
                    ul { @for need in needs { (unmet(node, need)) } } }
                @for cycle in cycles { li.bad { "These wait for each other in a circle: " (cycle.join(", ")) } }
            },
            StageExplanation::Applied(applied) => {
                li { b { "It was applied" } @if let Some(at) = applied.at { " " (time(at)) } " at position " (applied.position)
                    @if applied.counts { ", and counts." } @else { ", but does not count: its right ended or was never there." } }
                li { "Its content (" (applied.content.bytes) " bytes) is " b { (applied.content.state) }
                    @if let Some(by) = &applied.content.deleted_by { ", by " code { (by) } }
                    @if let Some(since) = applied.content.missing_since { ", missing since " (time(since)) } "."
                    @if applied.content.missing_since.is_some() {
                        div.note { (hunt(node, applied.content.hunted.as_ref())) }
                    } }
            },
        }
    }
}

fn unmet(node: &Node, need: &Unmet) -> Markup {
    html! {
        li { (named(&need.need)) " " div.note { "since " (time(need.since)) "; " (hunt(node, need.hunted.as_ref())) }
            @if !need.needs.is_empty() { ul { @for inner in &need.needs { (unmet(node, inner)) } } }
        }
    }
}
