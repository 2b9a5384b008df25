//! Requests of administration: safe to repeat, and written into the audit log.

use crate::commands::admin::{AdminOutcome, carry_out, describe_for_audit};
use crate::commands::{AdminCommand, AdminError, AdminResult, CommandError, IdempotencyKey, WebhookCommand};
use crate::writer_command::WriterCommand;
use model::{EventId, SpaceId};
use store::Batch;
use store::shared::api_keys::IdempotencyRecord;

/// An administrative command, done once however often it is sent.
#[derive(Clone, Debug)]
pub struct AdminRequest {
    /// How the audit log calls whoever asks.
    pub who: String,
    /// What makes it safe to repeat.
    pub idempotency: Option<IdempotencyKey>,
    /// What the secrets that it makes are derived from, so that a repetition can show them again.
    pub salt: [u8; 16],
    /// What to do.
    pub what: AdminCommand,
}

impl AdminRequest {
    /// A request that is not repeated.
    pub fn by(who: &str, what: AdminCommand) -> AdminRequest {
        AdminRequest { who: who.to_owned(), idempotency: None, salt: [0; 16], what }
    }
}

impl WriterCommand for AdminRequest {
    type Answer = AdminResult;
    type Error = AdminError;

    /// Does it, and writes it into the audit log. A repetition is answered as the first.
    fn run(&self, batch: &mut Batch<'_>) -> Result<AdminResult, AdminError> {
        let AdminRequest { who, idempotency, salt, what } = self;
        if let Some(idempotency) = idempotency
            && let Some(earlier) = batch.db().asked(&idempotency.who_and_key, batch.now())?
        {
            return match earlier.fingerprint == idempotency.fingerprint {
                true => repeat_result(batch, what, earlier.event.0),
                false => Err(CommandError::OtherRequest.into()),
            };
        }
        let (space, word, target) = describe_for_audit(what);
        let space = match what {
            AdminCommand::EndKey { id, .. } | AdminCommand::RotateKey { old: id, .. } => {
                batch.db().api_key(id)?.map(|key| key.space)
            }
            _ => space,
        };
        let done = carry_out(batch, who, *salt, what)?;
        batch.audit(space, who, word, &target)?;
        if let Some(IdempotencyKey { who_and_key, fingerprint }) = *idempotency {
            let event = EventId(encode_result(&done));
            batch.keep_asked(who_and_key, &IdempotencyRecord { fingerprint, at: batch.now(), event })?;
        }
        Ok(done)
    }
}

/// What is kept of a result, enough to give it again.
fn encode_result(done: &AdminResult) -> [u8; 16] {
    match done {
        AdminResult::Founded(space) => space.0,
        AdminResult::Admitted(membership) => membership.0,
        AdminResult::Made(salt) => *salt,
        AdminResult::Begun(job) => u128::from(*job).to_be_bytes(),
        AdminResult::User(_) | AdminResult::Done => [0; 16],
    }
}

/// The result of what was done before, from what was kept of it.
fn repeat_result(batch: &Batch<'_>, what: &AdminCommand, kept: [u8; 16]) -> AdminOutcome {
    let job = || AdminResult::Begun(u64::try_from(u128::from_be_bytes(kept)).unwrap_or_default());
    Ok(match what {
        AdminCommand::FoundSpace { .. } => AdminResult::Founded(SpaceId(kept)),
        AdminCommand::AdmitIdentity(..) => AdminResult::Admitted(EventId(kept)),
        AdminCommand::AddKey { .. } | AdminCommand::RotateKey { .. } | AdminCommand::AddSigningKey(..) => {
            AdminResult::Made(kept)
        }
        AdminCommand::Webhook(_, _, WebhookCommand::Add { .. } | WebhookCommand::Rotate(_)) => AdminResult::Made(kept),
        AdminCommand::EraseUser(..) | AdminCommand::EndSpace(_) => job(),
        AdminCommand::Protect(..) | AdminCommand::Begin(_) => job(),
        AdminCommand::SetRole { space, user, .. } => match batch.db().user(space, user)? {
            Some(user) => AdminResult::User(user),
            None => return Err(AdminError::NoSuchUser),
        },
        AdminCommand::EndKey { .. } | AdminCommand::EndSigningKey(..) | AdminCommand::Webhook(..) => AdminResult::Done,
        AdminCommand::DestroyKeys(_) | AdminCommand::Retain(..) | AdminCommand::SettleReport(..) => AdminResult::Done,
        AdminCommand::Note(..) => AdminResult::Done,
    })
}
