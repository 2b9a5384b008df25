//! Threads: opened and changed, each change with an event of its own.

use crate::commands::conversation::CommandContext;
use crate::commands::lookup::{find, is_private, thread_for};
use crate::commands::participants_update::{find_identities, list_identities, participants_update};
use crate::commands::{CommandError, CommandResult, NameOrId, NewThread, ThreadChange, message_content, names};
use engine::access::Action;
use engine::reads::Reads as _;
use engine::rows::ThreadField;
use model::crypto::{chosen_key, public_space};
use model::envelope::{Reference, Role};
use model::{AuxKey, EventId, Kind, Seq, body};
use serde_json::{Map, Value};
use store::Batch;
use store::views::messages::ShownContent;

/// How many a direct conversation names beside its author: each is a reference of its event.
const DIRECT_MAX: usize = 60;
/// Messages that are pinned in one thread.
const PINS_MAX: usize = 100;

pub(super) fn open_thread(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    new: &NewThread,
) -> Result<CommandResult, CommandError> {
    let mut fields = new.fields.clone();
    if let Some(chosen) = &new.chosen {
        names::check_name(chosen)?;
        fields.insert("id".to_owned(), chosen.as_str().into());
    }
    // A direct conversation without others is one with oneself.
    let own = EventId(public_space(&context.signer.identity).0);
    let mut mentions: Vec<EventId> =
        (new.is_direct && new.participants.is_empty()).then_some(own).into_iter().collect();
    if !new.participants.is_empty() {
        let mut identities = find_identities(batch, context, &new.participants)?;
        if new.is_direct {
            mentions.extend(identities.iter().map(|other| EventId(public_space(other).0)));
        }
        identities.push(context.signer.identity);
        fields.insert("participants".to_owned(), list_identities(identities));
    }
    if mentions.len() > DIRECT_MAX {
        return Err(CommandError::TooManyInDirect(DIRECT_MAX));
    }
    if new.is_private || new.is_direct {
        fields.insert("private".to_owned(), true.into());
    }
    let content = body::encode(&Value::Object(fields))?;
    if let Some(chosen) = &new.chosen
        && let Some(id) = find_earlier(batch, context, chosen, Kind::Thread, &content)?
    {
        return context.result(batch, id, false);
    }
    let id = create_thread(batch, context, new.chosen.as_deref(), mentions, content)?;
    context.result(batch, id, true)
}

/// Opens a thread for a message, under the id by which the message names it.
pub(super) fn open_thread_for_message(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    named: Option<&NameOrId>,
) -> Result<EventId, CommandError> {
    let chosen = match named {
        Some(NameOrId::Chosen(text)) => Some(text.as_str()),
        Some(NameOrId::Event(_)) | None => None,
    };
    let fields = chosen.map_or_else(Map::new, |text| Map::from_iter([("id".to_owned(), text.into())]));
    let content = body::encode(&Value::Object(fields))?;
    create_thread(batch, context, chosen, Vec::new(), content)
}

fn create_thread(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    chosen: Option<&str>,
    mut mentions: Vec<EventId>,
    content: Vec<u8>,
) -> Result<EventId, CommandError> {
    let aux = chosen.map_or(AuxKey::ZERO, chosen_key);
    mentions.sort();
    mentions.dedup();
    let references = mentions.into_iter().map(|id| Reference { role: Role::Mention, id }).collect();
    context.create(batch, (Kind::Thread, aux), references, content)
}

/// The event that already has a chosen id, if it is the same thing said again; an error if it is something else.
pub(super) fn find_earlier(
    batch: &Batch<'_>,
    context: &CommandContext<'_>,
    chosen: &str,
    kind: Kind,
    content: &[u8],
) -> Result<Option<EventId>, CommandError> {
    let db = batch.db();
    let Some((stamp, seq)) = db.chosen(context.no, chosen)? else { return Ok(None) };
    let is_same = match db.event(seq)?.and_then(|row| row.meta) {
        Some(meta) => {
            meta.kind == kind
                && db.identity(meta.author)? == context.signer.identity
                && db.shown(seq)? == ShownContent::Here(content.to_vec())
        }
        None => false,
    };
    if is_same { Ok(Some(stamp.id)) } else { Err(CommandError::Taken(chosen.to_owned())) }
}

pub(super) fn update_thread(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    thread: &NameOrId,
    change: &ThreadChange,
) -> Result<CommandResult, CommandError> {
    let (stamp, seq, meta) =
        thread_for(batch.db(), context.no, thread, &context.principal, Action::Change, context.who())?;
    // Everything is checked before anything is written.
    let mut contents = Vec::new();
    for (field, value) in &change.fields {
        if *field == ThreadField::Pins {
            check_pins(batch, context, seq, value)?;
        }
        let content = Map::from_iter([(field.name().to_owned(), value.clone())]);
        contents.push((*field, body::encode(&Value::Object(content))?));
    }
    let is_open_now = !is_private(batch.db(), seq, context.no)?;
    if change.participants.is_some() || change.is_private.is_some() {
        if batch.db().is_direct(seq)? {
            return Err(CommandError::Direct);
        }
        let update = participants_update(batch, context, seq, change.participants.as_deref(), change.is_private)?;
        contents.push((ThreadField::Participants, body::encode(&Value::Object(update))?));
    }
    context.audit(batch, &meta, "change thread", &stamp.id)?;
    for (field, content) in contents {
        let reference = Reference { role: Role::Thread, id: stamp.id };
        context.create(batch, (Kind::ThreadUpdate, field.aux()), vec![reference], content)?;
    }
    if let Some(is_private) = change.is_private.filter(|is_private| *is_private == is_open_now) {
        announce_visibility(batch, context, &stamp.id, is_private)?;
    }
    Ok(CommandResult { shown: stamp.id, seq, is_new: true })
}

/// Whether what is to be pinned are messages of this thread.
fn check_pins(batch: &Batch<'_>, context: &CommandContext<'_>, thread: Seq, pins: &Value) -> Result<(), CommandError> {
    let pins = pins.as_array().map(Vec::as_slice).unwrap_or_default();
    if pins.len() > PINS_MAX {
        return Err(CommandError::TooManyPins(PINS_MAX));
    }
    for pin in pins {
        let named: NameOrId = pin.as_str().unwrap_or_default().parse()?;
        match find(batch.db(), context.no, &named, Kind::Message)? {
            Some((_, _, meta)) if meta.subject == Some(thread) => {}
            _ => return Err(CommandError::Unknown("message in this thread to pin")),
        }
    }
    Ok(())
}

/// Says in the thread and in the audit log that others can, or cannot, see it from now on.
fn announce_visibility(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    thread: &EventId,
    is_private: bool,
) -> Result<(), CommandError> {
    let (word, text) = match is_private {
        true => ("make thread private", "made this thread private: only its participants see it from now on."),
        false => {
            ("make thread public", "made this thread visible to everybody in the space, with all earlier messages.")
        }
    };
    let content = message_content(text.into(), None)?;
    let reference = Reference { role: Role::Thread, id: *thread };
    context.create(batch, (Kind::Message, AuxKey::ZERO), vec![reference], content)?;
    Ok(batch.audit(Some(context.space), &context.audit_name(), word, &thread.to_string())?)
}
