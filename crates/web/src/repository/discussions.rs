//! Issues, pull requests and patches of a repository, with what people say about them.

use super::changes::{show_comparison, show_patch_text};
use super::commits::commit_list;
use super::frame::{Tab, moment, person};
use super::open::OpenRepository;
use crate::markdown;
use axum::response::Response;
use git::read::{Comparison, History};
use maud::{Markup, PreEscaped, html};
use model::NostrKey;
use model::need::Oid;
use model::nostr::NostrId;
use queries::repositories::{
    Discussion, DiscussionEntry, DiscussionKind, DiscussionList, DiscussionStatus, DiscussionThread, EntryKind,
};
use serde::Deserialize;
use server::Problem;
use server::extract::{Path, Query};
use std::collections::{BTreeMap, HashMap};

/// Commits of a pull request that are listed.
const COMMITS_MAX: usize = 250;

/// Which discussions.
#[derive(Debug, Deserialize)]
pub(crate) struct DiscussionQuery {
    /// `closed` for those that are done with.
    state: Option<String>,
    cursor: Option<String>,
}

/// What a list is called and what is on it.
#[derive(Clone, Copy)]
struct Topic {
    tab: Tab,
    page: &'static str,
    title: &'static str,
    kinds: &'static [DiscussionKind],
    nothing: &'static str,
}

const ISSUES: Topic = Topic {
    tab: Tab::Issues,
    page: "issues",
    title: "Issues",
    kinds: &[DiscussionKind::Issue],
    nothing: "There are none. Issues are written with a Nostr client such as ngit.",
};
const PULL_REQUESTS: Topic = Topic {
    tab: Tab::PullRequests,
    page: "pulls",
    title: "Pull requests",
    kinds: &[DiscussionKind::PullRequest, DiscussionKind::Patch],
    nothing: "There are none. Pull requests and patches are sent with a Nostr client such as ngit.",
};

pub(crate) async fn list_issues(
    repository: OpenRepository,
    Query(query): Query<DiscussionQuery>,
) -> Result<Response, Problem> {
    list(&repository, ISSUES, &query)
}

pub(crate) async fn list_pull_requests(
    repository: OpenRepository,
    Query(query): Query<DiscussionQuery>,
) -> Result<Response, Problem> {
    list(&repository, PULL_REQUESTS, &query)
}

fn list(repository: &OpenRepository, topic: Topic, query: &DiscussionQuery) -> Result<Response, Problem> {
    let is_open = query.state.as_deref() != Some("closed");
    let after = query.cursor.as_deref().map(str::parse).transpose()?;
    let (found, names) = repository.with_reader(|reader| {
        let found = reader.discussions(&repository.shown, topic.kinds, is_open, after)?;
        let names = reader.names(found.discussions.iter().map(|discussion| discussion.author))?;
        Ok((found, names))
    })?;
    let DiscussionList { discussions, next } = found;
    let state = if is_open { "" } else { "closed" };
    let body = html! {
        p.tabs {
            a href=(repository.link(topic.page, &[])) aria-current=[is_open.then_some("page")] { "Open" } " "
            a href=(repository.link(topic.page, &[("state", "closed")])) aria-current=[(!is_open).then_some("page")] { "Closed" }
        }
        @if discussions.is_empty() { p.note { (topic.nothing) } }
        ul.plain { @for discussion in &discussions { (list_entry(repository, topic, discussion, &names)) } }
        @if let Some(next) = next {
            p { a href=(repository.link(topic.page, &[("state", state), ("cursor", &next.to_string())])) { "Older →" } }
        }
    };
    repository.respond(topic.tab, topic.title, &body)
}

fn list_entry(
    repository: &OpenRepository,
    topic: Topic,
    discussion: &Discussion,
    names: &BTreeMap<NostrKey, String>,
) -> Markup {
    html! {
        li.card {
            a href=(repository.link(&format!("{}/{}", topic.page, discussion.id), &[])) { b { (discussion.subject) } } " "
            (status_chip(discussion))
            @for label in &discussion.labels { span.chip { (label) } }
            div.note { @if discussion.kind == DiscussionKind::Patch { "Patch by " } (person(names, &discussion.author)) ", "
                (event_time(discussion.created_at)) }
        }
    }
}

fn event_time(seconds: u64) -> Markup {
    moment(i64::try_from(seconds).unwrap_or(-1))
}

fn status_word(kind: DiscussionKind, status: DiscussionStatus) -> &'static str {
    match (status, kind) {
        (DiscussionStatus::Open, _) => "open",
        (DiscussionStatus::Draft, _) => "draft",
        (DiscussionStatus::Closed, _) => "closed",
        (DiscussionStatus::Applied, DiscussionKind::Issue) => "resolved",
        (DiscussionStatus::Applied, DiscussionKind::PullRequest) => "merged",
        (DiscussionStatus::Applied, DiscussionKind::Patch) => "applied",
    }
}

fn status_chip(discussion: &Discussion) -> Markup {
    html! { span.chip.status { (status_word(discussion.kind, discussion.status)) } }
}

pub(crate) async fn show_issue(
    repository: OpenRepository,
    Path(parameters): Path<HashMap<String, String>>,
) -> Result<Response, Problem> {
    show(&repository, ISSUES, &parameters).await
}

pub(crate) async fn show_pull_request(
    repository: OpenRepository,
    Path(parameters): Path<HashMap<String, String>>,
) -> Result<Response, Problem> {
    show(&repository, PULL_REQUESTS, &parameters).await
}

async fn show(
    repository: &OpenRepository,
    topic: Topic,
    parameters: &HashMap<String, String>,
) -> Result<Response, Problem> {
    let not_found = || Problem::not_found("there is no such issue or pull request in this repository");
    let id: NostrId = parameters.get("id").and_then(|id| id.parse().ok()).ok_or_else(not_found)?;
    let (thread, names) = repository.with_reader(|reader| {
        let Some(thread) = reader.discussion(&repository.shown, &id)? else { return Ok((None, BTreeMap::new())) };
        let people = thread.entries.iter().map(|entry| entry.author).chain([thread.discussion.author]);
        let names = reader.names(people)?;
        Ok((Some(thread), names))
    })?;
    let thread = thread.filter(|thread| topic.kinds.contains(&thread.discussion.kind)).ok_or_else(not_found)?;
    let changes = match thread.discussion.tip {
        Some(tip) => Some(proposed(repository, tip).await?),
        None => None,
    };
    let DiscussionThread { discussion, entries, has_more } = &thread;
    let body = html! {
        h2 { (discussion.subject) " " (status_chip(discussion)) }
        @for label in &discussion.labels { span.chip { (label) } }
        article.card {
            div.note { (person(&names, &discussion.author)) ", " (event_time(discussion.created_at)) }
            @if discussion.kind == DiscussionKind::Patch { (show_patch_text(&discussion.text)) }
            @else { div.text { (PreEscaped(markdown::html_of(&discussion.text))) } }
        }
        @for entry in entries { (show_entry(discussion.kind, entry, &names)) }
        @if *has_more { p.note { "More has been said than is shown here." } }
        @if let Some(changes) = &changes { (show_proposed(repository, changes.as_ref())) }
    };
    repository.respond(topic.tab, &discussion.subject, &body)
}

fn show_entry(kind: DiscussionKind, entry: &DiscussionEntry, names: &BTreeMap<NostrKey, String>) -> Markup {
    html! {
        article.card id=(format!("e-{}", entry.id)) {
            div.note {
                (person(names, &entry.author)) ", " (event_time(entry.at))
                @match entry.kind {
                    EntryKind::Comment => {},
                    EntryKind::Status(status) => { ": " b { (status_word(kind, status)) } },
                    EntryKind::NewVersion(tip) => { ": a new version, " code { (hex::encode(&tip[..5])) } },
                    EntryKind::Patch => ": one more patch",
                }
            }
            @if entry.kind == EntryKind::Patch { (show_patch_text(&entry.text)) }
            @else if !entry.text.is_empty() { div.text { (PreEscaped(markdown::html_of(&entry.text))) } }
        }
    }
}

/// What a pull request would bring.
struct Proposed {
    history: History,
    comparison: Comparison,
}

/// Compares the commit of a pull request with the default branch; nothing, if its commit is not here.
async fn proposed(repository: &OpenRepository, tip: Oid) -> Result<Option<Proposed>, Problem> {
    let owner = repository.shown.owner;
    if !repository.read(move |store| store.is_reached(&owner, &tip)).await? {
        return Ok(None);
    }
    let head = repository.revision(None).await?.map(|revision| revision.commit);
    let read = repository.read(move |store| {
        let base = match head {
            Some(head) => store.merge_base(&head, &tip)?,
            None => None,
        };
        let history = store.commits_since(base.as_ref(), &tip, COMMITS_MAX)?;
        Ok(Proposed { history, comparison: store.compare(base.as_ref(), &tip)? })
    });
    read.await.map(Some)
}

fn show_proposed(repository: &OpenRepository, proposed: Option<&Proposed>) -> Markup {
    let Some(Proposed { history: History { commits, has_more }, comparison }) = proposed else {
        return html! { p.note role="status" { "The commit of this pull request is not here." } };
    };
    html! {
        h2 { "Commits" }
        @if commits.is_empty() { p.note { "All of its commits are in the default branch." } }
        (commit_list(repository, commits))
        @if *has_more { p.note { "There are more." } }
        @if !commits.is_empty() { (show_comparison(comparison)) }
    }
}
