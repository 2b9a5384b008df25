//! Messages: posted, edited, reacted to and marked as read, each by an event.

use crate::commands::conversation::CommandContext;
use crate::commands::deletion::check_not_deleted;
use crate::commands::lookup::{find, message_for, thread_for};
use crate::commands::participants_update::find_identities;
use crate::commands::threads::{find_earlier, open_thread_for_message};
use crate::commands::{CommandError, CommandResult, MessageRef, NameOrId, NewMessage, names};
use engine::access::Action;
use engine::reads::{Reads as _, StoreResult};
use model::body::BadBody;
use model::crypto::{chosen_key, public_space};
use model::envelope::{Reference, Role};
use model::limits::REFERENCES_MAX;
use model::{AuxKey, EventId, FileId, Kind, Seq, body};
use serde_json::{Map, Value, json};
use store::Batch;

/// A message refers to its thread, its authority and what it answers; the rest is for mentions and attachments.
const MENTIONS_AND_ATTACHMENTS_MAX: usize = REFERENCES_MAX - 3;

/// The content of a message or of a new version of it.
pub fn message_content(said: Value, chosen: Option<&str>) -> Result<Vec<u8>, BadBody> {
    message_content_as(None, said, chosen)
}

/// The content of a message that somebody writes in a role, for example as `assistant`.
pub fn message_content_as(role: Option<&str>, said: Value, chosen: Option<&str>) -> Result<Vec<u8>, BadBody> {
    let mut content = Map::from_iter([("body".to_owned(), said)]);
    for (name, text) in [("id", chosen), ("role", role)] {
        content.extend(text.map(|text| (name.to_owned(), text.into())));
    }
    body::encode(&Value::Object(content))
}

/// The content of a reaction.
pub fn reaction_content(reaction: &str) -> Result<Vec<u8>, BadBody> {
    body::encode(&json!({ "reaction": reaction }))
}

pub(super) fn post_message(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    new: &NewMessage,
) -> Result<CommandResult, CommandError> {
    if let Some(chosen) = &new.chosen {
        names::check_name(chosen)?;
        if let Some(id) = find_earlier(batch, context, chosen, Kind::Message, &new.content)? {
            let earlier = context.result(batch, id, false)?;
            return match &new.thread {
                Some(thread) if !is_in_thread(batch, context, earlier.seq, thread)? => {
                    Err(CommandError::Taken(chosen.clone()))
                }
                _ => Ok(earlier),
            };
        }
    }
    if new.mentions.len() + new.attachments.len() > MENTIONS_AND_ATTACHMENTS_MAX {
        return Err(CommandError::TooMany(MENTIONS_AND_ATTACHMENTS_MAX));
    }
    let place = find_thread(batch, context, new.thread.as_ref())?;
    let mut references = message_references(batch, context, new)?;
    let thread = match place {
        Some(thread) => thread,
        None => open_thread_for_message(batch, context, new.thread.as_ref())?,
    };
    references.push(Reference { role: Role::Thread, id: thread });
    let aux = new.chosen.as_deref().map_or(AuxKey::ZERO, chosen_key);
    let id = context.create(batch, (Kind::Message, aux), references, new.content.clone())?;
    context.result(batch, id, true)
}

fn is_in_thread(batch: &Batch<'_>, context: &CommandContext<'_>, message: Seq, thread: &NameOrId) -> StoreResult<bool> {
    let subject = batch.db().event(message)?.and_then(|row| row.meta).and_then(|meta| meta.subject);
    Ok(find(batch.db(), context.no, thread, Kind::Thread)?.map(|(_, seq, _)| seq) == subject)
}

/// What a message refers to beside its thread.
fn message_references(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    new: &NewMessage,
) -> Result<Vec<Reference>, CommandError> {
    let mut references = Vec::new();
    if let Some(message) = &new.reply_to {
        let place = MessageRef { thread: None, message: message.clone() };
        let found = message_for(batch.db(), context.no, &place, &context.principal, Action::Read, context.who())?;
        references.push(Reference { role: Role::ReplyTo, id: found.0.id });
    }
    for file in &new.attachments {
        // The id of a file is that of its record, whatever events say that they are it.
        let record = match file {
            NameOrId::Chosen(text) => {
                let record = FileId::from_name(text).map(|id| batch.db().file(&context.space, id)).transpose()?;
                let record = record.flatten();
                if record.as_ref().is_some_and(|record| record.deleted_at.is_some()) {
                    return Err(CommandError::Unknown("file"));
                }
                record.and_then(|record| record.event).map(NameOrId::Event)
            }
            NameOrId::Event(_) => None,
        };
        let file = record.as_ref().unwrap_or(file);
        let found = find(batch.db(), context.no, file, Kind::File)?.ok_or(CommandError::Unknown("file"))?;
        references.push(Reference { role: Role::Attachment, id: found.0.id });
    }
    for identity in find_identities(batch, context, &new.mentions)? {
        references.push(Reference { role: Role::Mention, id: EventId(public_space(&identity).0) });
    }
    Ok(references)
}

/// The thread that a message goes to, unless it has to be opened first.
fn find_thread(
    batch: &Batch<'_>,
    context: &CommandContext<'_>,
    named: Option<&NameOrId>,
) -> Result<Option<EventId>, CommandError> {
    match named {
        None => Ok(None),
        Some(NameOrId::Chosen(text)) if batch.db().chosen(context.no, text)?.is_none() => Ok(None),
        Some(named) => {
            let (stamp, ..) =
                thread_for(batch.db(), context.no, named, &context.principal, Action::Write, context.who())?;
            Ok(Some(stamp.id))
        }
    }
}

pub(super) fn edit_message(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    message: &MessageRef,
    content: &[u8],
) -> Result<CommandResult, CommandError> {
    let (stamp, seq, meta) =
        message_for(batch.db(), context.no, message, &context.principal, Action::Change, context.who())?;
    check_not_deleted(batch.db(), seq)?;
    context.audit(batch, &meta, "edit message", &stamp.id)?;
    let reference = Reference { role: Role::Target, id: stamp.id };
    context.create(batch, (Kind::Edit, AuxKey::ZERO), vec![reference], content.to_vec())?;
    Ok(CommandResult { shown: stamp.id, seq, is_new: true })
}

pub(super) fn add_reaction(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    message: &MessageRef,
    content: &[u8],
) -> Result<CommandResult, CommandError> {
    let (stamp, seq, _) =
        message_for(batch.db(), context.no, message, &context.principal, Action::Write, context.who())?;
    check_not_deleted(batch.db(), seq)?;
    let reference = Reference { role: Role::Target, id: stamp.id };
    context.create(batch, (Kind::Reaction, AuxKey::ZERO), vec![reference], content.to_vec())?;
    Ok(CommandResult { shown: stamp.id, seq, is_new: true })
}

/// Takes a reaction back, of a message that was deleted too.
pub(super) fn remove_reaction(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    message: &MessageRef,
) -> Result<CommandResult, CommandError> {
    let (stamp, seq, _) =
        message_for(batch.db(), context.no, message, &context.principal, Action::Write, context.who())?;
    let reference = Reference { role: Role::Target, id: stamp.id };
    context.create(batch, (Kind::ReactionRemoval, AuxKey::ZERO), vec![reference], Vec::new())?;
    Ok(CommandResult { shown: stamp.id, seq, is_new: true })
}

pub(super) fn mark_read(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    thread: &NameOrId,
    message: &NameOrId,
) -> Result<CommandResult, CommandError> {
    let place = MessageRef { thread: Some(thread.clone()), message: message.clone() };
    let (stamp, seq, meta) =
        message_for(batch.db(), context.no, &place, &context.principal, Action::Own, context.who())?;
    let Some(thread) = meta.subject else { return Err(CommandError::Unknown("thread")) };
    let thread = batch.db().id_of(thread)?;
    let references = vec![Reference { role: Role::Thread, id: thread }, Reference { role: Role::Target, id: stamp.id }];
    context.create(batch, (Kind::ReadMarker, AuxKey::ZERO), references, Vec::new())?;
    Ok(CommandResult { shown: stamp.id, seq, is_new: true })
}
