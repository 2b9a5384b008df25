//! Finding messages.

use crate::article::article_of;
use crate::shell::{NavItem, PageFrame, query_string};
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use model::Stamp;
use queries::paging::{format_cursor, parse_cursor};
use queries::shapes::Message;
use serde::Deserialize;
use server::context::RequestContext;
use server::extract::{Path, Query};
use server::problem::Problem;
use server::reader::with_message_reader;
use server::state::SharedState;

/// Mentions on one page.
const MENTIONS: usize = 50;

/// What to search for.
#[derive(Debug, Deserialize)]
pub(crate) struct FindQuery {
    #[serde(default)]
    q: String,
    #[cfg_attr(not(feature = "search"), expect(dead_code, reason = "only what searches goes on"))]
    cursor: Option<String>,
}

#[cfg(feature = "search")]
async fn find(
    state: SharedState,
    context: RequestContext,
    query: &FindQuery,
) -> Result<(Vec<Message>, Option<String>), Problem> {
    let (words, cursor) = (query.q.clone(), query.cursor.clone());
    let filter = queries::search::SearchFilter { words, cursor, ..Default::default() };
    let found = server::reader::search_messages(state, context, filter).await?;
    Ok((found.messages, found.next))
}

#[cfg(not(feature = "search"))]
async fn find(_: SharedState, _: RequestContext, _: &FindQuery) -> Result<(Vec<Message>, Option<String>), Problem> {
    Err(Problem::not_found("this node does not search"))
}

/// Messages from anywhere, each with the way to where it stands.
fn found(state: &SharedState, context: &RequestContext, space: &str, messages: &[Message]) -> Result<Markup, Problem> {
    with_message_reader(state, context, |reader| {
        Ok(html! {
            @for message in messages {
                (article_of(reader, space, message)?)
                p.jump { a href={ "/s/" (space) "/t/" (message.thread) "?around=" (message.event) "#m-" (message.event) } {
                    "Show in its conversation" } }
            }
        })
    })
}

/// Which page of mentions.
#[derive(Debug, Deserialize)]
pub(crate) struct MentionsQuery {
    cursor: Option<String>,
}

/// The messages that mention whoever is signed in, the latest first.
pub(crate) async fn list_mentions(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(space): Path<String>,
    Query(query): Query<MentionsQuery>,
) -> Result<Response, Problem> {
    let before = parse_cursor(query.cursor.as_deref())?.unwrap_or(Stamp::LAST);
    let (messages, next) = with_message_reader(&state, &context, |reader| Ok(reader.mentions(before, MENTIONS)?))?;
    let found = found(&state, &context, &space, &messages)?;
    let body = html! {
        h1 { "Mentions" }
        @if messages.is_empty() { p.note { "Nobody has mentioned you here." } }
        (found)
        @if let Some(next) = next { p { a href={ "?cursor=" (format_cursor(next)) } { "Earlier" } } }
    };
    Ok(PageFrame::new("Mentions", NavItem::Threads, &context).of(&space).respond(&body))
}

/// The page.
pub(crate) async fn show_results(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(space): Path<String>,
    Query(query): Query<FindQuery>,
) -> Result<Response, Problem> {
    context.read_as(&*state.node.snapshot()?, state.node.now())?;
    let (messages, next) = match query.q.trim().is_empty() {
        true => (Vec::new(), None),
        false => find(state.clone(), context.clone(), &query).await?,
    };
    let found = found(&state, &context, &space, &messages)?;
    let body = html! {
        h1 { "Search" }
        form.card role="search" aria-label="Search again" {
            label { "Words" input type="search" name="q" value=(query.q) required; }
            p.note { "All words must occur, the last one at least by its beginning. Use quotation marks for phrases." }
            button { "Search" }
        }
        @if !query.q.trim().is_empty() && messages.is_empty() { p role="status" { "No messages found." } }
        (found)
        @if let Some(next) = &next { p { a href={ "?" (query_string(&[("q", &query.q), ("cursor", next)])) } { "More" } } }
    };
    Ok(PageFrame::new("Search", NavItem::Threads, &context).of(&space).respond(&body))
}
