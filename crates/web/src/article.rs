//! One message as HTML, the same for everybody who may see it.

use crate::attachments::attachments_html;
use crate::markdown;
use maud::{Markup, PreEscaped, html};
use model::Nanos;
use model::calendar::CivilTime;
use queries::QueryError;
use queries::messages::{AuthorBadge, MessageFormat, MessageReader};
use queries::shapes::Message;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::tables::TableReads;

/// Colours that people are told apart by.
const HUES: u32 = 12;

/// The colour of somebody.
pub(crate) fn hue(name: &str) -> String {
    let hash = blake3::hash(name.as_bytes());
    format!("face h{}", u32::from(hash.as_bytes()[0]) % HUES)
}

/// The letters that stand for somebody.
pub(crate) fn letters(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).take(2).collect::<String>().to_uppercase()
}

/// How somebody is shown in little room: a public key is cut.
pub(crate) fn short(name: &str) -> &str {
    if name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) { &name[..10] } else { name }
}

/// A moment as machines read it, and as people do until the script knows their clock.
pub(crate) fn time(at: u64) -> Markup {
    let CivilTime { year, month, day, hour, minute, second } = CivilTime::of(Nanos(at));
    html! {
        time datetime=(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")) {
            (format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}"))
        }
    }
}

/// What a message says, as HTML. Bodies that are not text are shown as JSON.
pub(crate) fn body_html(space: &str, message: &Message) -> Markup {
    if message.deleted {
        return html! { p.note { "This message was deleted." } };
    }
    match message.state {
        "missing" => {
            return html! {
                p.note.waits { "Its content has not arrived yet. " a href={ "/s/" (space) "/m/" (message.event) } { "Why?" } }
            };
        }
        "damaged" => return html! { p.note { "This message cannot be read: what the node stored of it is damaged." } },
        "invalid" => return html! { p.note { "Its content does not match its signature." } },
        _ => {}
    }
    let body = message.body.as_ref().and_then(|body| serde_json::from_str::<Value>(body.get()).ok());
    match body {
        Some(Value::String(text)) => PreEscaped(markdown::html_of(&text)),
        Some(Value::Object(fields)) if fields.len() == 1 && fields.get("text").is_some_and(Value::is_string) => {
            PreEscaped(markdown::html_of(fields["text"].as_str().unwrap_or_default()))
        }
        Some(other) => html! { pre { code { (serde_json::to_string_pretty(&other).unwrap_or_default()) } } },
        None => html! {},
    }
}

/// The text of a message, as its author would edit it.
pub(crate) fn text_of(message: &Message) -> String {
    let body = message.body.as_ref().and_then(|body| serde_json::from_str::<Value>(body.get()).ok());
    match body {
        Some(Value::String(text)) => text,
        Some(other) => serde_json::to_string_pretty(&other).unwrap_or_default(),
        None => String::new(),
    }
}

/// Reactions by how often each was given, with who gave it.
fn tallied(message: &Message) -> BTreeMap<&str, Vec<&str>> {
    let mut tally: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (who, reaction) in &message.reactions {
        tally.entry(reaction).or_default().push(short(who));
    }
    tally
}

/// Somebody's picture, or the letters that stand for them.
pub(crate) fn picture(space: &str, user: &str, has_picture: bool) -> Markup {
    html! {
        @if has_picture {
            img.face src={ "/s/" (space) "/picture/" (user) } alt="" width="40" height="40" loading="lazy";
        } @else { span class=(hue(user)) aria-hidden="true" { (letters(user)) } }
    }
}

/// A message. Its place is found by the id of its event, which needs no escaping.
fn article(space: &str, message: &Message, face: &AuthorBadge, attachments: &Markup) -> Markup {
    let own = format!("/s/{space}/m/{}", message.event);
    html! {
        article.msg id={ "m-" (message.event) } data-id=(message.id) data-author=(message.author) {
            (picture(space, &message.author, face.has_picture))
            header {
                b { @if face.display.is_empty() { (short(&message.author)) } @else { (face.display) } }
                @if !face.display.is_empty() { span.note { "@" (message.author) } }
                a.when href=(own) { (time(message.ts)) }
                @if message.version > 1 && !message.deleted { a.note href=(own) { "edited"
                    @if let Some(editor) = &message.edited_by { " by " (short(editor)) } } }
                a.more href=(own) title="More" aria-label="More about this message" { "⋯" }
            }
            @if let Some(answered) = &message.reply_to {
                a.re href={ "/s/" (space) "/m/" (answered) } { "in reply to an earlier message" }
            }
            div.text { (body_html(space, message)) }
            (attachments)
            @if !message.reactions.is_empty() || message.replies > 0 {
                footer {
                    @for (reaction, who) in tallied(message) {
                        span.chip title=(who.join(", ")) data-reaction=(reaction) { (reaction) " " (who.len()) }
                    }
                    @if message.replies > 0 {
                        a.chip href=(own) { (message.replies) @if message.replies == 1 { " reply" } @else { " replies" } }
                    }
                }
            }
        }
    }
}

/// A message as HTML.
pub(crate) fn article_of<V: TableReads>(
    reader: &MessageReader<'_, V>,
    space: &str,
    message: &Message,
) -> Result<Markup, QueryError> {
    let shown: &[String] = if message.deleted { &[] } else { &message.attachments };
    let attachments = attachments_html(reader, space, shown)?;
    Ok(article(space, message, &reader.author_badge(&message.author)?, &attachments))
}

/// Messages as HTML, with links into a space of this name.
pub(crate) struct HtmlFormat<'a> {
    pub(crate) space: &'a str,
}

impl MessageFormat for HtmlFormat<'_> {
    const NAME: &'static str = "html";

    fn render<V: TableReads>(&self, reader: &MessageReader<'_, V>, message: &Message) -> Result<Arc<str>, QueryError> {
        Ok(article_of(reader, self.space, message)?.into_string().into())
    }
}
