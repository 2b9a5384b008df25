//! The rule of deletion, as users meet it.
//!
//! A message is deleted softly by a version that says so; a thread by an event. Purging deletes the content itself, by a
//! delete event that reaches the target and all of its versions: which delete reaches what is the engine's to decide.
//! What was deleted, either way, stays deleted: it is neither edited nor reacted to, and deleting it again changes
//! nothing. The author deletes, or an admin of the space.

use crate::commands::conversation::{CommandContext, check_access};
use crate::commands::lookup::{message_for, thread_for};
use crate::commands::{CommandError, CommandResult, MessageRef, NameOrId};
use engine::access::{Action, Facts};
use engine::reads::{Reads as _, SpaceReads as _, StoreResult};
use engine::rows::{Meta, Register, ThreadField};
use model::envelope::{Reference, Role};
use model::stage::ContentState;
use model::{AuxKey, Envelope, EventId, Kind, Seq, SpaceNo};
use store::tables::TableReads;
use store::views::messages::ShownContent;
use store::{Batch, Db};

/// The version of a message that says that it was deleted.
pub const DELETED: &[u8] = br#"{"deleted":true}"#;

/// How a thread that was deleted is called when it is looked for.
pub(super) const DELETED_THREAD: &str = "thread: it was deleted";

/// Whether the latest version of a message says that it was deleted, or its content was purged.
pub fn is_deleted<V: TableReads>(db: &Db<V>, message: Seq) -> StoreResult<bool> {
    let latest = db.last_version(message)?.map(|(_, version)| version);
    let shown = db.shown(latest.unwrap_or(message))?;
    Ok(match shown {
        ShownContent::Deleted(_) => true,
        // Only a version deletes: a first version with these bytes is a message that says nothing.
        ShownContent::Here(_) => latest.is_some() && is_deleted_version(&shown),
        ShownContent::Absent | ShownContent::Invalid | ShownContent::Damaged => false,
    })
}

/// Whether a version of a message says that the message was deleted.
pub fn is_deleted_version(version: &ShownContent) -> bool {
    matches!(version, ShownContent::Here(bytes) if bytes == DELETED)
}

/// Whether a thread was deleted softly.
pub(super) fn is_thread_deleted<V: TableReads>(db: &Db<V>, thread: Seq, space: SpaceNo) -> StoreResult<bool> {
    Ok(db.register(space, Register::ThreadField(thread, ThreadField::Deleted.code()))?.is_some())
}

/// Ends a command that would edit, or react to, a message that was deleted.
pub(super) fn check_not_deleted<V: TableReads>(db: &Db<V>, message: Seq) -> Result<(), CommandError> {
    if is_deleted(db, message)? { Err(CommandError::Deleted) } else { Ok(()) }
}

/// Ends a command that would store an event whose target was deleted: a new version of, or a reaction to, a deleted
/// message, or a message in a deleted thread.
pub(super) fn check_event_target<V: TableReads>(db: &Db<V>, envelope: &Envelope) -> Result<(), CommandError> {
    let role = match envelope.kind {
        Kind::Edit | Kind::Reaction => Role::Target,
        Kind::Message => Role::Thread,
        _ => return Ok(()),
    };
    let Some(target) = envelope.reference(role).map(|id| db.seq(&id)).transpose()?.flatten() else { return Ok(()) };
    if role == Role::Target {
        return check_not_deleted(db, target);
    }
    let Some(space) = db.space_no(&envelope.space)? else { return Ok(()) };
    if is_thread_deleted(db, target, space)? { Err(CommandError::Unknown(DELETED_THREAD)) } else { Ok(()) }
}

/// Whether the content of an event can be purged: there is some, and a space keeps the content of its founding.
pub(crate) fn is_purgeable(meta: &Meta) -> bool {
    meta.content_len > 0 && meta.kind != Kind::Space
}

/// Deletes a message softly. Deleting it again changes nothing.
pub(super) fn delete_message(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    message: &MessageRef,
) -> Result<CommandResult, CommandError> {
    let (stamp, seq, meta) =
        message_for(batch.db(), context.no, message, &context.principal, Action::Change, context.who())?;
    if is_deleted(batch.db(), seq)? {
        return Ok(CommandResult { shown: stamp.id, seq, is_new: false });
    }
    context.audit(batch, &meta, "edit message", &stamp.id)?;
    let reference = Reference { role: Role::Target, id: stamp.id };
    context.create(batch, (Kind::Edit, AuxKey::ZERO), vec![reference], DELETED.to_vec())?;
    Ok(CommandResult { shown: stamp.id, seq, is_new: true })
}

/// Deletes a thread softly.
pub(super) fn delete_thread(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    thread: &NameOrId,
) -> Result<CommandResult, CommandError> {
    let (stamp, seq, meta) =
        thread_for(batch.db(), context.no, thread, &context.principal, Action::Change, context.who())?;
    context.audit(batch, &meta, "delete thread", &stamp.id)?;
    let reference = Reference { role: Role::Thread, id: stamp.id };
    context.create(batch, (Kind::ThreadDelete, AuxKey::ZERO), vec![reference], Vec::new())?;
    Ok(CommandResult { shown: stamp.id, seq, is_new: true })
}

/// Deletes the content of an event for ever.
pub(super) fn purge_event(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    target: &EventId,
) -> Result<CommandResult, CommandError> {
    let db = batch.db();
    let seq = db.seq(target)?.ok_or(CommandError::Unknown("event"))?;
    let meta = db.event(seq)?.and_then(|row| row.meta).filter(|meta| meta.space == context.no);
    let meta = meta.ok_or(CommandError::Unknown("event"))?;
    let is_own = db.identity(meta.author)? == context.signer.identity;
    let facts = Facts { is_closed_to_caller: false, is_own, is_known: true };
    check_access(&context.principal, Action::Change, &facts)?;
    // Whoever repeats it hears so at once: another delete would change nothing.
    if db.event(seq)?.is_some_and(|row| matches!(row.content, ContentState::Deleted { .. })) {
        return Ok(CommandResult { shown: *target, seq, is_new: false });
    }
    context.audit(batch, &meta, "purge", target)?;
    let reference = Reference { role: Role::Target, id: *target };
    context.create(batch, (Kind::Delete, AuxKey::ZERO), vec![reference], Vec::new())?;
    if let Some(file) = batch.db().file_of_event(target)? {
        batch.forget_file_of_event(&context.space, file, target)?;
    }
    Ok(CommandResult { shown: *target, seq, is_new: true })
}
