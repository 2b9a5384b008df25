//! Threads and messages: each deed becomes one event, or two where a message opens its thread.

use crate::commands::accounts::OPERATOR;
use crate::commands::lookup::{DELETED, find, is_deleted, message_for, principal, thread_for};
use crate::commands::moderation;
use crate::commands::participants_update::{identities, listed, participants_update};
use crate::commands::users::{self, Signer};
use crate::commands::{
    Caller, CallerKind, CommandError, CommandRequest, CommandResult, MessageRef, NameOrId, NewMessage, NewThread,
    ThreadChange, UserCommand, make, names,
};
use engine::access::{Action, Decision, Facts, Principal, decide};
use engine::create::{NewEvent, Seal};
use engine::reads::{Reads as _, StoreResult};
use engine::rows::{Meta, ThreadField};
use model::body::BadBody;
use model::crypto::{chosen_key, public_space};
use model::envelope::{Reference, Role};
use model::limits::REFERENCES_MAX;
use model::payload::Payload;
use model::{AuxKey, EventId, Identity, Kind, Seq, SpaceId, SpaceNo, body};
use serde_json::{Map, Value, json};
use store::Batch;
use store::views::messages::ShownContent;

/// The content of a message or of a new version of it.
pub fn message_content(said: Value, chosen: Option<&str>) -> Result<Vec<u8>, BadBody> {
    let mut content = Map::from_iter([("body".to_owned(), said)]);
    if let Some(chosen) = chosen {
        content.insert("id".to_owned(), chosen.into());
    }
    body::encode(&Value::Object(content))
}

/// The content of a reaction.
pub fn reaction_content(reaction: &str) -> Result<Vec<u8>, BadBody> {
    body::encode(&json!({ "reaction": reaction }))
}

/// What the steps of one act share.
pub(super) struct CommandContext<'a> {
    pub(super) space: SpaceId,
    pub(super) no: SpaceNo,
    pub(super) caller: &'a Caller,
    pub(super) principal: Principal,
    pub(super) signer: Signer,
    seal: Seal,
    pub(super) random: [u8; 32],
}

impl CommandContext<'_> {
    pub(super) fn who(&self) -> (&Caller, Option<&Identity>) {
        (self.caller, Some(&self.signer.identity))
    }

    fn draft(&self, kind: Kind, references: Vec<Reference>, content: Vec<u8>) -> NewEvent {
        let authority = Reference { role: Role::Authority, id: self.signer.authority };
        let mut references = [vec![authority], references].concat();
        references.sort();
        references.dedup();
        let seal = self.seal.clone();
        NewEvent { kind, space: self.space, aux: AuxKey::ZERO, payload: Payload::None, references, content, seal }
    }

    /// What an admin does to what others wrote is in the audit log.
    fn audit(&self, batch: &mut Batch<'_>, meta: &Meta, what: &str, target: &EventId) -> StoreResult<()> {
        if batch.db().identity(meta.author)? == self.signer.identity {
            return Ok(());
        }
        let who = self
            .caller
            .user
            .as_deref()
            .map_or_else(|| self.caller.audit_name.clone(), |user| format!("{} for {user}", self.caller.audit_name));
        batch.audit(Some(self.space), &who, what, &target.to_string())
    }

    fn result(&self, batch: &Batch<'_>, shown: EventId, is_new: bool) -> Result<CommandResult, CommandError> {
        let seq = batch.db().seq(&shown)?.ok_or(CommandError::Unknown("event"))?;
        Ok(CommandResult { shown, seq, is_new })
    }
}

/// Does the deed.
pub(super) fn run(batch: &mut Batch<'_>, act: CommandRequest) -> Result<CommandResult, CommandError> {
    let CommandRequest { space, caller, command, random, .. } = act;
    let no = users::space_no(batch, &space)?;
    let (principal, _) = principal(batch.db(), &space, &caller, batch.now())?;
    match decide(&principal, action(&command), &Facts::default()) {
        Decision::Allow => {}
        denied => return Err(CommandError::Denied(denied)),
    }
    let kept = users::kept(batch, &space)?;
    let seal = users::seal(batch, &space, &kept)?;
    if let (UserCommand::Leave, Some(user)) = (&command, &caller.user)
        && batch.db().user(&space, user)?.is_none()
    {
        return Err(CommandError::Unknown("user"));
    }
    if caller.user.as_deref() == Some(OPERATOR) && matches!(caller.kind, CallerKind::Key(_)) {
        return Err(CommandError::Denied(Decision::Forbidden(
            "this name is the operator's, who signs in to the pages",
        )));
    }
    let signer = match &caller.user {
        Some(user) => users::signer(batch, &space, user, &random)?,
        // Administration without a user is the keeper's.
        None => users::keeper(batch, &kept)?,
    };
    let context = CommandContext { space, no, caller: &caller, principal, signer, seal, random };
    moderation::check_quota(batch, &context, &command)?;
    match command {
        UserCommand::OpenThread(new) => open_thread(batch, &context, new),
        UserCommand::UpdateThread(thread, changes) => update_thread(batch, &context, &thread, changes),
        UserCommand::DeleteThread(thread) => delete_thread(batch, &context, &thread),
        UserCommand::Post(new) => post(batch, &context, new),
        UserCommand::Edit(place, content) => edit(batch, &context, &place, content),
        UserCommand::DeleteMessage(place) => edit(batch, &context, &place, DELETED.to_vec()),
        UserCommand::React(place, content) => react(batch, &context, &place, Some(content)),
        UserCommand::Unreact(place) => react(batch, &context, &place, None),
        UserCommand::MarkRead(thread, message) => mark_read(batch, &context, thread, message),
        UserCommand::Purge(target) => purge(batch, &context, target),
        UserCommand::Distance(other, distance) => moderation::keep_distance(batch, &context, &other, distance),
        UserCommand::Report(message, reason) => moderation::report(batch, &context, message, reason),
        UserCommand::Leave => moderation::leave(batch, &context),
    }
}

/// What the access function is asked for a deed.
fn action(command: &UserCommand) -> Action {
    match command {
        UserCommand::OpenThread(_) | UserCommand::Post(_) | UserCommand::React(..) | UserCommand::Unreact(_) => {
            Action::Write
        }
        UserCommand::UpdateThread(..)
        | UserCommand::DeleteThread(_)
        | UserCommand::Edit(..)
        | UserCommand::DeleteMessage(_) => Action::Change,
        UserCommand::Purge(_) => Action::Change,
        UserCommand::MarkRead(..) | UserCommand::Distance(..) | UserCommand::Report(..) | UserCommand::Leave => {
            Action::Own
        }
    }
}

fn open_thread(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    new: NewThread,
) -> Result<CommandResult, CommandError> {
    let mut fields = new.fields;
    if let Some(chosen) = &new.chosen {
        names::check_name(chosen)?;
        fields.insert("id".to_owned(), chosen.as_str().into());
    }
    if !new.participants.is_empty() {
        let mut identities = identities(batch, context, &new.participants)?;
        identities.push(context.signer.identity);
        fields.insert("participants".to_owned(), listed(identities));
    }
    if new.is_private {
        fields.insert("private".to_owned(), true.into());
    }
    let content = body::encode(&Value::Object(fields))?;
    if let Some(chosen) = &new.chosen
        && let Some(id) = earlier(batch, context, chosen, Kind::Thread, &content)?
    {
        return context.result(batch, id, false);
    }
    let id = make_thread(batch, context, new.chosen.as_deref(), content)?;
    context.result(batch, id, true)
}

fn make_thread(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    chosen: Option<&str>,
    content: Vec<u8>,
) -> Result<EventId, CommandError> {
    let mut draft = context.draft(Kind::Thread, Vec::new(), content);
    draft.aux = chosen.map_or(AuxKey::ZERO, chosen_key);
    make(batch, &context.signer.key, draft)
}

/// What already has a chosen id: the same thing said again, or something else.
fn earlier(
    batch: &Batch<'_>,
    context: &CommandContext<'_>,
    chosen: &str,
    kind: Kind,
    content: &[u8],
) -> Result<Option<EventId>, CommandError> {
    let db = batch.db();
    let Some((stamp, seq)) = db.chosen(context.no, chosen)? else { return Ok(None) };
    let row = db.event(seq)?.and_then(|row| row.meta);
    let is_same = match row {
        Some(meta) => {
            meta.kind == kind
                && db.identity(meta.author)? == context.signer.identity
                && db.shown(seq)? == ShownContent::Here(content.to_vec())
        }
        None => false,
    };
    if is_same { Ok(Some(stamp.id)) } else { Err(CommandError::Taken(chosen.to_owned())) }
}

fn update_thread(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    thread: &NameOrId,
    change: ThreadChange,
) -> Result<CommandResult, CommandError> {
    let (stamp, seq, meta) =
        thread_for(batch.db(), context.no, thread, &context.principal, Action::Change, context.who())?;
    // Everything is checked before anything is written.
    let mut contents = Vec::new();
    for (field, value) in change.fields {
        let content = Map::from_iter([(field.name().to_owned(), value)]);
        contents.push((field, body::encode(&Value::Object(content))?));
    }
    if change.participants.is_some() || change.is_private.is_some() {
        let participants_update = participants_update(batch, context, seq, change.participants, change.is_private)?;
        contents.push((ThreadField::Participants, body::encode(&Value::Object(participants_update))?));
    }
    context.audit(batch, &meta, "change thread", &stamp.id)?;
    for (field, content) in contents {
        let reference = Reference { role: Role::Thread, id: stamp.id };
        let mut draft = context.draft(Kind::ThreadUpdate, vec![reference], content);
        draft.aux = field.aux();
        make(batch, &context.signer.key, draft)?;
    }
    Ok(CommandResult { shown: stamp.id, seq, is_new: true })
}

fn delete_thread(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    thread: &NameOrId,
) -> Result<CommandResult, CommandError> {
    let (stamp, seq, meta) =
        thread_for(batch.db(), context.no, thread, &context.principal, Action::Change, context.who())?;
    context.audit(batch, &meta, "delete thread", &stamp.id)?;
    let reference = Reference { role: Role::Thread, id: stamp.id };
    make(batch, &context.signer.key, context.draft(Kind::ThreadDelete, vec![reference], Vec::new()))?;
    Ok(CommandResult { shown: stamp.id, seq, is_new: true })
}

fn post(batch: &mut Batch<'_>, context: &CommandContext<'_>, new: NewMessage) -> Result<CommandResult, CommandError> {
    if let Some(chosen) = &new.chosen {
        names::check_name(chosen)?;
        if let Some(id) = earlier(batch, context, chosen, Kind::Message, &new.content)? {
            let earlier = context.result(batch, id, false)?;
            return match &new.thread {
                Some(thread) if !is_in(batch, context, earlier.seq, thread)? => {
                    Err(CommandError::Taken(chosen.clone()))
                }
                _ => Ok(earlier),
            };
        }
    }
    if new.mentions.len() + new.attachments.len() > REFERENCES_MAX - 3 {
        return Err(CommandError::TooMany(REFERENCES_MAX - 3));
    }
    let place = place_for(batch, context, new.thread.as_ref())?;
    let mut references = message_references(batch, context, &new)?;
    let thread = match place {
        Some(thread) => thread,
        None => open_for(batch, context, new.thread.as_ref())?,
    };
    references.push(Reference { role: Role::Thread, id: thread });
    let mut draft = context.draft(Kind::Message, references, new.content);
    draft.aux = new.chosen.as_deref().map_or(AuxKey::ZERO, chosen_key);
    let id = make(batch, &context.signer.key, draft)?;
    context.result(batch, id, true)
}

/// Whether a message is in the thread of that name.
fn is_in(batch: &Batch<'_>, context: &CommandContext<'_>, message: Seq, thread: &NameOrId) -> StoreResult<bool> {
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
        if find(batch.db(), context.no, &NameOrId::Event(*file), Kind::File)?.is_none() {
            return Err(CommandError::Unknown("file"));
        }
        references.push(Reference { role: Role::Attachment, id: *file });
    }
    for identity in identities(batch, context, &new.mentions)? {
        references.push(Reference { role: Role::Mention, id: EventId(public_space(&identity).0) });
    }
    Ok(references)
}

/// The thread that a message goes to, unless it has to be opened first.
fn place_for(
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

/// Opens a thread for a message, under the id by which it was named.
fn open_for(
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
    make_thread(batch, context, chosen, content)
}

fn edit(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    place: &MessageRef,
    content: Vec<u8>,
) -> Result<CommandResult, CommandError> {
    let (stamp, seq, meta) =
        message_for(batch.db(), context.no, place, &context.principal, Action::Change, context.who())?;
    if is_deleted(batch.db(), seq)? {
        // Deleting it again changes nothing; nobody brings back what a moderator took away.
        return match content == DELETED {
            true => Ok(CommandResult { shown: stamp.id, seq, is_new: false }),
            false => Err(CommandError::Deleted),
        };
    }
    context.audit(batch, &meta, "edit message", &stamp.id)?;
    let reference = Reference { role: Role::Target, id: stamp.id };
    make(batch, &context.signer.key, context.draft(Kind::Edit, vec![reference], content))?;
    Ok(CommandResult { shown: stamp.id, seq, is_new: true })
}

fn react(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    place: &MessageRef,
    content: Option<Vec<u8>>,
) -> Result<CommandResult, CommandError> {
    let (stamp, seq, _) = message_for(batch.db(), context.no, place, &context.principal, Action::Write, context.who())?;
    if content.is_some() && is_deleted(batch.db(), seq)? {
        return Err(CommandError::Deleted);
    }
    let kind = if content.is_some() { Kind::Reaction } else { Kind::ReactionRemoval };
    let reference = Reference { role: Role::Target, id: stamp.id };
    make(batch, &context.signer.key, context.draft(kind, vec![reference], content.unwrap_or_default()))?;
    Ok(CommandResult { shown: stamp.id, seq, is_new: true })
}

fn mark_read(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    thread: NameOrId,
    message: NameOrId,
) -> Result<CommandResult, CommandError> {
    let place = MessageRef { thread: Some(thread), message };
    let (stamp, seq, meta) =
        message_for(batch.db(), context.no, &place, &context.principal, Action::Own, context.who())?;
    let Some(thread) = meta.subject else { return Err(CommandError::Unknown("thread")) };
    let thread = batch.db().id_of(thread)?;
    let references = vec![Reference { role: Role::Thread, id: thread }, Reference { role: Role::Target, id: stamp.id }];
    make(batch, &context.signer.key, context.draft(Kind::ReadMarker, references, Vec::new()))?;
    Ok(CommandResult { shown: stamp.id, seq, is_new: true })
}

fn purge(batch: &mut Batch<'_>, context: &CommandContext<'_>, target: EventId) -> Result<CommandResult, CommandError> {
    let db = batch.db();
    let Some(seq) = db.seq(&target)? else { return Err(CommandError::Unknown("event")) };
    let Some(meta) = db.event(seq)?.and_then(|row| row.meta).filter(|meta| meta.space == context.no) else {
        return Err(CommandError::Unknown("event"));
    };
    let is_own = db.identity(meta.author)? == context.signer.identity;
    let facts = Facts { is_closed_to_caller: false, is_own, is_known: true };
    match decide(&context.principal, Action::Change, &facts) {
        Decision::Allow => {}
        denied => return Err(CommandError::Denied(denied)),
    }
    context.audit(batch, &meta, "purge", &target)?;
    let reference = Reference { role: Role::Target, id: target };
    make(batch, &context.signer.key, context.draft(Kind::Delete, vec![reference], Vec::new()))?;
    Ok(CommandResult { shown: target, seq, is_new: true })
}
