//! The history of a repository, its branches and tags, and single commits.

use super::changes::show_comparison;
use super::frame::{Tab, moment};
use super::open::{BRANCHES, OpenRepository, Revision, TAGS, parse_oid, short_name};
use axum::response::Response;
use git::read::{Commit, History};
use maud::{Markup, html};
use serde::Deserialize;
use server::Problem;
use server::extract::{Path, Query};
use std::collections::HashMap;

/// Commits on one page.
const PAGE_COMMITS: usize = 50;
/// The last commit that pages go to, counted from the latest.
const SKIPPED_MAX: usize = 100_000;
/// Branches or tags on one page.
const REFS_MAX: usize = 1000;
/// How much of the first line of a message is its title.
const TITLE_CHARS_MAX: usize = 250;
/// How much of a message is shown.
const MESSAGE_CHARS_MAX: usize = 20_000;

/// Which commits.
#[derive(Debug, Deserialize)]
pub(crate) struct HistoryQuery {
    at: Option<String>,
    #[serde(default)]
    path: String,
    #[serde(default)]
    skip: usize,
}

/// The commits of a branch, a tag or a path.
pub(crate) async fn list(repository: OpenRepository, Query(query): Query<HistoryQuery>) -> Result<Response, Problem> {
    if query.skip > SKIPPED_MAX {
        return Err(Problem::unprocessable(
            "pages do not go back that far; clone the repository to look at older commits",
        ));
    }
    let revision = repository.need_revision(query.at.as_deref()).await?;
    let (from, path, skip) = (revision.commit, query.path.trim_matches('/').to_owned(), query.skip);
    let asked = path.clone();
    let read = repository.read(move |store| store.history(&from, &asked, skip, PAGE_COMMITS)).await?;
    let History { commits, has_more } = read;
    let next = skip + commits.len();
    let page = |skip: usize| {
        let skip = if skip == 0 { String::new() } else { skip.to_string() };
        repository.link("commits", &[("at", &revision.name), ("path", &path), ("skip", &skip)])
    };
    let body = html! {
        (repository.choose_revision("commits", &path, &revision))
        @if !path.is_empty() { p { "Commits that changed " code { (path) } } }
        @if commits.is_empty() { p.note { "There are no commits here." } }
        (commit_list(&repository, &commits))
        p.row {
            @if skip > 0 { a href=(page(skip.saturating_sub(PAGE_COMMITS))) { "← Newer" } }
            @if has_more && next > skip && next <= SKIPPED_MAX { a href=(page(next)) { "Older →" } }
        }
    };
    repository.respond(Tab::Commits, "Commits", &body)
}

/// The first line of a message; there may be none.
fn title_of(message: &str) -> &str {
    let line = message.lines().next().map(str::trim).filter(|line| !line.is_empty()).unwrap_or("(without a message)");
    line.char_indices().nth(TITLE_CHARS_MAX).map_or(line, |(end, _)| &line[..end])
}

/// Commits, each with a link.
pub(super) fn commit_list(repository: &OpenRepository, commits: &[Commit]) -> Markup {
    html! {
        ul.plain.commits {
            @for commit in commits {
                @let oid = hex::encode(commit.oid);
                li {
                    a href=(repository.link(&format!("commit/{oid}"), &[])) { (title_of(&commit.message)) }
                    div.note { code { (oid[..10]) } " · " (commit.author) ", " (moment(commit.authored_at)) }
                }
            }
        }
    }
}

/// One commit, with what it changes.
pub(crate) async fn show(
    repository: OpenRepository,
    Path(parameters): Path<HashMap<String, String>>,
) -> Result<Response, Problem> {
    let revision = named_commit(&repository, &parameters).await?;
    let oid = revision.commit;
    let read = repository.read(move |store| {
        let Some(commit) = store.read_commit(&oid)? else { return Ok(None) };
        let comparison = store.compare(commit.parents.first(), &oid)?;
        Ok(Some((commit, comparison)))
    });
    let (commit, comparison) = read.await?.ok_or_else(no_commit)?;
    let id = hex::encode(commit.oid);
    let title = title_of(&commit.message);
    let message: String = commit.message.chars().take(MESSAGE_CHARS_MAX).collect();
    let rest = message.strip_prefix(title).unwrap_or(&message).trim();
    let body = html! {
        h2 { (title) }
        @if !rest.is_empty() { pre.message { (rest) } }
        @if message.len() < commit.message.len() { p.note { "The message is longer; this is its beginning." } }
        dl {
            dt { "Commit" } dd { code { (id) } }
            dt { "Author" } dd { (commit.author) ", " (moment(commit.authored_at)) }
            @if commit.committer != commit.author { dt { "Committer" } dd { (commit.committer) ", " (moment(commit.committed_at)) } }
            @for parent in &commit.parents {
                @let parent = hex::encode(parent);
                dt { "Parent" } dd { a href=(repository.link(&format!("commit/{parent}"), &[])) { code { (parent[..10]) } } }
            }
        }
        p {
            a href=(repository.link("files", &[("at", &id)])) { "Files of this commit" } " · "
            a href=(repository.link(&format!("commit/{id}/patch"), &[])) { "As a patch" }
        }
        @if commit.parents.len() > 1 { p.note { "A merge: what differs from its first parent is shown." } }
        (show_comparison(&comparison))
    };
    repository.respond(Tab::Commits, title, &body)
}

pub(super) fn no_commit() -> Problem {
    Problem::not_found("there is no such commit in this repository")
}

/// The commit that a path names, which is one that this repository reaches.
pub(super) async fn named_commit(
    repository: &OpenRepository,
    parameters: &HashMap<String, String>,
) -> Result<Revision, Problem> {
    let named = parameters.get("commit").filter(|named| parse_oid(named).is_some()).ok_or_else(no_commit)?;
    repository.need_revision(Some(named)).await
}

/// Branches and tags.
pub(crate) async fn list_branches(repository: OpenRepository) -> Result<Response, Problem> {
    let of = |beginning: &'static str| repository.refs.iter().filter(move |(name, _)| name.starts_with(beginning));
    let head = repository.head.as_deref();
    let body = html! {
        @for (title, beginning) in [("Branches", BRANCHES), ("Tags", TAGS)] {
            @let count = of(beginning).count();
            h2 { (title) }
            @if count == 0 { p.note { "There are none." } }
            ul.plain {
                @for (name, oid) in of(beginning).take(REFS_MAX) {
                    li.row {
                        a.grow href=(repository.link("files", &[("at", name)])) { (short_name(name)) }
                        @if head == Some(name.as_str()) { span.chip { "default" } }
                        code { (hex::encode(&oid[..5])) }
                        a href=(repository.link("commits", &[("at", name)])) { "Commits" }
                        a href=(repository.link("archive", &[("at", name)])) { "Download" }
                    }
                }
            }
            @if count > REFS_MAX { p.note { (REFS_MAX) " of " (count) " are shown." } }
        }
    };
    repository.respond(Tab::Branches, "Branches", &body)
}
