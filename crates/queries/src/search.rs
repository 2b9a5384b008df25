//! Searching messages: the index says which ones fit, the views say what they are and whether the viewer sees them.

use crate::error::QueryError;
use crate::paging::page_limit;
use crate::renderer::Renderer;
use crate::shapes::Message;
use crate::viewer::Viewer;
use crate::visibility::{ThreadAccess, find_thread, thread_access};
use engine::reads::Reads as _;
use model::{Identity, Kind, Nanos, Seq};
use node::search::{SearchError, SearchService};
use search::{IndexError, REACH_MAX};
use std::collections::BTreeMap;
use store::Db;
use store::tables::TableReads;

/// Messages on one page.
const PAGE_MAX: usize = 100;
/// Hits that the index is asked for at once.
const CHUNK: usize = 200;
/// Hits that one request looks at while it leaves out what the viewer may not see.
const LOOKED_AT_MAX: usize = 1000;

/// What to search for.
#[derive(Clone, Debug, Default)]
pub struct SearchFilter {
    /// Words that must all be there, the last one at least begun; quotation marks make phrases.
    pub words: String,
    pub thread: Option<String>,
    /// The name of a user, or the public key of an identity from elsewhere.
    pub author: Option<String>,
    pub before: Option<Nanos>,
    pub after: Option<Nanos>,
    pub limit: Option<usize>,
    /// Where the page before ended.
    pub cursor: Option<String>,
}

/// Messages that fit, the best first, and where the next page begins if there may be one.
#[derive(Debug, Default)]
pub struct SearchPage {
    pub messages: Vec<Message>,
    pub next: Option<String>,
}

/// The index, a snapshot, and the viewer who searches.
#[derive(Debug)]
pub struct SearchReader<'a, V> {
    pub index: &'a SearchService,
    pub db: &'a Db<V>,
    pub viewer: &'a Viewer,
}

impl<V: TableReads> SearchReader<'_, V> {
    /// Reads and decrypts files: not for a thread that serves others meanwhile.
    pub fn page(&self, filter: &SearchFilter) -> Result<SearchPage, QueryError> {
        let most = page_limit(filter.limit, PAGE_MAX)?;
        let not_ours = |_| QueryError::malformed("the cursor is not one that a search gave out");
        let cursor = filter.cursor.as_deref().filter(|text| !text.is_empty());
        let mut skip = cursor.map_or(Ok(0), str::parse::<usize>).map_err(not_ours)?;
        let thread = filter.thread.as_ref().map(|name| find_thread(self.db, self.viewer, name)).transpose()?;
        let mut asked = search::IndexQuery {
            text: filter.words.clone(),
            thread: thread.map(|(_, seq)| seq),
            author: None,
            before: filter.before,
            after: filter.after,
        };
        search::check(&asked).map_err(SearchError::from)?;
        let mut found = SearchPage::default();
        if let Some(name) = &filter.author {
            // Nobody of that name has written anything.
            let Some(author) = self.author(name)? else { return Ok(found) };
            asked.author = Some(author);
        }
        let mut visible_threads = BTreeMap::new();
        let looked_at_to = skip.saturating_add(LOOKED_AT_MAX);
        loop {
            let chunk = CHUNK.min(REACH_MAX.saturating_sub(skip)).max(1);
            let hits = self.index.search(self.viewer.no, &asked, chunk, skip)?;
            for hit in &hits {
                let message = self.message_if_visible(hit.seq, &mut visible_threads)?;
                // The one after the last tells that there is more.
                if message.is_some() && found.messages.len() == most || skip == looked_at_to {
                    found.next = Some(skip.to_string());
                    return Ok(found);
                }
                found.messages.extend(message);
                skip += 1;
            }
            if hits.len() < chunk || skip >= REACH_MAX {
                return Ok(found);
            }
        }
    }

    fn author(&self, name: &str) -> Result<Option<Identity>, QueryError> {
        match name.parse() {
            Ok(identity) => Ok(Some(identity)),
            Err(_) => Ok(self.db.user(&self.viewer.space, name)?.map(|user| user.identity)),
        }
    }

    /// A hit as the viewer sees it. The index may be a moment behind, so everything is looked at again.
    fn message_if_visible(&self, seq: Seq, threads: &mut BTreeMap<Seq, bool>) -> Result<Option<Message>, QueryError> {
        let Some(row) = self.db.event(seq)?.filter(|row| row.is_applied()) else { return Ok(None) };
        let is_message = |meta: &engine::rows::Meta| meta.kind == Kind::Message && meta.space == self.viewer.no;
        let Some(meta) = row.meta.filter(|meta| meta.counts && is_message(meta)) else { return Ok(None) };
        let Some(thread) = meta.subject else { return Ok(None) };
        let is_visible = match threads.get(&thread) {
            Some(known) => *known,
            None => thread_access(self.db, self.viewer, thread)? == ThreadAccess::Visible,
        };
        threads.insert(thread, is_visible);
        if !is_visible || self.viewer.blocks(&self.db.identity(meta.author)?) {
            return Ok(None);
        }
        let message = Renderer { db: self.db, viewer: self.viewer }.message_at(seq)?;
        Ok((message.state == "here" && !message.deleted).then_some(message))
    }
}

impl From<SearchError> for QueryError {
    fn from(why: SearchError) -> QueryError {
        match why {
            SearchError::Search(IndexError::Bad(why)) => QueryError::malformed(why.to_string()),
            // What is damaged is made anew as soon as it is noticed.
            SearchError::NotReady | SearchError::Search(IndexError::Damaged(_)) => QueryError::NotReady,
        }
    }
}
