//! What users do about each other: keeping a distance, reporting, leaving; and what storage they may use.

use crate::commands::admin::by_keeper;
use crate::commands::conversation::CommandContext;
use crate::commands::lookup::message_for;
use crate::commands::{CommandError, CommandResult, MessageRef, NameOrId, UserCommand};
use engine::access::Action;
use engine::reads::Reads as _;
use model::envelope::{Reference, Role};
use model::payload::Payload;
use model::{Kind, Seq};
use store::Batch;
use store::shared::moderation::{BlockKind, UserReport};

/// Others whom one user keeps at a distance: they are looked at with every request.
const DISTANCES_MAX: usize = 1000;
/// The longest reason of a report.
const REASON_BYTES_MAX: usize = 2000;

/// What an act that makes no event shows: the membership that it was done on.
fn done(batch: &Batch<'_>, context: &CommandContext<'_>) -> Result<CommandResult, CommandError> {
    let shown = context.signer.authority;
    let seq = batch.db().seq(&shown)?.unwrap_or(Seq(0));
    Ok(CommandResult { shown, seq, is_new: true })
}

pub(super) fn keep_distance(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    other: &str,
    distance: Option<BlockKind>,
) -> Result<CommandResult, CommandError> {
    let identity = match other.parse() {
        Ok(identity) => Some(identity),
        Err(_) => batch.db().user(&context.space, other)?.map(|user| user.identity),
    };
    let Some(identity) = identity else { return Err(CommandError::Unknown("user")) };
    let is_known =
        batch.db().author_no(&identity)?.is_some() || batch.db().user_name(&context.space, &identity)?.is_some();
    if identity == context.signer.identity || !is_known {
        return Err(CommandError::Unknown("other user"));
    }
    if distance.is_some() && batch.db().distances(&context.space, &context.signer.identity)?.len() >= DISTANCES_MAX {
        return Err(CommandError::TooManyBlocked(DISTANCES_MAX));
    }
    batch.set_distance(&context.space, &context.signer.identity, &identity, distance)?;
    done(batch, context)
}

pub(super) fn report(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    message: NameOrId,
    mut reason: String,
) -> Result<CommandResult, CommandError> {
    let place = MessageRef { thread: None, message };
    let (stamp, seq, _) = message_for(batch.db(), context.no, &place, &context.principal, Action::Read, context.who())?;
    reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
    let reporter = context.signer.identity;
    let report = UserReport { reporter, message: stamp.id, reason, at: batch.now(), settled: None };
    batch.add_report(&context.space, &report)?;
    Ok(CommandResult { shown: stamp.id, seq, is_new: true })
}

/// Ends the caller's own membership. What they wrote stays.
pub(super) fn leave(batch: &mut Batch<'_>, context: &CommandContext<'_>) -> Result<CommandResult, CommandError> {
    let found = match &context.caller.user {
        Some(user) => batch.db().user(&context.space, user)?,
        None => None,
    };
    let Some(mut user) = found.filter(|user| !user.is_gone) else { return Err(CommandError::Unknown("user")) };
    let target = Some(Reference { role: Role::Target, id: user.membership });
    by_keeper(batch, &context.space, Kind::Removal, Payload::None, target)?;
    user.is_gone = true;
    batch.keep_user(&context.space, &user)?;
    batch.forget_account(&context.space, &user.id)?;
    batch.audit(Some(context.space), &context.caller.audit_name, "leave", &user.id)?;
    done(batch, context)
}

/// Turns away what would keep more than a user or a space may.
pub(super) fn check_quota(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    command: &UserCommand,
) -> Result<(), CommandError> {
    let policy = *batch.db().policy();
    let bytes = match command {
        UserCommand::Post(new) => new.content.len(),
        UserCommand::Edit(_, content) | UserCommand::React(_, content) => content.len(),
        UserCommand::OpenThread(_) | UserCommand::UpdateThread(..) => 1,
        UserCommand::DeleteThread(_)
        | UserCommand::DeleteMessage(_)
        | UserCommand::Unreact(_)
        | UserCommand::MarkRead(..) => return Ok(()),
        UserCommand::Purge(_) | UserCommand::Distance(..) | UserCommand::Report(..) | UserCommand::Leave => {
            return Ok(());
        }
    } as u64;
    if let Some(most) = policy.user_bytes_max
        && let Some(author) = batch.db().author_no(&context.signer.identity)?
        && batch.db().kept_bytes(context.no, author)?.saturating_add(bytes) > most
    {
        return Err(CommandError::OverQuota("user"));
    }
    if let Some(most) = policy.space_bytes_max
        && !batch.claim_bytes(context.no, bytes, most)?
    {
        return Err(CommandError::OverQuota("space"));
    }
    Ok(())
}
