//! The pages of files: a gallery, and one page for each file with everything that is known of it.

use crate::article::time;
use crate::attachments::{picture_html, size};
use crate::shell::{NavItem, PageFrame, redirect_to};
use axum::extract::State;
use axum::response::Response;
use engine::access::Action;
use maud::{Markup, html};
use model::files::FileStatus;
use model::{FileId, LinkId, Nanos};
use node::commands::files::{FileChange, FileCommand, NewLink};
use queries::files::{File, FileFilter, FileVersionShown, find_file, list_files, show_file, versions};
use serde::Deserialize;
use server::context::RequestContext;
use server::extract::{FormFields, Path, Query};
use server::files::links::{LinkName, link_url};
use server::problem::Problem;
use server::secrets::random_bytes;
use server::state::{ServerState, SharedState};
use store::shared::files::{FileRecord, LinkPurpose};

/// Files on one page of the gallery.
const PAGE: usize = 60;
/// How long a link is good for that is made here: a week.
const LINK_SECONDS: u64 = 7 * 24 * 3600;

/// Which part of the gallery.
#[derive(Debug, Deserialize)]
pub(crate) struct GalleryQuery {
    /// `failed`, `archived` or `deleted`; what can be looked at, if nothing is said.
    show: Option<String>,
    cursor: Option<String>,
}

/// The statuses that a part of the gallery shows, and whether hidden files are among them.
fn statuses(show: &str) -> (Vec<FileStatus>, bool) {
    let all = FileStatus::ALL.iter().copied();
    match show {
        "failed" => (vec![FileStatus::Failed], false),
        "archived" => (vec![FileStatus::Archived], false),
        "deleted" => (all.collect(), true),
        _ => (all.filter(|status| *status != FileStatus::Archived).collect(), false),
    }
}

pub(crate) async fn list(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(space): Path<String>,
    Query(query): Query<GalleryQuery>,
) -> Result<Response, Problem> {
    let db = state.node.snapshot()?;
    let viewer = context.read_as(&*db, state.node.now())?;
    let show = query.show.as_deref().unwrap_or_default();
    let (statuses, include_deleted) = statuses(show);
    let before = parse_cursor(query.cursor.as_deref())?;
    let filter = FileFilter { statuses, derivation_type: Some(String::new()), include_deleted, before };
    let (mut files, next) = list_files(&*db, &viewer, &filter, PAGE)?;
    files.retain(|file| file.deleted_at.is_some() == include_deleted);
    let frame = PageFrame::new("Files", NavItem::Files, &context).of(&space);
    let own = format!("/s/{space}/files");
    let parts = [("", "Files"), ("failed", "Failed"), ("archived", "Archived"), ("deleted", "Deleted")];
    Ok(frame.respond(&html! {
        h1 { "Files" }
        nav.tabs aria-label="Which files" { @for (word, text) in parts {
            a href={ (own) "?show=" (word) } aria-current=[(show == word).then_some("page")] { (text) } " "
        } }
        @if viewer.may(Action::Write) && show.is_empty() { (upload_form()) }
        @if files.is_empty() { p.note { "No files here." } }
        ul.gallery.plain { @for file in &files { li { (card(&own, &space, file)) } } }
        @if let Some((at, id)) = next {
            p.edge { a rel="next" href={ (own) "?show=" (show) "&cursor=" (at.0) "-" (id) } { "Older files" } }
        }
    }))
}

/// Where files are dropped; the script makes it work.
fn upload_form() -> Markup {
    html! {
        form #upload.card hidden { label { "Upload files: choose them here, drop them on the page, or paste them"
            input type="file" name="file" multiple; } }
        ul #uploads.plain aria-live="polite" {}
        noscript { p.note { "Uploading here needs script; the form of a thread sends files without." } }
    }
}

fn parse_cursor(cursor: Option<&str>) -> Result<(Nanos, FileId), Problem> {
    let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) else {
        return Ok((Nanos(u64::MAX), FileId([0xff; 16])));
    };
    let read = || {
        let (at, id) = cursor.split_once('-')?;
        Some((Nanos(at.parse().ok()?), id.parse().ok()?))
    };
    read().ok_or_else(|| Problem::bad_request("the cursor is not one that a page of files gave"))
}

fn card(own: &str, space: &str, file: &File) -> Markup {
    let thumbnail =
        file.renditions.iter().find(|made| made.variant.starts_with("thumbnail") && made.status == "processed");
    html! {
        a.card href={ (own) "/" (file.id) } {
            @match thumbnail {
                Some(made) => { (picture_html(space, file, made)) }
                None => { span.type aria-hidden="true" { (kind(&file.media_type)) } }
            }
            span.name { (file.name) }
            span.note { (size(file.size)) @if !file.ready { " · " (file.status) } }
        }
    }
}

/// What stands in place of a picture.
fn kind(media_type: &str) -> &str {
    let family = media_type.split('/').next().unwrap_or_default();
    match family {
        "" => "file",
        "application" => media_type.rsplit('/').next().unwrap_or("file"),
        other => other,
    }
}

pub(crate) async fn show(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((space, named)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let db = state.node.snapshot()?;
    let viewer = context.read_as(&*db, state.node.now())?;
    let (id, record) = find_file(&*db, &viewer, &named)?;
    let may_change = viewer.may_change(Some(&record.owner));
    let links = if may_change { links_of(&state, &viewer, id)? } else { Vec::new() };
    let (history, kept) = (record.history.clone(), versions(&*db, &viewer, id)?);
    let file = show_file(&*db, &viewer, id, record)?;
    let frame = PageFrame::new(&file.name, NavItem::Files, &context).of(&space);
    let bytes = format!("/s/{space}/f/{}", file.id);
    let preview = file.renditions.iter().find(|made| made.variant.starts_with("preview") && made.status == "processed");
    Ok(frame.respond(&html! {
        article.about-file {
            p { a href={ "/s/" (space) "/files" } { "← All files" } }
            h1 { (file.name) }
            @if let Some(why) = &file.error { p.bad role="alert" { "It has failed: " (why) } }
            @if let Some(made) = preview { p { a.file href=(bytes) data-full={ (bytes) "?variant=full_2048" } {
                (picture_html(&space, &file, made)) } } }
            p { a href={ (bytes) "?download=1" } download=(file.name) { "Download" } " " span.note { (size(file.size)) ", " (file.media_type) } }
            dl.facts {
                dt { "Status" } dd { (file.status) @if file.ready { ", ready" } @if file.deleted_at.is_some() { ", deleted" } }
                dt { "Owner" } dd { (file.owner) }
                dt { "Uploaded" } dd { (time(file.created_at.0.0)) }
            }
            (renditions_html(&file))
            (versions_html(&bytes, &kept))
            @if may_change { (changes_html(&space, &file)) (links_html(&space, &file, &links)) }
            details { summary { "History" } ol.plain { @for step in history {
                li { (time(step.at.0)) " " (step.status) span.note { " — " (step.why) ", " (step.who) } }
            } } }
        }
    }))
}

fn renditions_html(file: &File) -> Markup {
    html! { @if !file.renditions.is_empty() { details open[!file.ready] { summary { "Previews" }
        table { thead { tr { th { "Variant" } th { "Status" } th { "Size" } th { "Attempts" } th { "Problem" } } }
            tbody { @for made in &file.renditions { tr {
                td { (made.variant) } td { (made.status) }
                td { @if let (Some(width), Some(height)) = (made.width, made.height) { (width) " × " (height) } }
                td { (made.attempts) } td { (made.error.as_deref().unwrap_or("")) }
            } } } }
    } } }
}

fn versions_html(bytes: &str, kept: &[FileVersionShown]) -> Markup {
    html! { @if kept.len() > 1 { details { summary { "Versions" } ol.plain { @for row in kept.iter().rev() {
        li { a href={ (bytes) "?download=1&version=" (row.version) } { "Version " (row.version) } " "
            span.note { (size(row.size)) ", " (row.status) ", " (time(row.created_at.0.0)) } }
    } } } } }
}

fn changes_html(space: &str, file: &File) -> Markup {
    let action = format!("/s/{space}/files/{}/change", file.id);
    html! {
        details { summary { "Change" }
            form method="post" action=(action) {
                label { "Name" input name="name" value=(file.name) maxlength="255" required; }
                button name="do" value="rename" { "Rename" }
            }
            form method="post" action=(action) {
                @if file.status == "failed" { button name="do" value="retry" { "Try again" } }
                @if file.status == "archived" { button name="do" value="unarchive" { "Bring back" } }
                @else if ["uploaded", "processed"].contains(&file.status) { button name="do" value="archive" { "Archive" } }
                @if file.deleted_at.is_some() {
                    button name="do" value="restore" { "Restore" }
                    button.bad name="do" value="purge" { "Delete for ever" }
                } @else { button.bad name="do" value="delete" { "Delete" } }
            }
        }
    }
}

/// A link that is still good, and its URL.
struct LinkRow {
    id: LinkId,
    url: String,
    until: Nanos,
}

fn links_of(state: &ServerState, viewer: &queries::Viewer, file: FileId) -> Result<Vec<LinkRow>, Problem> {
    let (db, now) = (state.node.snapshot()?, state.node.now());
    let base = state.options.public_url.as_deref().unwrap_or_default();
    let mut rows = Vec::new();
    for (id, link) in db.file_links(&viewer.space, file)? {
        if matches!(link.purpose, LinkPurpose::Download { .. }) && link.until > now {
            let url = link_url(&LinkName { space: viewer.space, file, link: id }, &link)?;
            rows.push(LinkRow { id, url: format!("{base}{url}"), until: link.until });
        }
    }
    Ok(rows)
}

fn links_html(space: &str, file: &File, links: &[LinkRow]) -> Markup {
    let action = format!("/s/{space}/files/{}/change", file.id);
    html! {
        details open[!links.is_empty()] { summary { "Share" }
            p.note { "Whoever has a link can download this file without an account, until it expires or you end it." }
            ul.plain { @for row in links { li { form method="post" action=(action) {
                label { "Link, until " (time(row.until.0)) input.link readonly value=(row.url); }
                input type="hidden" name="link" value=(row.id);
                button.bad name="do" value="end-link" { "End this link" }
            } } } }
            form method="post" action=(action) { button name="do" value="share" { "Make a link for a week" } }
        }
    }
}

/// What is to be done about a file.
#[derive(Debug, Deserialize)]
pub(crate) struct ChangeForm {
    r#do: String,
    name: Option<String>,
    link: Option<String>,
}

pub(crate) async fn change(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((space, named)): Path<(String, String)>,
    FormFields(form): FormFields<ChangeForm>,
) -> Result<Response, Problem> {
    let id = find(&state, &context, &named)?.0;
    let archived = |archived| FileChange { archived: Some(archived), ..FileChange::default() };
    let link: Option<LinkId> = form.link.and_then(|link| link.parse().ok());
    let command = match (form.r#do.as_str(), link) {
        ("rename", _) => FileCommand::Change(FileChange { name: form.name, ..FileChange::default() }),
        ("retry", _) => FileCommand::Retry,
        ("archive", _) => FileCommand::Change(archived(true)),
        ("unarchive", _) => FileCommand::Change(archived(false)),
        ("delete", _) => FileCommand::Delete,
        ("restore", _) => FileCommand::Undelete,
        ("purge", _) => FileCommand::Purge,
        ("share", _) => {
            let (purpose, seconds) = (LinkPurpose::Download { variant: None }, LINK_SECONDS);
            let link = NewLink { secret: random_bytes()?, purpose, seconds };
            FileCommand::MakeLink(LinkId(random_bytes()?), link)
        }
        ("end-link", Some(link)) => FileCommand::EndLink(link),
        _ => return Err(Problem::bad_request("the page does not know what to do; reload it")),
    };
    let is_purged = matches!(command, FileCommand::Purge);
    state.change_file(&context, id, command).await?;
    let place = if is_purged { format!("/s/{space}/files") } else { format!("/s/{space}/files/{}", id.to_name()) };
    Ok(redirect_to(&place))
}

fn find(state: &ServerState, context: &RequestContext, named: &str) -> Result<(FileId, FileRecord), Problem> {
    let db = state.node.snapshot()?;
    let viewer = context.read_as(&*db, state.node.now())?;
    Ok(find_file(&*db, &viewer, named)?)
}
