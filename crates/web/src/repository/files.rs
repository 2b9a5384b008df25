//! Folders and files of a repository.

use super::document::{DocumentLinks, document_html};
use super::frame::{Tab, size};
use super::highlight::highlight;
use super::open::{OpenRepository, Revision, ShortPath};
use super::raw::image_type;
use crate::shell::redirect_to;
use axum::response::Response;
use git::read::{Folder, FoundPath, PathKind};
use maud::{Markup, PreEscaped, html};
use model::nostr::{ServiceName, npub};
use serde::Deserialize;
use server::Problem;
use server::extract::Query;

/// How much of a file is shown; the rest is behind a link.
const SHOWN_BYTES_MAX: usize = 512 * 1024;
/// Lines of a file that are shown.
const SHOWN_LINES_MAX: usize = 5000;
/// Names that are shown of one folder.
const ENTRIES_MAX: usize = 2000;
/// Folders on the way to a file that are links.
const STEPS_MAX: usize = 20;
/// The longest document that is shown as one.
const DOCUMENT_BYTES_MAX: usize = 256 * 1024;
/// Names of the file that introduces a folder, in the order in which they are looked for.
const INTRODUCTIONS: [&str; 4] = ["readme.md", "readme.markdown", "readme", "readme.txt"];

/// Which file of which commit.
#[derive(Debug, Deserialize)]
pub(crate) struct FileQuery {
    pub(super) at: Option<String>,
    #[serde(default)]
    pub(super) path: String,
    /// Whether a document is shown as it was written.
    plain: Option<String>,
}

impl FileQuery {
    /// The path without slashes at its ends.
    pub(super) fn clean_path(&self) -> &str {
        self.path.trim_matches('/')
    }
}

/// The page of a repository: how to clone it, its files, and what its README says.
pub(crate) async fn show_repository(short: ShortPath, repository: OpenRepository) -> Result<Response, Problem> {
    if let ShortPath(Some(path)) = short {
        return Ok(redirect_to(&path));
    }
    let Some(revision) = repository.revision(None).await? else {
        let body = html! { (clone_instructions(&repository)) (empty_note(&repository)) };
        return repository.respond(Tab::Files, "", &body);
    };
    let commit = revision.commit;
    let root = repository.read(move |store| store.find_path(&commit, "")).await?;
    let files = match root {
        Some(root) => show_folder(&repository, &revision, "", &root).await?,
        None => html! {},
    };
    let body = html! {
        (clone_instructions(&repository))
        (repository.choose_revision("files", "", &revision))
        (files)
        p { a href=(repository.link("archive", &[("at", &revision.name)])) { "Download all files (.tar.gz)" } }
    };
    repository.respond(Tab::Files, "", &body)
}

/// A repository without anything to show.
fn empty_note(repository: &OpenRepository) -> Markup {
    html! {
        section.card role="status" {
            @if repository.shown.card.is_none() {
                p { b { "This repository has been announced, and waits for its git data." } }
                p { "It is shown as soon as somebody pushes what its state says, or this node has fetched it from the other "
                    "servers that its announcement names." }
            } @else {
                p { "This repository has no branch yet." }
            }
        }
    }
}

/// How to get a copy.
fn clone_instructions(repository: &OpenRepository) -> Markup {
    let shown = &repository.shown;
    let own = repository.state.node.snapshot().ok().and_then(|db| db.policy().service);
    let is_own = |url: &&String| own.is_some() && ServiceName::of_url(url) == own;
    let is_this = |url: &&String| is_own(url) && url.ends_with(&repository.base) && is_plain_address(url);
    let elsewhere = || shown.clones.iter().find(|url| shown.is_mirror && is_plain_address(url));
    let address = shown.clones.iter().find(is_this).or_else(elsewhere);
    let relay = shown.relays.iter().find(is_own).or(shown.relays.first());
    html! {
        @if let Some(address) = address {
            section.card aria-label="Clone" {
                label { "Clone with git" input.link readonly value={ "git clone " (address) }; }
                label { "Clone with ngit, which also takes pull requests"
                    input.link readonly value={ "git clone " (nostr_address(repository, relay)) }; }
                @if !shown.links.is_empty() {
                    p.note { "See also: " @for link in &shown.links {
                        @if link.starts_with("https://") || link.starts_with("http://") { a href=(link) rel="nofollow noopener" { (link) } } @else { (link) } " " } }
                }
            }
        }
    }
}

/// Whether an address can be copied into a shell as it is: whoever announces a repository writes what they like.
fn is_plain_address(url: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":/.-_~%[]".contains(&byte);
    (url.starts_with("https://") || url.starts_with("http://")) && url.bytes().all(is_plain)
}

/// The address of a repository for clients that know Nostr, with a relay where its events are.
fn nostr_address(repository: &OpenRepository, relay: Option<&String>) -> String {
    let identifier = crate::shell::percent_encode(&repository.shown.identifier);
    // A relay is written without its scheme if that is the usual one.
    let relay = relay.map(|relay| match relay.strip_prefix("wss://") {
        Some(host) => crate::shell::percent_encode(host.trim_end_matches('/')),
        None => crate::shell::percent_encode(relay),
    });
    let relay = relay.map(|relay| format!("/{relay}")).unwrap_or_default();
    format!("nostr://{}{relay}/{identifier}", npub(&repository.shown.owner))
}

/// A folder or a file.
pub(crate) async fn show(repository: OpenRepository, Query(query): Query<FileQuery>) -> Result<Response, Problem> {
    let revision = repository.need_revision(query.at.as_deref()).await?;
    let (path, commit) = (query.clean_path().to_owned(), revision.commit);
    let asked = path.clone();
    let found = repository.read(move |store| store.find_path(&commit, &asked)).await?;
    let found = found.ok_or_else(|| Problem::not_found("there is no such file or folder in that commit"))?;
    let shown = match found.is_folder {
        true => show_folder(&repository, &revision, &path, &found).await?,
        false => show_file(&repository, &revision, &path, &found, query.plain.is_some()).await?,
    };
    let body = html! {
        (repository.choose_revision("files", &path, &revision))
        (steps_to(&repository, &revision, &path))
        (shown)
    };
    let title = if path.is_empty() { "Files" } else { path.rsplit('/').next().unwrap_or_default() };
    repository.respond(Tab::Files, title, &body)
}

/// The folders that lead to a path, each a link.
fn steps_to(repository: &OpenRepository, revision: &Revision, path: &str) -> Markup {
    let count = path.matches('/').count();
    let ends = path.match_indices('/').map(|(at, _)| at).skip(count.saturating_sub(STEPS_MAX));
    html! {
        p.path {
            a href=(repository.link("files", &[("at", &revision.name)])) { (repository.name()) }
            @if count > STEPS_MAX { " / …" }
            @for end in ends {
                " / " a href=(repository.link("files", &[("at", &revision.name), ("path", &path[..end])])) {
                    (path[..end].rsplit('/').next().unwrap_or_default())
                }
            }
            @if !path.is_empty() { " / " b { (path.rsplit('/').next().unwrap_or_default()) } }
        }
    }
}

fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The names in a folder, and the document that introduces it.
async fn show_folder(
    repository: &OpenRepository,
    revision: &Revision,
    path: &str,
    found: &FoundPath,
) -> Result<Markup, Problem> {
    let tree = found.oid;
    let folder = repository.read(move |store| store.read_folder(&tree)).await?;
    let introduction = show_introduction(repository, revision, path, &folder).await?;
    Ok(html! {
        div.wide { table.files {
            thead { tr { th { "Name" } th.number { "Size" } } }
            tbody {
                @if !path.is_empty() {
                    @let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
                    tr { td { a href=(repository.link("files", &[("at", &revision.name), ("path", parent)])) { ".." } } td {} }
                }
                @for entry in folder.entries.iter().take(ENTRIES_MAX) {
                    @let full = joined(path, &entry.name);
                    tr {
                        td {
                            @if entry.name.contains(['\n', char::REPLACEMENT_CHARACTER]) {
                                // No address leads to a name that cannot be written.
                                (entry.name)
                            } @else if entry.kind == PathKind::Submodule {
                                (entry.name) " " span.note { "at " (hex::encode(&entry.oid[..5])) " of another repository" }
                            } @else {
                                a href=(repository.link("files", &[("at", &revision.name), ("path", &full)])) {
                                    (entry.name) @if entry.kind == PathKind::Folder { "/" }
                                }
                                @if entry.kind == PathKind::Link { span.note { " (a link)" } }
                            }
                        }
                        td.number { @if let Some(bytes) = entry.bytes { (size(bytes)) } }
                    }
                }
            }
        } }
        @if folder.is_cut || folder.entries.len() > ENTRIES_MAX {
            p.note { "This folder has more than the " (folder.entries.len().min(ENTRIES_MAX)) " names that are shown." }
        }
        (introduction)
    })
}

/// The document that introduces a folder, if it has one.
async fn show_introduction(
    repository: &OpenRepository,
    revision: &Revision,
    path: &str,
    folder: &Folder,
) -> Result<Markup, Problem> {
    let is_called = |name: &str| {
        let is_file = |kind| matches!(kind, PathKind::File);
        folder.entries.iter().find(|entry| is_file(entry.kind) && entry.name.eq_ignore_ascii_case(name))
    };
    let Some(entry) = INTRODUCTIONS.into_iter().find_map(is_called) else { return Ok(html! {}) };
    let oid = entry.oid;
    let read = repository.read(move |store| store.read_file(&oid, DOCUMENT_BYTES_MAX)).await?;
    let text = read.text();
    let links = DocumentLinks { base: &repository.base, at: &revision.name, folder: path };
    Ok(html! {
        section.card aria-label=(entry.name) {
            @if is_markdown(&entry.name) { div.document { (PreEscaped(document_html(&text, &links))) } }
            @else { pre { (text) } }
            @if read.is_cut { p.note { "The text is longer; this is its beginning." } }
        }
    })
}

fn is_markdown(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with(".md") || name.ends_with(".markdown")
}

/// What a file has, as far as a page can show it.
async fn show_file(
    repository: &OpenRepository,
    revision: &Revision,
    path: &str,
    found: &FoundPath,
    is_plain: bool,
) -> Result<Markup, Problem> {
    let oid = found.oid;
    let read = repository.read(move |store| store.read_file(&oid, SHOWN_BYTES_MAX)).await?;
    let query = [("at", revision.name.as_str()), ("path", path)];
    let raw = repository.link("raw", &query);
    let shown = if let Some(_kind) = image_type(&read.bytes) {
        html! { img.picture src=(raw) alt=(path); }
    } else if is_binary(&read.bytes) {
        html! { p { "This is a binary file, which is not shown." } }
    } else if is_markdown(path) && !is_plain && read.bytes.len() <= DOCUMENT_BYTES_MAX {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let links = DocumentLinks { base: &repository.base, at: &revision.name, folder };
        html! {
            p { a href=(repository.link("files", &[query.as_slice(), &[("plain", "1")]].concat())) { "As it was written" } }
            section.card.document { (PreEscaped(document_html(&read.text(), &links))) }
        }
    } else {
        source_lines(path, &read.text())
    };
    Ok(html! {
        p.note {
            (size(found.bytes)) " · " a href=(raw) { "Raw file" } " · "
            a href=(repository.link("commits", &query)) { "History" }
        }
        (shown)
        @if read.is_cut {
            p.note { "The file is longer: its first " (size(read.bytes.len() as u64)) " of " (size(found.bytes)) " are shown. "
                a href=(raw) { "The whole file" } }
        }
    })
}

/// Whether bytes are not text, as git tells it.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(8000).any(|byte| *byte == 0)
}

/// A file with the numbers of its lines.
fn source_lines(path: &str, text: &str) -> Markup {
    let shown: String = text.split_inclusive('\n').take(SHOWN_LINES_MAX).collect();
    let lines = highlight(path, &shown);
    html! {
        div.wide { table.source { tbody {
            @for (index, line) in lines.iter().enumerate() {
                @let number = index + 1;
                tr #{ "L" (number) } { td.at { a href={ "#L" (number) } data-line=(number) aria-label={ "Line " (number) } {} } td { (PreEscaped(line)) } }
            }
        } } }
        @if text.lines().nth(SHOWN_LINES_MAX).is_some() { p.note { "The first " (SHOWN_LINES_MAX) " lines are shown." } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_a_shell_leaves_alone_are_to_be_copied() {
        for (url, is_plain) in [
            ("https://a.example:8443/npub1x/a%20b.git", true),
            ("http://[::1]:7117/npub1x/tool.git", true),
            ("https://a.example/$(id).git", false),
            ("https://a.example/x.git; id", false),
            ("https://a.example/`id`", false),
            ("--upload-pack=id", false),
            ("ext::sh -c id", false),
            ("", false),
        ] {
            assert_eq!(is_plain_address(url), is_plain, "{url}");
        }
    }
}
