//! The repositories of this node.

use super::frame::{moment, person};
use super::open::{repository_path, service};
use crate::shell::{NavItem, PageFrame};
use crate::waiting::home_space_name;
use axum::extract::State;
use axum::response::Response;
use maud::html;
use queries::repositories::RepositoryReader;
use serde::Deserialize;
use server::Problem;
use server::context::RequestContext;
use server::extract::Query;
use server::state::SharedState;

/// Repositories on one page.
const PAGE_REPOSITORIES: usize = 50;

/// Which part of the list.
#[derive(Debug, Deserialize)]
pub(crate) struct RepositoriesQuery {
    cursor: Option<String>,
}

/// All repositories, those that were announced last first.
pub(crate) async fn list(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<RepositoriesQuery>,
) -> Result<Response, Problem> {
    let db = state.node.snapshot()?;
    let reader = RepositoryReader { db: &*db, access: service(&state)?.access(), now: state.node.now() };
    let after = query.cursor.as_deref().map(str::parse).transpose()?;
    let (cards, next) = reader.list(after, PAGE_REPOSITORIES)?;
    let names = reader.names(cards.iter().map(|card| card.owner))?;
    let own = home_space_name(&state, &context)?;
    let body = html! {
        h1 { "Repositories" }
        @if cards.is_empty() && query.cursor.is_none() {
            p { "No repository has been pushed to this node yet. A repository is announced with a client such as "
                code { "ngit" } ", and then pushed with git." }
        }
        ul.plain {
            @for card in &cards {
                li.card {
                    h2 { a href=(repository_path(&card.owner, &card.identifier)) { (card.name) } }
                    @if !card.description.is_empty() { p { (card.description) } }
                    @for topic in &card.topics { span.chip { (topic) } }
                    div.note { (person(&names, &card.owner)) " · announced "
                        (moment(i64::try_from(card.announced_at).unwrap_or(-1))) }
                }
            }
        }
        @if let Some(next) = next { p { a href={ "/repositories?cursor=" (next) } { "Older →" } } }
    };
    Ok(PageFrame::new("Repositories", NavItem::Code, &context).of(&own).respond(&body))
}
