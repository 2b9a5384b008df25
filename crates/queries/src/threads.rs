//! Threads as a viewer reads them: lists, one by its name, and what is unread.

use crate::error::QueryError;
use crate::paging::page_limit;
use crate::renderer::Renderer;
use crate::shapes::Thread;
use crate::viewer::Viewer;
use crate::visibility::{ThreadAccess, find_thread, thread_access};
use model::{EventId, Kind, Nanos, Seq};
use node::commands::{self, ExpectedVersion, NameOrId};
use store::Db;
use store::tables::TableReads;

/// Threads on one page.
const PAGE_MAX: usize = 200;
/// Threads whose unread messages are counted together.
const COUNTED_MAX: usize = 20;
/// Threads that one request looks at while it filters.
const LOOKED_AT_MAX: usize = 5000;

/// By which time threads are sorted, the newest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ThreadOrder {
    /// When something last happened.
    #[default]
    Updated,
    /// When they were opened.
    Created,
}

/// Which threads to list.
#[derive(Clone, Debug, Default)]
pub struct ThreadFilter {
    pub author: Option<String>,
    /// A part of the title, whatever the case.
    pub title: Option<String>,
    pub slug: Option<String>,
    pub order: ThreadOrder,
    pub limit: Option<usize>,
    /// Where the page before ended.
    pub cursor: Option<String>,
    pub include_deleted: bool,
}

impl ThreadFilter {
    /// The cursor of the page that begins after a thread.
    pub fn cursor_at(&self, thread: &Thread) -> String {
        let at = match self.order {
            ThreadOrder::Updated => thread.updated_ts,
            ThreadOrder::Created => thread.created_ts,
        };
        format!("{at}-{}", thread.event)
    }
}

/// A page of threads, and where the next one begins.
#[derive(Debug)]
pub struct ThreadPage {
    pub threads: Vec<Thread>,
    pub next: Option<String>,
}

/// A snapshot and the viewer who reads it.
#[derive(Debug)]
pub struct ThreadReader<'a, V> {
    pub db: &'a Db<V>,
    pub viewer: &'a Viewer,
}

impl<V: TableReads> ThreadReader<'_, V> {
    fn renderer(&self) -> Renderer<'_, V> {
        Renderer { db: self.db, viewer: self.viewer }
    }

    /// The thread of that name, with what is unread in it.
    pub fn thread(&self, name: &str) -> Result<Thread, QueryError> {
        self.thread_at(find_thread(self.db, self.viewer, name)?.1)
    }

    /// The same, and what it is now, so that it is changed only as it is.
    pub fn thread_and_version(&self, name: &str) -> Result<(Thread, ExpectedVersion), QueryError> {
        let seq = find_thread(self.db, self.viewer, name)?.1;
        Ok((self.thread_at(seq)?, ExpectedVersion { seq, version: commands::version_of(self.db, seq)? }))
    }

    /// The same, of a thread that the viewer was found to see.
    pub fn thread_at(&self, seq: Seq) -> Result<Thread, QueryError> {
        let found = self.db.thread(seq)?.ok_or_else(|| QueryError::not_found("there is no such thread"))?;
        self.renderer().thread(&found)
    }

    /// The threads that the viewer sees and that the filter lets through.
    pub fn page(&self, filter: &ThreadFilter) -> Result<ThreadPage, QueryError> {
        let most = page_limit(filter.limit, PAGE_MAX)?;
        let cursor = filter.cursor.as_deref().filter(|text| !text.is_empty());
        let mut cursor = cursor.map_or(Ok((Nanos(u64::MAX), Seq(u64::MAX))), |text| self.parse_cursor(text))?;
        let mut threads = Vec::new();
        let mut looked_at = 0;
        loop {
            let chunk = match filter.order {
                ThreadOrder::Updated => self.db.recent_threads(self.viewer.no, cursor, most + 1)?,
                ThreadOrder::Created => self.db.latest_threads(self.viewer.no, cursor, most + 1)?,
            };
            let is_last = chunk.len() <= most;
            for place in chunk {
                let listed = self.thread_if_listed(filter, place.1)?;
                // The one after the last tells that there is more.
                if listed.is_some() && threads.len() == most || looked_at == LOOKED_AT_MAX {
                    let next = Some(format!("{}-{}", cursor.0.0, self.db.id_of(cursor.1)?));
                    return Ok(ThreadPage { threads, next });
                }
                threads.extend(listed);
                looked_at += 1;
                cursor = place;
            }
            if is_last {
                return Ok(ThreadPage { threads, next: None });
            }
        }
    }

    /// How many messages are unread in the threads that something last happened in.
    pub fn unread(&self) -> Result<u64, QueryError> {
        let renderer = self.renderer();
        let mut unread = 0;
        for (_, seq) in self.db.recent_threads(self.viewer.no, (Nanos(u64::MAX), Seq(u64::MAX)), COUNTED_MAX)? {
            if thread_access(self.db, self.viewer, seq)? == ThreadAccess::Visible {
                unread += renderer.unread(seq)?.unwrap_or(0);
            }
        }
        Ok(unread)
    }

    /// A cursor is a time and the id of a thread of this space.
    fn parse_cursor(&self, text: &str) -> Result<(Nanos, Seq), QueryError> {
        let parse = || {
            let (at, id) = text.split_once('-')?;
            Some((Nanos(at.parse().ok()?), id.parse::<EventId>().ok()?))
        };
        let bad = || QueryError::malformed("the cursor is not one that a list of threads gave out");
        let (at, id) = parse().ok_or_else(bad)?;
        let found = commands::find(self.db, self.viewer.no, &NameOrId::Event(id), Kind::Thread)?;
        found.map(|(_, seq, _)| (at, seq)).ok_or_else(bad)
    }

    fn thread_if_listed(&self, filter: &ThreadFilter, seq: Seq) -> Result<Option<Thread>, QueryError> {
        match thread_access(self.db, self.viewer, seq)? {
            ThreadAccess::Visible => {}
            ThreadAccess::Deleted if filter.include_deleted => {}
            ThreadAccess::Hidden | ThreadAccess::Deleted => return Ok(None),
        }
        let Some(found) = self.db.thread(seq)? else { return Ok(None) };
        let thread = self.renderer().thread(&found)?;
        let fits = filter.author.as_ref().is_none_or(|author| *author == thread.author)
            && filter.slug.as_ref().is_none_or(|slug| *slug == thread.slug)
            && filter.title.as_ref().is_none_or(|part| contains_ignoring_case(&thread.title, part));
        Ok(fits.then_some(thread))
    }
}

fn contains_ignoring_case(title: &str, part: &str) -> bool {
    title.to_lowercase().contains(&part.to_lowercase())
}
