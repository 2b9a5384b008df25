//! What users do about each other: blocking, reporting, leaving; and how much storage they may use.

use crate::commands::admin::by_keeper;
use crate::commands::conversation::CommandContext;
use crate::commands::lookup::message_for;
use crate::commands::{CommandError, CommandResult, MessageRef, NameOrId};
use engine::access::Action;
use engine::reads::Reads as _;
use model::envelope::{Reference, Role};
use model::payload::Payload;
use model::{Identity, Kind, Seq, SpaceNo};
use store::Batch;
use store::shared::moderation::{BlockKind, UserReport};

/// How many others one user may block or mute: they are looked at with every request.
const BLOCKS_MAX: usize = 1000;
/// The longest reason of a report.
const REASON_BYTES_MAX: usize = 2000;

/// The result of a command that makes no event: the membership of whoever gave it.
fn membership_result(batch: &Batch<'_>, context: &CommandContext<'_>) -> Result<CommandResult, CommandError> {
    let shown = context.signer.authority;
    let seq = batch.db().seq(&shown)?.unwrap_or(Seq(0));
    Ok(CommandResult { shown, seq, is_new: true })
}

pub(super) fn set_block(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    other: &str,
    block: Option<BlockKind>,
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
    if block.is_some() && batch.db().blocks_by(&context.space, &context.signer.identity)?.len() >= BLOCKS_MAX {
        return Err(CommandError::TooManyBlocked(BLOCKS_MAX));
    }
    batch.set_block(&context.space, &context.signer.identity, &identity, block)?;
    membership_result(batch, context)
}

pub(super) fn report_message(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    message: &NameOrId,
    reason: &str,
) -> Result<CommandResult, CommandError> {
    let place = MessageRef { thread: None, message: message.clone() };
    let (stamp, seq, _) = message_for(batch.db(), context.no, &place, &context.principal, Action::Read, context.who())?;
    let reason = reason[..reason.floor_char_boundary(REASON_BYTES_MAX)].to_owned();
    let reporter = context.signer.identity;
    let report = UserReport { reporter, message: stamp.id, reason, at: batch.now(), settled: None };
    batch.add_report(&context.space, &report)?;
    Ok(CommandResult { shown: stamp.id, seq, is_new: true })
}

/// Ends the caller's own membership. What they wrote stays.
pub(super) fn leave_space(batch: &mut Batch<'_>, context: &CommandContext<'_>) -> Result<CommandResult, CommandError> {
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
    membership_result(batch, context)
}

/// Ends a command with which a user or a space would keep more than they may.
pub(super) fn check_quota(
    batch: &mut Batch<'_>,
    space: SpaceNo,
    author: &Identity,
    bytes: u64,
) -> Result<(), CommandError> {
    let policy = *batch.db().policy();
    if let Some(most) = policy.user_bytes_max
        && let Some(author) = batch.db().author_no(author)?
        && batch.db().kept_bytes(space, author)?.saturating_add(bytes) > most
    {
        return Err(CommandError::OverQuota("user"));
    }
    if let Some(most) = policy.space_bytes_max
        && !batch.claim_bytes(space, bytes, most)?
    {
        return Err(CommandError::OverQuota("space"));
    }
    Ok(())
}
