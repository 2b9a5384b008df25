//! A conversation: its messages, saying something, reading on.

use crate::article::{HtmlFormat, article_of};
use crate::html_messages::HtmlMessages;
use crate::markdown;
use crate::names::split_names;
use crate::shell::{NavItem, PageFrame, redirect_to, respond};
use crate::summaries::{message_summary, thread_title};
use axum::extract::State;
use axum::response::Response;
use engine::access::Action;
use engine::rows::ThreadField;
use http::StatusCode;
use maud::{Markup, PreEscaped, html};
use model::{EventId, FileId};
use node::commands::{self, CommandResult, NameOrId, NewMessage, ThreadChange, UserCommand};
use queries::messages::{MessageRange, MessageReader};
use queries::names::parse_name;
use queries::shapes::Thread;
use serde::Deserialize;
use serde_json::Value;
use server::context::RequestContext;
use server::extract::{FormFields, Path, Query};
use server::input::{check_participants, fits};
use server::problem::Problem;
use server::reader::{with_message_reader, with_thread_reader};
use server::secrets::random_bytes;
use server::state::{ServerState, SharedState};
use store::tables::TableReads;

/// Messages on one page.
const PAGE: usize = 50;
/// Pinned messages that are shown, of how many that are looked at.
const PINS_SHOWN: usize = 5;
const PINS_LOOKED_AT: usize = 20;
/// Where they go. What people write is escaped, so it cannot be this.
const MESSAGES: &str = "<!--messages-->";

/// Which part of a conversation.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PartQuery {
    before: Option<String>,
    after: Option<String>,
    around: Option<String>,
}

impl PartQuery {
    fn range(&self) -> MessageRange {
        let PartQuery { before, after, around } = self.clone();
        MessageRange { limit: Some(PAGE), before, after, around, ..MessageRange::default() }
    }
}

/// The conversation.
pub(crate) async fn show(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((space, name)): Path<(String, String)>,
    Query(query): Query<PartQuery>,
) -> Result<Response, Problem> {
    with_message_reader(&state, &context, |reader| {
        let stack = HtmlMessages::new(reader.page(&name, &query.range(), &HtmlFormat { space: &space })?);
        let thread = reader.thread_head_at(stack.thread)?;
        let user = context.caller.user.as_deref().unwrap_or_default();
        let may_change = reader.viewer.may_change_by(&thread.author);
        let marked = reader.renderer().marked(stack.thread)?.map(|(message, _)| message);
        let title = thread_title(&thread, user);
        let mut frame = PageFrame::new(&title, NavItem::Threads, &context).of(&space);
        frame.position = Some(reader.position()?);
        frame.thread = Some(&thread.event);
        let (may_write, pinned) = (reader.viewer.may(Action::Write), pinned(reader, &thread));
        let idempotency = format!("w-{}", hex::encode(random_bytes::<16>()?));
        let (space, title, thread, stack) = (space.as_str(), title.as_str(), &thread, &stack);
        let shown = Conversation { space, title, thread, stack, marked, may_change, may_write, idempotency, pinned };
        let page = frame.page(&shown.markup(&query)).into_string();
        let (before, after) = page.split_once(MESSAGES).unwrap_or((&page, ""));
        Ok(respond(StatusCode::OK, stack.between(before, after)))
    })
}

/// How the pinned messages begin that the reader may see, the latest first: they were pinned at the end.
fn pinned<V: TableReads>(reader: &MessageReader<'_, V>, thread: &Thread) -> Vec<(String, String)> {
    let glimpsed = |pin: &String| {
        let message = reader.message_unless_blocked(pin).ok().flatten().filter(|message| !message.deleted)?;
        Some((message.event.clone(), message_summary(&message)))
    };
    thread.pins.iter().rev().take(PINS_LOOKED_AT).filter_map(glimpsed).take(PINS_SHOWN).collect()
}

/// A conversation as somebody sees it.
struct Conversation<'a> {
    space: &'a str,
    title: &'a str,
    thread: &'a Thread,
    stack: &'a HtmlMessages,
    /// How far they have read.
    marked: Option<EventId>,
    may_change: bool,
    may_write: bool,
    /// What makes a form that is sent twice say something once.
    idempotency: String,
    /// Messages that were pinned, with how each begins.
    pinned: Vec<(String, String)>,
}

impl Conversation<'_> {
    fn markup(&self, query: &PartQuery) -> Markup {
        let Conversation { space, title, thread, stack, marked, may_change, may_write, idempotency, pinned } = self;
        let own = format!("/s/{space}/t/{}", thread.event);
        let is_latest =
            query.before.is_none() && query.around.is_none() && (query.after.is_none() || !stack.is_full(PAGE));
        html! {
            div.talk {
                header.about {
                    a.back href={ "/s/" (space) } aria-label="All threads" { "←" }
                    h1 { @if thread.private { span.lock title="Only its participants see it" { "🔒 " } } (title) }
                    details.menu {
                        summary aria-label="About this thread" { "⋯" }
                        (about(&own, thread, *may_change))
                    }
                }
                @if !pinned.is_empty() {
                    ul.pins.plain aria-label="Pinned" { @for (pin, glimpse) in pinned {
                        li { "📌 " a href={ "/s/" (space) "/m/" (pin) } { (glimpse) } }
                    } }
                }
                div #messages role="log" aria-live="polite" aria-label="Messages" data-latest=[is_latest.then_some("1")]
                    data-read=[marked.as_ref()] {
                    @if stack.is_full(PAGE) && let Some(first) = &stack.first {
                        p.edge { a #older rel="prev" href={ (own) "?before=" (first) } { "Older messages" } }
                    }
                    @if stack.is_empty() { p #nothing.note { "No messages yet." } }
                    (PreEscaped(MESSAGES))
                    @if !is_latest && let Some(last) = &stack.last {
                        p.edge { a #newer rel="next" href={ (own) "?after=" (last) } { "Newer messages" }
                            " · " a href={ (own) "#end" } { "Latest" } }
                    }
                    span #end {}
                }
                button #below.quiet type="button" hidden { "↓ New messages" }
                p #typing.note aria-live="polite" {}
                @if !may_write { p.note { "You are a reader of this space: you can read and search, but not write." } }
                p #refused.bad role="alert" hidden {}
                form #compose method="post" action=(own) hidden[!may_write] {
                    p #answering.note hidden {}
                    input type="hidden" name="reply_to" value="";
                    input type="hidden" name="id" value=(idempotency);
                    label.sr for="text" { "Message" }
                    textarea #text name="text" rows="2" required placeholder="Write a message. Markdown, @names." {}
                    button { "Send" }
                }
                @if *may_write { ul #uploads.plain aria-live="polite" {} }
                details.attach hidden[!may_write] { summary { "Send a file" }
                    form method="post" action={ (own) "/file" } enctype="multipart/form-data" {
                        label { "Message" input name="text" maxlength="2000"; }
                        label { "File" input type="file" name="file" required; }
                        button { "Send the file" }
                    }
                }
                form #read method="post" action={ (own) "/read" } {
                    input type="hidden" name="message" value=[stack.last.as_deref()];
                    button.quiet { "Mark as read" }
                }
            }
        }
    }
}

/// What can be changed about a thread, for those who may.
fn about(own: &str, thread: &Thread, may_change: bool) -> Markup {
    html! {
        div.card {
            p.note { "Opened by " (thread.author)
                @if !thread.participants.is_empty() { "; with " (thread.participants.join(", ")) } }
            @if may_change { form method="post" action={ (own) "/change" } {
                label { "Title" input name="title" value=(thread.title) maxlength="256"; }
                @if thread.direct { p.note { "Only you two ever see this conversation." } } @else {
                    label { "Participants"
                        input name="participants" value=(thread.participants.join(" ")) placeholder="names, separated by spaces"; }
                    label.check { input type="checkbox" name="private" value="1" checked[thread.private];
                        " Only participants see it" }
                    @if thread.private { label.check { input type="checkbox" name="publish" value="1";
                        " If not: show it, with all earlier messages, to everybody in the space" } }
                }
                button name="do" value="save" { "Save" }
                details.really { summary { "Delete the thread" }
                    p { "It is deleted for everybody, with all its messages." }
                    button.bad name="do" value="delete" { "Delete it" }
                }
            } }
        }
    }
}

/// Messages alone, for the script.
pub(crate) async fn show_messages(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((space, name)): Path<(String, String)>,
    Query(query): Query<PartQuery>,
) -> Result<Response, Problem> {
    with_message_reader(&state, &context, |reader| {
        let stack = HtmlMessages::new(reader.page(&name, &query.range(), &HtmlFormat { space: &space })?);
        Ok(respond(StatusCode::OK, stack.between("", "")))
    })
}

/// Something to say.
#[derive(Debug, Deserialize)]
pub(crate) struct SayForm {
    text: String,
    #[serde(default)]
    reply_to: String,
    /// An id from the page or its script, so that sending again sends once.
    id: Option<String>,
    /// Who typed it, as the script knows: somebody else may have signed in to the same browser since.
    #[serde(rename = "as")]
    author: Option<String>,
}

/// Says something, and goes back to the conversation or, for the script, answers with the message.
pub(crate) async fn post_message(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((space, name)): Path<(String, String)>,
    headers: http::HeaderMap,
    FormFields(form): FormFields<SayForm>,
) -> Result<Response, Problem> {
    if form.author.is_some() && form.author != context.caller.user {
        let problem = Problem::conflict("somebody else has signed in to this browser since it was typed");
        return Err(Problem { action: "sign in again under the name it was typed under", ..problem });
    }
    let reply_to = Some(form.reply_to).filter(|id| !id.is_empty());
    let is_page = headers.get("x-part").is_none();
    let mut said =
        send_text(&state, context.clone(), &name, form.text.clone(), reply_to.clone(), form.id.clone()).await;
    // A page that was gone back to has the id of what was said on it before: another text has another one, also when it
    // is sent twice.
    if is_page && said.as_ref().is_err_and(|problem| problem.status == StatusCode::CONFLICT) {
        let hash = blake3::hash(format!("{:?} {reply_to:?} {}", form.id, form.text).as_bytes());
        let id = format!("w-{}", hex::encode(&hash.as_bytes()[..16]));
        said = send_text(&state, context.clone(), &name, form.text, reply_to, Some(id)).await;
    }
    let result = said?;
    if is_page {
        return Ok(redirect_to(&format!("/s/{space}/t/{name}#m-{}", result.shown)));
    }
    with_message_reader(&state, &context, |reader| {
        let message = reader.renderer().message_at(result.seq)?;
        Ok(respond(StatusCode::CREATED, article_of(reader, &space, &message)?.into_string()))
    })
}

/// Posts a text; users of the space whom it mentions are named as such.
pub(crate) async fn send_text(
    state: &ServerState,
    context: RequestContext,
    thread: &str,
    text: String,
    reply_to: Option<String>,
    id: Option<String>,
) -> Result<CommandResult, Problem> {
    send_message(state, context, thread, text, (reply_to, id), Vec::new()).await
}

/// Posts a text with a file that was uploaded for it.
pub(crate) async fn send_with_file(
    state: &ServerState,
    context: RequestContext,
    thread: &str,
    text: String,
    file: FileId,
) -> Result<CommandResult, Problem> {
    send_message(state, context, thread, text, (None, None), vec![NameOrId::Chosen(file.to_name())]).await
}

async fn send_message(
    state: &ServerState,
    context: RequestContext,
    thread: &str,
    text: String,
    (reply_to, id): (Option<String>, Option<String>),
    attachments: Vec<NameOrId>,
) -> Result<CommandResult, Problem> {
    let text = text.replace("\r\n", "\n");
    if text.trim().is_empty() {
        return Err(Problem::unprocessable("there is nothing in the message"));
    }
    let space = context.space()?;
    let db = state.node.snapshot()?;
    let mut mentions = Vec::new();
    for name in markdown::mentions(&text).into_iter().take(20) {
        if commands::names::check_name(name).is_ok() && db.user(&space, name)?.is_some_and(|user| !user.is_gone) {
            mentions.push(name.to_owned());
        }
    }
    drop(db);
    let thread: NameOrId = parse_name(thread, "thread")?;
    let new = NewMessage {
        thread: Some(thread),
        content: commands::message_content(Value::String(text), id.as_deref())?,
        chosen: id,
        reply_to: reply_to.map(|id| parse_name(&id, "message to answer")).transpose()?,
        mentions,
        attachments,
    };
    state.act(context, UserCommand::Post(new)).await
}

/// How far somebody has read.
#[derive(Debug, Deserialize)]
pub(crate) struct ReadForm {
    message: String,
}

/// Marks a conversation as read.
pub(crate) async fn mark_read(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((space, name)): Path<(String, String)>,
    FormFields(form): FormFields<ReadForm>,
) -> Result<Response, Problem> {
    let command = UserCommand::MarkRead(parse_name(&name, "thread")?, parse_name(&form.message, "message")?);
    state.act(context, command).await?;
    Ok(redirect_to(&format!("/s/{space}")))
}

/// What to change about a thread.
#[derive(Debug, Deserialize)]
pub(crate) struct ChangeForm {
    #[serde(rename = "do")]
    what: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    participants: String,
    private: Option<String>,
    /// That everybody is to see what only participants saw.
    publish: Option<String>,
}

/// Changes or deletes a thread.
pub(crate) async fn change(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((space, name)): Path<(String, String)>,
    FormFields(form): FormFields<ChangeForm>,
) -> Result<Response, Problem> {
    if form.what == "delete" {
        state.act(context, UserCommand::DeleteThread(parse_name(&name, "thread")?)).await?;
        return Ok(redirect_to(&format!("/s/{space}")));
    }
    if !fits(&form.title, server::input::TITLE_CHARS_MAX) {
        return Err(Problem::over_limit("a title has at most 256 characters"));
    }
    let before = with_thread_reader(&state, &context, |reader| Ok(reader.thread(&name)?))?;
    let mut change = ThreadChange::default();
    if form.title != before.title {
        change.fields.push((ThreadField::Title, form.title.into()));
    }
    let mut names = split_names(&form.participants);
    names.sort();
    if names != before.participants && !before.direct {
        check_participants(&names)?;
        change.participants = Some(names);
    }
    if form.private.is_some() != before.private && !before.direct {
        if before.private && form.publish.is_none() {
            let why = "everybody in the space would see this thread with all its earlier messages; if that is meant, \
                       tick \"show it to everybody\" as well";
            return Err(Problem::unprocessable(why));
        }
        change.is_private = Some(form.private.is_some());
    }
    state.act(context, UserCommand::UpdateThread(parse_name(&name, "thread")?, change)).await?;
    Ok(redirect_to(&format!("/s/{space}/t/{name}")))
}
