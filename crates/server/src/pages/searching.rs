//! Finding messages.

use super::message::article;
use super::shell::{Frame, Here, query as query_string};
use crate::caller::Guest;
use crate::extract::{Path, Query};
use crate::problem::Problem;
use crate::state::Shared;
use axum::extract::State;
use axum::response::Response;
use maud::html;
use serde::Deserialize;

/// What to search for.
#[derive(Debug, Deserialize)]
pub(crate) struct FindQuery {
    #[serde(default)]
    q: String,
    cursor: Option<String>,
}

#[cfg(feature = "search")]
async fn find(
    house: Shared,
    guest: Guest,
    query: &FindQuery,
) -> Result<(Vec<crate::render::Message>, Option<String>), Problem> {
    let asked = crate::search::SearchQuery::of(query.q.clone(), query.cursor.clone());
    let found = crate::search::ask(house, guest, asked).await?;
    Ok((found.messages, found.next))
}

#[cfg(not(feature = "search"))]
async fn find(_: Shared, _: Guest, _: &FindQuery) -> Result<(Vec<crate::render::Message>, Option<String>), Problem> {
    Err(Problem::not_found("this node does not search"))
}

/// The page.
pub(crate) async fn page(
    State(house): State<Shared>,
    guest: Guest,
    Path(space): Path<String>,
    Query(query): Query<FindQuery>,
) -> Result<Response, Problem> {
    guest.seen(&*house.node.snapshot()?, house.node.now())?;
    let (messages, next) = match query.q.trim().is_empty() {
        true => (Vec::new(), None),
        false => find(house, guest.clone(), &query).await?,
    };
    let body = html! {
        h1 { "Search" }
        form.card role="search" aria-label="Search again" {
            label { "Words" input type="search" name="q" value=(query.q) required; }
            p.note { "All of them must be there, the last one at least begun; quotation marks make phrases." }
            button { "Search" }
        }
        @if !query.q.trim().is_empty() && messages.is_empty() { p role="status" { "Nothing that you may read has these words." } }
        @for message in &messages {
            (article(&space, message))
            p.jump { a href={ "/s/" (space) "/t/" (message.thread) "?around=" (message.event) "#m-" (message.event) } {
                "Show in its conversation" } }
        }
        @if let Some(next) = &next { p { a href={ "?" (query_string(&[("q", &query.q), ("cursor", next)])) } { "More" } } }
    };
    Ok(Frame::new("Search", Here::Threads, &guest).of(&space).respond(&body))
}
