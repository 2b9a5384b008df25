//! One message: its versions and what changed between them, its answers, and everything that can be done with it.

use crate::article::{article_of, body_html, short, text_of, time};
use crate::shell::{NavItem, PageFrame, redirect_to, respond};
use axum::extract::State;
use axum::response::Response;
use engine::access::Action;
use engine::rows::ThreadField;
use http::StatusCode;
use maud::{Markup, html};
use model::Stamp;
use node::commands::{self, MessageRef, ThreadChange, UserCommand};
use node::explain::{Explanation, StageExplanation};
use queries::names::parse_name;
use queries::shapes::Message;
use serde::Deserialize;
use serde_json::Value;
use server::context::RequestContext;
use server::extract::{FormFields, Path};
use server::input::{REACTION_CHARS_MAX, fits};
use server::problem::Problem;
use server::reader::with_message_reader;
use server::state::{ServerState, SharedState};
use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// What people mostly react with.
const REACTIONS: [&str; 6] = ["👍", "❤️", "😄", "🎉", "😕", "👀"];

/// Texts whose differences are shown; longer ones are only shown.
const DIFFERENCE_BYTES_MAX: usize = 20_000;
const DIFFERENCE_TIME_MAX: Duration = Duration::from_millis(20);
/// Answers that are shown, the first.
const REPLIES_MAX: usize = 500;
/// Versions that are shown, the latest.
const VERSIONS_SHOWN: usize = 20;

/// The page.
pub(crate) async fn show(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((space, id)): Path<(String, String)>,
) -> Result<Response, Problem> {
    with_message_reader(&state, &context, |reader| {
        let seq = reader.find(None, &id)?;
        let message = reader.renderer().message_at(seq)?;
        let may_change = reader.may_change(seq)?;
        let versions = reader.history(seq)?;
        let answers = reader.replies(seq, Stamp::FIRST, REPLIES_MAX)?.0;
        let story = node::explain::explain(reader.db, &reader.event_id(seq)?)?;
        let thread = reader.thread_head(&message.thread)?;
        let (may_pin, is_pinned) = (reader.viewer.may_change_by(&thread.author), thread.pins.contains(&message.id));
        let user = context.caller.user.as_deref().unwrap_or_default();
        let (may_write, is_own) = (reader.viewer.may(Action::Write), message.author == user);
        let has_reacted = message.reactions.contains_key(user);
        let actions = MessageActions {
            space: &space,
            message: &message,
            may_change,
            may_pin,
            is_pinned,
            may_write,
            is_own,
            has_reacted,
        };
        let body = html! {
            p { a href={ "/s/" (space) "/t/" (message.thread) "?around=" (message.event) "#m-" (message.event) } {
                "← In its conversation" } }
            h1 { "A message by " (short(&message.author)) }
            (article_of(reader, &space, &message)?)
            (arrival_details(&story, &message))
            (actions.markup())
            @if versions.len() > 1 { (versions_html(&space, &versions)) }
            @if !answers.is_empty() {
                section { h2 { "Answers" } @for answer in &answers { (article_of(reader, &space, answer)?) } }
            }
        };
        Ok(PageFrame::new("A message", NavItem::Threads, &context).of(&space).respond(&body))
    })
}

/// The message alone, for the script.
pub(crate) async fn show_article(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((space, id)): Path<(String, String)>,
) -> Result<Response, Problem> {
    with_message_reader(&state, &context, |reader| {
        let message = reader.message(None, &id)?;
        Ok(respond(StatusCode::OK, article_of(reader, &space, &message)?.into_string()))
    })
}

/// How it came here, and why it may not be whole.
fn arrival_details(story: &Explanation, message: &Message) -> Markup {
    let missing = match &story.standing {
        StageExplanation::Applied(_) => message.state == "missing",
        _ => false,
    };
    html! {
        details.card open[missing] {
            summary { @if missing { "Why its content is missing" } @else { "How it arrived" } }
            @if missing {
                p { "The message has arrived, but its content, which is transferred separately, has not. This node requests it "
                    "again and again, and shows it as soon as it arrives." }
            }
            @if let Some(arrival) = &story.arrival {
                p { "Received " (time(arrival.at)) " (" (arrival.through) "), written " (time(message.ts)) "." }
            }
            p.note { "Event " code { (message.event) } }
        }
    }
}

struct MessageActions<'a> {
    space: &'a str,
    message: &'a Message,
    may_change: bool,
    may_pin: bool,
    is_pinned: bool,
    may_write: bool,
    is_own: bool,
    /// Whether the reader has reacted to it.
    has_reacted: bool,
}

impl MessageActions<'_> {
    fn to(&self, what: &str) -> String {
        format!("/s/{}/m/{}/{what}", self.space, self.message.event)
    }

    fn markup(&self) -> Markup {
        html! {
            section.card.acts {
                @if self.may_write && !self.message.deleted { form method="post" action=(self.to("react")) {
                    span.sr { "React" }
                    @for reaction in REACTIONS {
                        button.quiet name="reaction" value=(reaction) aria-label={ "React with " (reaction) } { (reaction) }
                    }
                    @if self.has_reacted { button.quiet name="reaction" value="" { "Take back" } }
                } }
                @if self.may_write && !self.message.deleted {
                form method="post" action={ "/s/" (self.space) "/t/" (self.message.thread) } {
                    input type="hidden" name="reply_to" value=(self.message.event);
                    label { "Answer" textarea name="text" rows="2" required {} }
                    button { "Send" }
                } }
                @if self.may_change && !self.message.deleted {
                    details { summary { "Edit" }
                        form method="post" action=(self.to("edit")) {
                            label { "Text" textarea name="text" rows="4" required { (text_of(self.message)) } }
                            button { "Save a new version" }
                        }
                    }
                    details { summary { "Delete" }
                        form method="post" action=(self.to("delete")) {
                            p { "Others will not see it any more. You and the admins still see its versions on this page." }
                            button.bad { "Delete it" }
                        }
                    }
                }
                @if self.may_pin && (!self.message.deleted || self.is_pinned) {
                    form method="post" action=(self.to("pin")) {
                        button.quiet { @if self.is_pinned { "Unpin" } @else { "Pin in its thread" } }
                    }
                }
                @if !self.is_own && !self.message.deleted { details { summary { "Report to the moderators" }
                    form method="post" action=(self.to("report")) {
                        label { "Why" input name="reason" maxlength="500" required; }
                        button { "Report" }
                    }
                } }
            }
        }
    }
}

/// The versions, the latest first, each with what it changed.
fn versions_html(space: &str, versions: &[Message]) -> Markup {
    html! {
        section {
            h2 { "Versions" }
            @if versions.len() > VERSIONS_SHOWN { p.note { "The latest " (VERSIONS_SHOWN) " of " (versions.len()) "." } }
            @for (number, version) in versions.iter().enumerate().rev().take(VERSIONS_SHOWN) {
                article.version {
                    header { b { "Version " (number + 1) } " by " (short(&version.author)) ", " (time(version.updated_at.0.0)) }
                    @match number.checked_sub(1).and_then(|before| versions.get(before)) {
                        Some(before) if !version.deleted => (difference_html(&text_of(before), &text_of(version))),
                        _ => div.text { (body_html(space, version)) },
                    }
                }
            }
        }
    }
}

fn difference_html(before: &str, after: &str) -> Markup {
    if before.len() + after.len() > DIFFERENCE_BYTES_MAX {
        return html! { pre { (after) } };
    }
    let diff = TextDiff::configure().timeout(DIFFERENCE_TIME_MAX).diff_words(before, after);
    html! {
        p.diff {
            @for change in diff.iter_all_changes() {
                @match change.tag() {
                    ChangeTag::Delete => del { (change.value()) },
                    ChangeTag::Insert => ins { (change.value()) },
                    ChangeTag::Equal => span { (change.value()) },
                }
            }
        }
    }
}

/// A text.
#[derive(Debug, Deserialize)]
pub(crate) struct TextForm {
    text: String,
}

fn message_ref(id: &str) -> Result<MessageRef, Problem> {
    Ok(MessageRef { thread: None, message: parse_name(id, "message")? })
}

fn redirect_to_message(space: &str, id: &str) -> Response {
    redirect_to(&format!("/s/{space}/m/{id}"))
}

/// Writes a new version.
pub(crate) async fn edit(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((space, id)): Path<(String, String)>,
    FormFields(form): FormFields<TextForm>,
) -> Result<Response, Problem> {
    let text = form.text.replace("\r\n", "\n");
    let content = commands::message_content(Value::String(text), None)?;
    state.act(context, UserCommand::Edit(message_ref(&id)?, content)).await?;
    Ok(redirect_to_message(&space, &id))
}

/// Deletes it softly.
pub(crate) async fn delete(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((space, id)): Path<(String, String)>,
) -> Result<Response, Problem> {
    state.act(context, UserCommand::DeleteMessage(message_ref(&id)?)).await?;
    Ok(redirect_to_message(&space, &id))
}

/// A reaction; an empty one takes back.
#[derive(Debug, Deserialize)]
pub(crate) struct ReactForm {
    #[serde(default)]
    reaction: String,
}

/// Reacts, or takes that back.
pub(crate) async fn react(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((space, id)): Path<(String, String)>,
    FormFields(form): FormFields<ReactForm>,
) -> Result<Response, Problem> {
    if !fits(&form.reaction, REACTION_CHARS_MAX) {
        return Err(Problem::over_limit("a reaction has at most 64 characters"));
    }
    let command = match form.reaction.is_empty() {
        true => UserCommand::Unreact(message_ref(&id)?),
        false => UserCommand::React(message_ref(&id)?, commands::reaction_content(&form.reaction)?),
    };
    state.act(context, command).await?;
    Ok(redirect_to_message(&space, &id))
}

/// Why something is reported.
#[derive(Debug, Deserialize)]
pub(crate) struct ReportForm {
    reason: String,
}

/// Reports it to the moderators.
pub(crate) async fn report(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((space, id)): Path<(String, String)>,
    FormFields(form): FormFields<ReportForm>,
) -> Result<Response, Problem> {
    if !fits(&form.reason, 500) {
        return Err(Problem::over_limit("a reason has at most 500 characters"));
    }
    state.act(context.clone(), UserCommand::Report(parse_name(&id, "message")?, form.reason)).await?;
    let body = html! {
        section.card { h1 { "Thank you" }
            p { "The moderators of this space will see your report." }
            p { a href={ "/s/" (space) "/m/" (id) } { "Back to the message" } } }
    };
    Ok(PageFrame::new("Reported", NavItem::Threads, &context).of(&space).respond(&body))
}

fn thread_and_pins(
    state: &SharedState,
    context: &RequestContext,
    id: &str,
) -> Result<(String, String, Vec<String>), Problem> {
    with_message_reader(state, context, |reader| {
        let message = reader.message(None, id)?;
        let pins = reader.thread_head(&message.thread)?.pins;
        Ok((message.thread, message.id, pins))
    })
}

/// Pins it in its thread, or no longer.
pub(crate) async fn toggle_pin(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((space, id)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let (thread, message, mut pins) = thread_and_pins(&state, &context, &id)?;
    match pins.iter().position(|pin| *pin == message) {
        Some(at) => drop(pins.remove(at)),
        None => pins.push(message),
    }
    set_pins(&state, context, &thread, pins).await?;
    Ok(redirect_to_message(&space, &id))
}

async fn set_pins(
    state: &ServerState,
    context: RequestContext,
    thread: &str,
    pins: Vec<String>,
) -> Result<(), Problem> {
    let change = ThreadChange { fields: vec![(ThreadField::Pins, pins.into())], ..ThreadChange::default() };
    state.act(context, UserCommand::UpdateThread(parse_name(thread, "thread")?, change)).await?;
    Ok(())
}
