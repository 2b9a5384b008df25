//! Rows into shapes: threads and messages from one snapshot, as one viewer sees them.

use crate::error::QueryError;
use crate::shapes::{Message, Thread};
use crate::viewer::Viewer;
use engine::reads::{Reads as _, SpaceReads as _};
use engine::rows::{Register, ThreadField};
use model::calendar::Rfc3339;
use model::envelope::Role;
use model::{EventId, Identity, Seq, Stamp};
use node::commands::privacy;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use store::Db;
use store::tables::TableReads;
use store::views::messages::{self, ShownContent};

/// As what a message was written that does not say.
const ROLE: &str = "user";
/// The longest role that is shown.
const ROLE_BYTES_MAX: usize = 256;

/// What a message's content says, read without unfolding its body.
#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default, deserialize_with = "even_null")]
    body: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(default)]
    deleted: bool,
}

/// A role as this API takes it; whatever else was signed elsewhere is none.
fn role_text(role: &RawValue) -> Option<String> {
    serde_json::from_str(role.get()).ok().filter(|text: &String| !text.is_empty() && text.len() <= ROLE_BYTES_MAX)
}

/// A body may be null, which is not the same as none.
fn even_null<'de, D: serde::Deserializer<'de>>(body: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(body).map(Some)
}

#[derive(Deserialize)]
struct Reaction<'a> {
    #[serde(borrow)]
    reaction: Cow<'a, str>,
}

/// Renders from one snapshot, for one viewer.
pub struct Renderer<'a, V> {
    pub db: &'a Db<V>,
    pub viewer: &'a Viewer,
}

impl<V: TableReads> Renderer<'_, V> {
    /// How somebody is called here.
    pub fn author(&self, identity: &Identity) -> Result<String, QueryError> {
        let name = self.db.user_name(&self.viewer.space, identity)?;
        Ok(name.map_or_else(|| identity.to_string(), |name| name.to_string()))
    }

    /// The id by which clients know an event: the one they chose, if its hash is the event's.
    fn id_of(&self, seq: Seq, id: &EventId, claimed: Option<&str>) -> Result<String, QueryError> {
        let Some(claimed) = claimed else { return Ok(id.to_string()) };
        // Only a chosen id that leads back here is one.
        let leads_here = self.db.chosen(self.viewer.no, claimed)?.is_some_and(|(_, owner)| owner == seq);
        Ok(if leads_here { claimed.to_owned() } else { id.to_string() })
    }

    /// The id by which clients know a message or thread.
    pub fn name(&self, seq: Seq) -> Result<String, QueryError> {
        Ok(self.name_and_role(seq)?.0)
    }

    /// The same, and as what it was written, if that was said: edits say neither.
    fn name_and_role(&self, seq: Seq) -> Result<(String, Option<String>), QueryError> {
        let id = self.db.id_of(seq)?;
        let ShownContent::Here(bytes) = self.db.shown(seq)? else { return Ok((id.to_string(), None)) };
        let Ok(content) = serde_json::from_slice::<Content<'_>>(&bytes) else { return Ok((id.to_string(), None)) };
        let name = self.id_of(seq, &id, content.id.as_deref())?;
        Ok((name, content.role.and_then(role_text)))
    }

    /// Who wrote the latest version, if it is not the author of the message.
    fn editor(&self, found: &messages::MessageView) -> Result<Option<String>, QueryError> {
        let version = self.db.seq(&found.version.id)?;
        let row = version.map(|version| self.db.event(version)).transpose()?.flatten();
        let Some(meta) = row.and_then(|row| row.meta) else { return Ok(None) };
        let editor = self.db.identity(meta.author)?;
        (editor != found.author).then(|| self.author(&editor)).transpose()
    }

    /// A message that a view found.
    pub fn message(&self, found: &messages::MessageView, thread: &str) -> Result<Message, QueryError> {
        let is_edited = found.version != found.stamp;
        let (state, content) = match &found.content {
            ShownContent::Here(bytes) => ("here", serde_json::from_slice::<Content<'_>>(bytes).ok()),
            ShownContent::Absent => ("missing", None),
            ShownContent::Invalid => ("invalid", None),
            ShownContent::Deleted(_) => ("deleted", None),
            ShownContent::Damaged => ("damaged", None),
        };
        let deleted = state == "deleted" || content.as_ref().is_some_and(|content| content.deleted);
        let body = match (&content, &found.content) {
            (Some(Content { body: Some(body), .. }), _) => Some((*body).to_owned()),
            // A content without a body is shown whole.
            (Some(_), ShownContent::Here(bytes)) if !deleted => whole(bytes),
            _ => None,
        };
        let (id, role) = if is_edited {
            self.name_and_role(found.seq)?
        } else {
            let (claimed, role) = content.map_or((None, None), |content| (content.id, content.role));
            (self.id_of(found.seq, &found.stamp.id, claimed.as_deref())?, role.and_then(role_text))
        };
        let (reply_to, attachments) = if found.refers { self.references(found.seq)? } else { (None, Vec::new()) };
        Ok(Message {
            id,
            thread: thread.to_owned(),
            author: self.author(&found.author)?,
            role: role.unwrap_or_else(|| ROLE.to_owned()),
            created_at: Rfc3339(found.stamp.at),
            ts: found.stamp.at.0,
            body,
            reply_to,
            reactions: self.reactions(&found.reactions)?,
            replies: found.replies,
            edited_by: if is_edited { self.editor(found)? } else { None },
            deleted,
            attachments,
            version: if is_edited {
                self.db.versions(found.seq, Stamp::FIRST, VERSIONS_MAX)?.len() as u64 + 1
            } else {
                1
            },
            updated_at: Rfc3339(found.version.at),
            state,
            event: found.stamp.id.to_string(),
        })
    }

    /// The name of the thread that a message is in.
    pub fn thread_name_of(&self, message: Seq) -> Result<String, QueryError> {
        let thread = self.db.event(message)?.and_then(|row| row.meta).and_then(|meta| meta.subject);
        self.name(thread.ok_or_else(|| QueryError::not_found("there is no such message"))?)
    }

    /// A message by its number.
    pub fn message_at(&self, seq: Seq) -> Result<Message, QueryError> {
        let found = self.db.message_by_seq(seq)?.ok_or_else(|| QueryError::not_found("there is no such message"))?;
        let thread = self.thread_name_of(seq)?;
        self.message(&found, &thread)
    }

    fn references(&self, seq: Seq) -> Result<(Option<String>, Vec<String>), QueryError> {
        let Some(envelope) = self.db.opened(seq)? else { return Ok((None, Vec::new())) };
        let of = |role| envelope.references.iter().filter(move |reference| reference.role == role);
        let reply_to = match of(Role::ReplyTo).next() {
            Some(reference) => Some(match self.db.seq(&reference.id)? {
                Some(seq) => self.name(seq)?,
                None => reference.id.to_string(),
            }),
            None => None,
        };
        let file = |event: &EventId| match self.db.file_of_event(event)? {
            Some(file) => Ok(file.to_name()),
            None => Ok(event.to_string()),
        };
        let attachments = of(Role::Attachment).map(|reference| file(&reference.id));
        Ok((reply_to, attachments.collect::<Result<_, QueryError>>()?))
    }

    /// Who reacted and how, of reactions whose content is here.
    pub fn reactions(&self, found: &[(Identity, Seq)]) -> Result<BTreeMap<String, String>, QueryError> {
        let mut reactions = BTreeMap::new();
        for (identity, seq) in found {
            if let ShownContent::Here(bytes) = self.db.shown(*seq)?
                && let Ok(content) = serde_json::from_slice::<Reaction<'_>>(&bytes)
            {
                reactions.insert(self.author(identity)?, content.reaction.into_owned());
            }
        }
        Ok(reactions)
    }

    /// All versions of a message, the first one first.
    pub fn versions(&self, seq: Seq) -> Result<Vec<Message>, QueryError> {
        let found = self.db.message_by_seq(seq)?.ok_or_else(|| QueryError::not_found("there is no such message"))?;
        let (thread, name) = (self.thread_name_of(seq)?, self.name(seq)?);
        let first = (found.stamp, seq);
        let later = self.db.versions(seq, Stamp::FIRST, VERSIONS_MAX)?;
        let mut versions = Vec::new();
        for (number, (stamp, version)) in std::iter::once(first).chain(later).enumerate() {
            let content = self.db.shown(version)?;
            let author = self.db.event(version)?.and_then(|row| row.meta).map(|meta| meta.author);
            let author = author.map_or(Ok(found.author), |author| self.db.identity(author))?;
            let one = messages::MessageView { version: found.stamp, content, author, ..found.clone() };
            let mut message = self.message(&one, &thread)?;
            message.id.clone_from(&name);
            message.version = number as u64 + 1;
            message.updated_at = Rfc3339(stamp.at);
            versions.push(message);
        }
        Ok(versions)
    }

    /// A thread, with its latest message and what the caller has not read.
    pub fn thread(&self, found: &messages::ThreadView) -> Result<Thread, QueryError> {
        let mut thread = self.head(found)?;
        thread.last_message = self.last_message(found.seq, &thread.id)?;
        thread.unread = self.unread(found.seq)?;
        Ok(thread)
    }

    /// A thread, without what has to be counted.
    pub fn head(&self, found: &messages::ThreadView) -> Result<Thread, QueryError> {
        let opened = object(&found.content);
        let is_direct = self.db.is_direct(found.seq)?;
        let field = |field: ThreadField| {
            let is_settled = is_direct && field == ThreadField::Participants;
            let later = found.fields.iter().find(|(other, ..)| *other == field && !is_settled);
            let from = later.map_or(opened.clone(), |(.., shown)| object(shown));
            from.get(field.name()).cloned().unwrap_or(Value::Null)
        };
        let title = text(&field(ThreadField::Title));
        let claimed = opened.get("id").and_then(Value::as_str);
        let id = self.id_of(found.seq, &found.stamp.id, claimed)?;
        let mut participants = Vec::new();
        for identity in listed(&field(ThreadField::Participants)) {
            participants.push(identity.parse().map_or(Ok(identity.to_owned()), |identity| self.author(&identity))?);
        }
        participants.sort();
        // What it was opened with, whatever it is called later: addresses stay.
        let named = |field: &str| opened.get(field).map(text).filter(|text| !text.is_empty());
        let slug = named("slug").or_else(|| Some(slug(&named("title")?))).unwrap_or_else(|| id.clone());
        Ok(Thread {
            slug,
            title,
            author: self.author(&found.author)?,
            created_at: Rfc3339(found.stamp.at),
            updated_at: Rfc3339(found.updated),
            created_ts: found.stamp.at.0,
            updated_ts: found.updated.0,
            metadata: field(ThreadField::Metadata),
            participants,
            pins: listed(&field(ThreadField::Pins)).into_iter().map(str::to_owned).collect(),
            direct: is_direct,
            private: is_direct || {
                let latest = found.fields.iter().find(|(field, ..)| *field == ThreadField::Participants);
                let latest = privacy(latest.map(|(.., shown)| shown));
                latest.or_else(|| privacy(Some(&found.content))).unwrap_or(false)
            },
            deleted: found.deleted,
            last_message: None,
            unread: None,
            event: found.stamp.id.to_string(),
            id,
        })
    }

    fn last_message(&self, thread: Seq, id: &str) -> Result<Option<Message>, QueryError> {
        let most = if self.viewer.blocked.is_empty() { 1 } else { LAST_MAX };
        let last = self.db.timeline(thread, Stamp::LAST, most)?;
        let shown = last.iter().rfind(|message| !self.viewer.blocks(&message.author));
        shown.map(|message| self.message(message, id)).transpose()
    }

    /// The message up to which the caller says to have read, and its position.
    pub fn marked(&self, thread: Seq) -> Result<Option<(EventId, u64)>, QueryError> {
        // Who never wrote anything has read nothing.
        let author = self.viewer.identity().map(|identity| self.db.author_no(identity)).transpose()?.flatten();
        let Some(author) = author else { return Ok(None) };
        let marker = self.db.register(self.viewer.no, Register::ReadMarker(author, thread))?;
        if let Some((_, marker)) = marker
            && let Some(message) = self.db.opened(marker)?.and_then(|envelope| envelope.reference(Role::Target))
            && let Some(seq) = self.db.seq(&message)?
            && let Some(row) = self.db.event(seq)?
            && let model::stage::Stage::Applied { position } = row.stage
        {
            return Ok(Some((message, position)));
        }
        Ok(None)
    }

    /// What arrived after the message that the caller marked, by position; everything, if they never did.
    pub fn unread(&self, thread: Seq) -> Result<Option<u64>, QueryError> {
        let Some(identity) = self.viewer.identity() else { return Ok(None) };
        let after = self.marked(thread)?.map_or(0, |(_, position)| position);
        let mut read = Vec::from_iter(self.db.author_no(identity)?);
        for (other, _) in self.db.blocks_by(&self.viewer.space, identity)? {
            read.extend(self.db.author_no(&other)?);
        }
        Ok(Some(self.db.arrived_after(thread, after, &read)? as u64))
    }
}

/// The id that the author of a message chose, whether or not it leads to it.
pub fn claimed(found: &messages::MessageView) -> Option<Cow<'_, str>> {
    let ShownContent::Here(bytes) = &found.content else { return None };
    serde_json::from_slice::<Content<'_>>(bytes).ok()?.id
}

/// How far back the latest message is looked for that is not by somebody who is blocked.
const LAST_MAX: usize = 20;

/// More versions than this are not counted.
const VERSIONS_MAX: usize = 1000;

fn whole(bytes: &[u8]) -> Option<Box<RawValue>> {
    String::from_utf8(bytes.to_vec()).ok().and_then(|text| RawValue::from_string(text).ok())
}

fn object(shown: &ShownContent) -> serde_json::Map<String, Value> {
    match shown {
        ShownContent::Here(bytes) => serde_json::from_slice(bytes).unwrap_or_default(),
        ShownContent::Absent | ShownContent::Invalid | ShownContent::Deleted(_) | ShownContent::Damaged => {
            serde_json::Map::new()
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn listed(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A title as a part of an address.
fn slug(title: &str) -> String {
    let words: Vec<String> = title
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_that_is_no_text_is_none_and_hides_nothing() {
        let long = format!("{:?}", "x".repeat(ROLE_BYTES_MAX + 1));
        for (role, shown) in [
            ("\"assistant\"", Some("assistant")),
            ("5", None),
            ("{\"a\":[]}", None),
            ("null", None),
            ("\"\"", None),
            (&long, None),
        ] {
            let text = format!(r#"{{"body":{{"text":"hi"}},"id":"m1","role":{role}}}"#);
            let content: Content<'_> = serde_json::from_str(&text).unwrap_or_else(|why| panic!("{role}: {why}"));
            assert_eq!(
                (content.body.map(RawValue::get), content.id.as_deref()),
                (Some(r#"{"text":"hi"}"#), Some("m1"))
            );
            assert_eq!(content.role.and_then(role_text).as_deref(), shown, "{role}");
        }
    }
}
