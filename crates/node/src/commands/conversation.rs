//! The one way of every user command: who acts is found, the access function is asked, quotas are checked, and then the
//! command is carried out.

use crate::commands::accounts::OPERATOR;
use crate::commands::lookup::{principal, version_of};
use crate::commands::users::{self, Signer};
use crate::commands::{
    Caller, CallerKind, CommandError, CommandRequest, CommandResult, UserCommand, create_event, deletion, messages,
    moderation, threads,
};
use engine::access::{Action, Decision, Facts, Principal, decide};
use engine::create::{NewEvent, Seal};
use engine::reads::{Reads as _, StoreResult};
use engine::rows::Meta;
use model::envelope::{Reference, Role};
use model::payload::Payload;
use model::{AuxKey, EventId, Identity, Kind, SpaceId, SpaceNo};
use store::Batch;

/// What the steps of one command share.
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

    /// Makes an event that the caller signs.
    pub(super) fn create(
        &self,
        batch: &mut Batch<'_>,
        (kind, aux): (Kind, AuxKey),
        references: Vec<Reference>,
        content: Vec<u8>,
    ) -> Result<EventId, CommandError> {
        let authority = Reference { role: Role::Authority, id: self.signer.authority };
        let mut references = [vec![authority], references].concat();
        references.sort();
        references.dedup();
        let (space, seal) = (self.space, self.seal.clone());
        let draft = NewEvent { kind, space, aux, payload: Payload::None, references, content, seal };
        create_event(batch, &self.signer.key, draft)
    }

    /// Writes into the audit log what an admin does to what others wrote.
    pub(super) fn audit(&self, batch: &mut Batch<'_>, meta: &Meta, what: &str, target: &EventId) -> StoreResult<()> {
        if batch.db().identity(meta.author)? == self.signer.identity {
            return Ok(());
        }
        batch.audit(Some(self.space), &self.audit_name(), what, &target.to_string())
    }

    /// How the audit log calls whoever acts.
    pub(super) fn audit_name(&self) -> String {
        let Caller { user, audit_name, .. } = self.caller;
        user.as_deref().map_or_else(|| audit_name.clone(), |user| format!("{audit_name} for {user}"))
    }

    pub(super) fn result(
        &self,
        batch: &Batch<'_>,
        shown: EventId,
        is_new: bool,
    ) -> Result<CommandResult, CommandError> {
        let seq = batch.db().seq(&shown)?.ok_or(CommandError::Unknown("event"))?;
        Ok(CommandResult { shown, seq, is_new })
    }
}

/// Who acts, once they were found and may do such a thing at all.
pub(super) fn context<'a>(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    caller: &'a Caller,
    random: &[u8; 32],
    action: Action,
) -> Result<CommandContext<'a>, CommandError> {
    let no = users::space_no(batch, space)?;
    let (principal, _) = principal(batch.db(), space, caller, batch.now())?;
    check_access(&principal, action, &Facts::default())?;
    let kept = users::hosted(batch.db(), space)?;
    let seal = users::seal(batch.db(), space, &kept)?;
    if caller.user.as_deref() == Some(OPERATOR) && matches!(caller.kind, CallerKind::Key(_)) {
        let why = "this name is the operator's, who signs in to the pages";
        return Err(CommandError::Denied(Decision::Forbidden(why)));
    }
    let signer = match &caller.user {
        Some(user) => users::signer(batch, space, user, random)?,
        // Administration without a user is the keeper's.
        None => users::keeper(batch, &kept)?,
    };
    Ok(CommandContext { space: *space, no, caller, principal, signer, seal, random: *random })
}

/// Carries out a user command.
pub(super) fn run(batch: &mut Batch<'_>, request: &CommandRequest) -> Result<CommandResult, CommandError> {
    let CommandRequest { space, caller, command, random, .. } = request;
    let (principal, _) = principal(batch.db(), space, caller, batch.now())?;
    check_access(&principal, action(command), &Facts::default())?;
    if let Some(expected) = &request.expected
        && version_of(batch.db(), expected.seq)? != expected.version
    {
        return Err(CommandError::Changed);
    }
    if let (UserCommand::Leave, Some(user)) = (command, &caller.user)
        && batch.db().user(space, user)?.is_none()
    {
        return Err(CommandError::Unknown("user"));
    }
    let context = context(batch, space, caller, random, action(command))?;
    let no = context.no;
    if let Some(bytes) = bytes_to_keep(command) {
        moderation::check_quota(batch, no, &context.signer.identity, bytes)?;
    }
    match command {
        UserCommand::OpenThread(new) => threads::open_thread(batch, &context, new),
        UserCommand::UpdateThread(thread, change) => threads::update_thread(batch, &context, thread, change),
        UserCommand::DeleteThread(thread) => deletion::delete_thread(batch, &context, thread),
        UserCommand::Post(new) => messages::post_message(batch, &context, new),
        UserCommand::Edit(message, content) => messages::edit_message(batch, &context, message, content),
        UserCommand::DeleteMessage(message) => deletion::delete_message(batch, &context, message),
        UserCommand::React(message, content) => messages::add_reaction(batch, &context, message, content),
        UserCommand::Unreact(message) => messages::remove_reaction(batch, &context, message),
        UserCommand::MarkRead(thread, message) => messages::mark_read(batch, &context, thread, message),
        UserCommand::Purge(target) => deletion::purge_event(batch, &context, target),
        UserCommand::SetBlock(other, block) => moderation::set_block(batch, &context, other, *block),
        UserCommand::Report(message, reason) => moderation::report_message(batch, &context, message, reason),
        UserCommand::Leave => moderation::leave_space(batch, &context),
    }
}

/// Ends a command that the access function does not allow.
pub(super) fn check_access(principal: &Principal, action: Action, facts: &Facts) -> Result<(), CommandError> {
    match decide(principal, action, facts) {
        Decision::Allow => Ok(()),
        denied => Err(CommandError::Denied(denied)),
    }
}

/// What the access function is asked for a command.
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
        UserCommand::MarkRead(..) | UserCommand::SetBlock(..) | UserCommand::Report(..) | UserCommand::Leave => {
            Action::Own
        }
    }
}

/// How much storage a command asks for. What frees storage, or is bounded otherwise, asks for none.
fn bytes_to_keep(command: &UserCommand) -> Option<u64> {
    match command {
        UserCommand::Post(new) => Some(new.content.len() as u64),
        UserCommand::Edit(_, content) | UserCommand::React(_, content) => Some(content.len() as u64),
        UserCommand::OpenThread(_) | UserCommand::UpdateThread(..) => Some(1),
        UserCommand::DeleteThread(_)
        | UserCommand::DeleteMessage(_)
        | UserCommand::Unreact(_)
        | UserCommand::MarkRead(..) => None,
        UserCommand::Purge(_) | UserCommand::SetBlock(..) | UserCommand::Report(..) | UserCommand::Leave => None,
    }
}
