//! Searching messages: the index says which ones fit, the views say what they are and whether the caller may see them.

use crate::caller::{RequestContext, Viewer};
use crate::extract::Query;
use crate::problem::Problem;
use crate::render::{Message, Renderer};
use crate::state::SharedState;
use crate::threads::{limit, visible};
use axum::Json;
use axum::extract::State;
use engine::reads::Reads as _;
use model::{Identity, Kind, Nanos, Seq};
use node::commands;
use node::search::{SearchError, SearchService};
use search::{IndexError, REACH_MAX};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::Db;
use store::tables::TableReads;
use utoipa::{IntoParams, ToSchema};

/// Messages on one page.
const PAGE_MAX: usize = 100;
/// Hits that the index is asked for at once.
const CHUNK: usize = 200;
/// Hits that one request looks at while it leaves out what the caller may not see.
const LOOKED_AT_MAX: usize = 1000;

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
    /// Only what was written before, in Unix nanoseconds.
    before: Option<u64>,
    /// Only what was written after, in Unix nanoseconds.
    after: Option<u64>,
    /// At most so many.
    #[param(minimum = 1, maximum = 100, default = 50)]
    limit: Option<usize>,
    /// Where the page before ended.
    cursor: Option<String>,
}

impl SearchQuery {
    /// These words, wherever they are.
    pub(crate) fn of(words: String, cursor: Option<String>) -> SearchQuery {
        let q = Some(words);
        SearchQuery { q, thread: None, author: None, before: None, after: None, limit: None, cursor }
    }
}

/// Messages that fit, the best first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchResults {
    pub(crate) messages: Vec<Message>,
    /// Where the next page begins, if there may be one.
    pub(crate) next: Option<String>,
}

/// Search messages
#[utoipa::path(get, path = "/v1/search", tag = "messages", params(SearchQuery), responses(
    (status = 200, body = SearchResults), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn search(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<SearchQuery>,
) -> Result<Json<SearchResults>, Problem> {
    ask(state, context, query).await.map(Json)
}

/// Asks the index, apart: it reads and decrypts files, which is nothing for a thread that serves others meanwhile.
pub(crate) async fn ask(
    state: SharedState,
    context: RequestContext,
    query: SearchQuery,
) -> Result<SearchResults, Problem> {
    let answered = tokio::task::spawn_blocking(move || answer(&state, &context, &query)).await;
    answered.map_err(|_| Problem::broken("the search ended early"))?
}

fn answer(state: &SharedState, context: &RequestContext, query: &SearchQuery) -> Result<SearchResults, Problem> {
    let db = state.node.snapshot()?;
    let viewer = context.read_as(&db, state.node.now())?;
    let searching = state.searching.get().ok_or_else(|| Problem::not_found("this node does not search"))?;
    Asking { searching, db: &db, viewer: &viewer }.page(query)
}

struct Asking<'a, V> {
    searching: &'a SearchService,
    db: &'a Db<V>,
    viewer: &'a Viewer,
}

impl<V: TableReads> Asking<'_, V> {
    fn page(&self, query: &SearchQuery) -> Result<SearchResults, Problem> {
        let most = limit(query.limit, PAGE_MAX)?;
        let not_ours = |_| Problem::bad_request("the cursor is not one that a search gave out");
        let mut skip = query
            .cursor
            .as_deref()
            .filter(|text| !text.is_empty())
            .map_or(Ok(0), str::parse::<usize>)
            .map_err(not_ours)?;
        let thread = query.thread.as_ref().map(|name| visible(self.db, self.viewer, name)).transpose()?;
        let mut asked = search::IndexQuery {
            text: query.q.clone().unwrap_or_default(),
            thread: thread.map(|(_, seq)| seq),
            author: None,
            before: query.before.map(Nanos),
            after: query.after.map(Nanos),
        };
        search::check(&asked).map_err(SearchError::from)?;
        let mut found = SearchResults { messages: Vec::new(), next: None };
        if let Some(name) = &query.author {
            // Nobody of that name has written anything.
            let Some(author) = self.author(name)? else { return Ok(found) };
            asked.author = Some(author);
        }
        let mut visible_threads = BTreeMap::new();
        let looked_at_to = skip.saturating_add(LOOKED_AT_MAX);
        loop {
            let chunk = CHUNK.min(REACH_MAX.saturating_sub(skip)).max(1);
            let hits = self.searching.search(self.viewer.no, &asked, chunk, skip)?;
            for hit in &hits {
                skip += 1;
                found.messages.extend(self.shown(hit.seq, &mut visible_threads)?);
                if found.messages.len() == most || skip >= looked_at_to {
                    found.next = (skip < REACH_MAX).then(|| skip.to_string());
                    return Ok(found);
                }
            }
            if hits.len() < chunk || skip >= REACH_MAX {
                return Ok(found);
            }
        }
    }

    fn author(&self, name: &str) -> Result<Option<Identity>, Problem> {
        match name.parse() {
            Ok(identity) => Ok(Some(identity)),
            Err(_) => Ok(self.db.user(&self.viewer.space, name)?.map(|user| user.identity)),
        }
    }

    /// A hit as the caller sees it. The index may be a moment behind, so everything is looked at again.
    fn shown(&self, seq: Seq, threads: &mut BTreeMap<Seq, bool>) -> Result<Option<Message>, Problem> {
        let Some(row) = self.db.event(seq)?.filter(|row| row.is_applied()) else { return Ok(None) };
        let is_message = |meta: &engine::rows::Meta| meta.kind == Kind::Message && meta.space == self.viewer.no;
        let Some(meta) = row.meta.filter(|meta| meta.counts && is_message(meta)) else { return Ok(None) };
        let is_visible = match threads.get(&meta.subject) {
            Some(known) => *known,
            None => self.is_visible(meta.subject)?,
        };
        threads.insert(meta.subject, is_visible);
        if !is_visible || self.viewer.blocks(&self.db.identity(meta.author)?) {
            return Ok(None);
        }
        let message = Renderer { db: self.db, viewer: self.viewer }.message_at(seq)?;
        Ok((message.state == "here" && !message.deleted).then_some(message))
    }

    fn is_visible(&self, thread: Seq) -> Result<bool, Problem> {
        let Some(meta) = self.db.event(thread)?.and_then(|row| row.meta) else { return Ok(false) };
        let sight =
            commands::thread_visibility(self.db, thread, &meta, Some(&self.viewer.caller), self.viewer.identity())?;
        Ok(self.viewer.may_see(&sight) && !sight.is_deleted)
    }
}

impl From<SearchError> for Problem {
    fn from(why: SearchError) -> Problem {
        match why {
            SearchError::Search(IndexError::Bad(why)) => Problem::bad_request(why.to_string()),
            // What is damaged is made anew as soon as it is noticed.
            SearchError::NotReady | SearchError::Search(IndexError::Damaged(_)) => {
                Problem::overloaded("the search index is being made").after(5)
            }
        }
    }
}
