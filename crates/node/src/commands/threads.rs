//! Threads: opened and changed, each change with an event of its own.

use crate::commands::conversation::CommandContext;
use crate::commands::lookup::thread_for;
use crate::commands::participants_update::{find_identities, list_identities, participants_update};
use crate::commands::{CommandError, CommandResult, NameOrId, NewThread, ThreadChange, names};
use engine::access::Action;
use engine::reads::Reads as _;
use engine::rows::ThreadField;
use model::crypto::chosen_key;
use model::envelope::{Reference, Role};
use model::{AuxKey, EventId, Kind, body};
use serde_json::{Map, Value};
use store::Batch;
use store::views::messages::ShownContent;

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
    if !new.participants.is_empty() {
        let mut identities = find_identities(batch, context, &new.participants)?;
        identities.push(context.signer.identity);
        fields.insert("participants".to_owned(), list_identities(identities));
    }
    if new.is_private {
        fields.insert("private".to_owned(), true.into());
    }
    let content = body::encode(&Value::Object(fields))?;
    if let Some(chosen) = &new.chosen
        && let Some(id) = find_earlier(batch, context, chosen, Kind::Thread, &content)?
    {
        return context.result(batch, id, false);
    }
    let id = create_thread(batch, context, new.chosen.as_deref(), content)?;
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
    create_thread(batch, context, chosen, content)
}

fn create_thread(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    chosen: Option<&str>,
    content: Vec<u8>,
) -> Result<EventId, CommandError> {
    let aux = chosen.map_or(AuxKey::ZERO, chosen_key);
    context.create(batch, (Kind::Thread, aux), Vec::new(), content)
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
        let content = Map::from_iter([(field.name().to_owned(), value.clone())]);
        contents.push((*field, body::encode(&Value::Object(content))?));
    }
    if change.participants.is_some() || change.is_private.is_some() {
        let update = participants_update(batch, context, seq, change.participants.as_deref(), change.is_private)?;
        contents.push((ThreadField::Participants, body::encode(&Value::Object(update))?));
    }
    context.audit(batch, &meta, "change thread", &stamp.id)?;
    for (field, content) in contents {
        let reference = Reference { role: Role::Thread, id: stamp.id };
        context.create(batch, (Kind::ThreadUpdate, field.aux()), vec![reference], content)?;
    }
    Ok(CommandResult { shown: stamp.id, seq, is_new: true })
}
