//! The threads of a space, with what is unread, and opening another.

use crate::article::{short, text_of, time};
use crate::names::split_names;
use crate::shell::{NavItem, PageFrame, redirect_to};
use crate::summaries::{glimpse, thread_title};
use crate::thread;
use axum::extract::State;
use axum::response::Response;
use engine::access::Action;
use http::HeaderMap;
use maud::{Markup, html};
use node::commands::{NewThread, UserCommand};
use queries::QueryError;
use queries::shapes::Thread;
use queries::threads::{ThreadFilter, ThreadReader};
use serde::Deserialize;
use serde_json::Map;
use server::context::RequestContext;
use server::extract::{FormFields, Path, Query};
use server::input::{check_participants, check_title};
use server::problem::Problem;
use server::state::{ServerState, SharedState};
use store::Db;
use store::tables::Snapshot;

/// Up to here unread messages of a thread are counted.
const UNREAD_MAX: u64 = 1000;
/// In how many spaces the operator's unread messages are counted.
const COUNTED_MAX: usize = 50;

/// Which page of the list, and of which threads.
#[derive(Debug, Deserialize)]
pub(crate) struct ListQuery {
    cursor: Option<String>,
    title: Option<String>,
}

fn count(unread: u64) -> Markup {
    html! { @if unread > 0 { " " span.unread {
    // No more than so many are counted.
    (unread) @if unread >= UNREAD_MAX { "+" } span.sr { " unread" } } } }
}

/// The spaces of this node, with what the operator has not read in the others; those of this one are shown with its threads.
fn spaces(state: &ServerState, db: &Db<Snapshot>, context: &RequestContext) -> Result<Vec<(String, u64)>, Problem> {
    let mut spaces = Vec::new();
    for (space, kept) in db.hosted_spaces()? {
        let there = RequestContext { space: Some(space), ..context.clone() };
        let unread = match there.read_as(db, state.node.now()) {
            _ if Some(space) == context.space || spaces.len() >= COUNTED_MAX => 0,
            Ok(viewer) => ThreadReader { db, viewer: &viewer }.unread()?,
            // Nothing was ever written there, or the operator was removed.
            Err(QueryError::NotFound(_) | QueryError::Denied(_)) => 0,
            Err(why) => return Err(why.into()),
        };
        spaces.push((kept.name, unread));
    }
    Ok(spaces)
}

fn entry(space: &str, thread: &Thread, reader: &str, has_blocked: bool) -> Markup {
    let unread = thread.unread.unwrap_or(0);
    html! {
        li {
            a.thread href={ "/s/" (space) "/t/" (thread.event) "#end" } data-thread=(thread.id) {
                span.title { @if thread.private { span.lock title="Only its participants see it" { "🔒 " } }
                    (thread_title(thread, reader)) }
                (count(unread))
                span.glimpse {
                    @if let Some(last) = &thread.last_message {
                        b { (short(&last.author)) ": " }
                        @if last.deleted { i { "deleted" } } @else { (glimpse(&text_of(last))) }
                    } @else if has_blocked && thread.updated_ts > thread.created_ts { i { "hidden: you blocked the author of the latest messages" } }
                    @else { "No messages yet." }
                }
                (time(thread.updated_ts))
            }
        }
    }
}

/// The list.
pub(crate) async fn list(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(space): Path<String>,
    headers: HeaderMap,
    Query(query): Query<ListQuery>,
) -> Result<Response, Problem> {
    let db = state.node.snapshot()?;
    let viewer = context.read_as(&db, state.node.now())?;
    let title = query.title.clone().filter(|title| !title.is_empty());
    let filter = ThreadFilter { title, cursor: query.cursor, ..ThreadFilter::default() };
    let threads = ThreadReader { db: &db, viewer: &viewer }.page(&filter)?;
    let reader = context.caller.user.clone().unwrap_or_default();
    let may_write = viewer.may(Action::Write);
    let is_operator = context.session.as_ref().is_some_and(|session| session.is_operator);
    // The script asks again and again, and for the threads only.
    let spaces = match is_operator && !headers.contains_key("x-part") {
        true => spaces(&state, &db, &context)?,
        false => Vec::new(),
    };
    let body = html! {
        div.row { h1 { "Threads" } a href={ "/s/" (space) "/mentions" } { "Mentions of you" } @if spaces.len() > 1 {
            nav.tabs aria-label="Spaces" { @for (name, unread) in &spaces {
                a href={ "/s/" (name) } aria-current=[(*name == space).then_some("page")] { (name) (count(*unread)) }
            } }
        } }
        @if threads.threads.is_empty() { p.note { "There are no threads yet." @if may_write { " Open the first one below." } } }
        ul #threads.plain.threads { @for thread in &threads.threads { (entry(&space, thread, &reader, !viewer.blocked.is_empty())) } }
        @if let Some(next) = &threads.next { p { a href={ "?cursor=" (next) } { "Older threads" } } }
        @if may_write { details.card open[threads.threads.is_empty()] {
            summary { "Open a new thread" }
            form method="post" {
                label { "Title" input name="title" required maxlength="256"; }
                label { "First message" textarea name="text" rows="3" {} }
                label.check { input type="checkbox" name="private" value="1"; " Only participants see it" }
                label { "Participants" input name="participants" placeholder="names, separated by spaces"; }
                p.note { "Otherwise everybody in the space sees it, whoever participates." }
                button { "Open" }
            }
        } }
    };
    let mut frame = PageFrame::new("Threads", NavItem::Threads, &context).of(&space);
    frame.position = Some(db.position()?.to_string());
    Ok(frame.respond(&body))
}

/// A thread to open.
#[derive(Debug, Deserialize)]
pub(crate) struct OpenForm {
    title: String,
    #[serde(default)]
    text: String,
    private: Option<String>,
    #[serde(default)]
    participants: String,
}

/// Opens a thread, with a first message if there is one.
pub(crate) async fn open(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(space): Path<String>,
    FormFields(form): FormFields<OpenForm>,
) -> Result<Response, Problem> {
    check_title(&form.title)?;
    let participants = split_names(&form.participants);
    check_participants(&participants)?;
    let fields = Map::from_iter([("title".to_owned(), form.title.into())]);
    let is_private = form.private.is_some();
    let new = NewThread { fields, participants, is_private, ..NewThread::default() };
    let result = state.act(context.clone(), UserCommand::OpenThread(new)).await?;
    if !form.text.trim().is_empty() {
        thread::send_text(&state, context, &result.shown.to_string(), form.text, None, None).await?;
    }
    Ok(redirect_to(&format!("/s/{space}/t/{}", result.shown)))
}
