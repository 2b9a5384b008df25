//! Searching messages.

use crate::schemas::TimeText;
use axum::Json;
use axum::extract::State;
use queries::search::{SearchFilter, SearchPage};
use queries::shapes::Message;
use serde::{Deserialize, Serialize};
use server::context::RequestContext;
use server::extract::Query;
use server::problem::Problem;
use server::reader::search_messages;
use server::state::SharedState;
use utoipa::{IntoParams, ToSchema};

/// What to search for.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchQuery {
    /// Words that must all be there, the last one at least begun; quotation marks make phrases.
    // Not asked for by the extractor, so that whoever may not read at all hears that first.
    #[param(required = true)]
    q: Option<String>,
    /// Only in this thread.
    thread: Option<String>,
    /// Only by this user, or by this identity from elsewhere.
    author: Option<String>,
    /// Only what was written before this time, as RFC 3339 writes it.
    #[param(value_type = Option<String>, format = DateTime)]
    before: Option<TimeText>,
    /// Only what was written after this time, as RFC 3339 writes it.
    #[param(value_type = Option<String>, format = DateTime)]
    after: Option<TimeText>,
    /// At most so many.
    #[param(minimum = 1, maximum = 100, default = 50)]
    limit: Option<usize>,
    /// Where the page before ended.
    cursor: Option<String>,
}

impl SearchQuery {
    fn filter(self) -> SearchFilter {
        let SearchQuery { q, thread, author, before, after, limit, cursor } = self;
        let words = q.unwrap_or_default();
        let (before, after) = (before.map(|at| at.0), after.map(|at| at.0));
        SearchFilter { words, thread, author, before, after, limit, cursor }
    }
}

/// Messages that fit, the best first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchResults {
    messages: Vec<Message>,
    /// Where the next page begins, if there may be one.
    next: Option<String>,
}

pub(crate) async fn search(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<SearchQuery>,
) -> Result<Json<SearchResults>, Problem> {
    let SearchPage { messages, next } = search_messages(state, context, query.filter()).await?;
    Ok(Json(SearchResults { messages, next }))
}
