//! Orders: acts of administration that are safe to repeat, and stand in the audit log.

use crate::commands::admin::{AdminOutcome, carry_out, told};
use crate::commands::{AdminCommand, AdminError, AdminResult, CommandError, IdempotencyKey, WebhookCommand};
use model::{EventId, SpaceId};
use store::Batch;
use store::shared::api_keys::IdempotencyRecord;

/// An act of administration, once.
#[derive(Clone, Debug)]
pub struct AdminRequest {
    /// How the audit log calls whoever gives it.
    pub who: String,
    /// What makes it safe to repeat.
    pub idempotency: Option<IdempotencyKey>,
    /// What the secrets that it makes are derived from, so that a repetition can show them again.
    pub salt: [u8; 16],
    /// What to do.
    pub what: AdminCommand,
}

impl AdminRequest {
    /// An order that is not repeated.
    pub fn by(who: &str, what: AdminCommand) -> AdminRequest {
        AdminRequest { who: who.to_owned(), idempotency: None, salt: [0; 16], what }
    }
}

/// Does it, and writes it into the audit log. A repetition is answered as the first.
pub(crate) fn administer(batch: &mut Batch<'_>, order: AdminRequest) -> AdminOutcome {
    let AdminRequest { who, idempotency, salt, what } = order;
    if let Some(idempotency) = idempotency
        && let Some(earlier) = batch.db().asked(&idempotency.who_and_key, batch.now())?
    {
        return match earlier.fingerprint == idempotency.fingerprint {
            true => again(batch, &what, earlier.event.0),
            false => Err(CommandError::OtherRequest.into()),
        };
    }
    let (space, word, target) = told(&what);
    let space = match &what {
        AdminCommand::EndKey { id, .. } | AdminCommand::RotateKey { old: id, .. } => {
            batch.db().api_key(id)?.map(|key| key.space)
        }
        _ => space,
    };
    let done = carry_out(batch, &who, salt, what)?;
    batch.audit(space, &who, word, &target)?;
    if let Some(IdempotencyKey { who_and_key, fingerprint }) = idempotency {
        let event = EventId(noted(&done));
        batch.keep_asked(who_and_key, &IdempotencyRecord { fingerprint, at: batch.now(), event })?;
    }
    Ok(done)
}

/// What is noted of an outcome, enough to give it again.
fn noted(done: &AdminResult) -> [u8; 16] {
    match done {
        AdminResult::Founded(space) => space.0,
        AdminResult::Admitted(membership) => membership.0,
        AdminResult::Made(salt) => *salt,
        AdminResult::Begun(job) => u128::from(*job).to_be_bytes(),
        AdminResult::User(_) | AdminResult::Done => [0; 16],
    }
}

/// The outcome of what was done before, from what was noted.
fn again(batch: &Batch<'_>, what: &AdminCommand, noted: [u8; 16]) -> AdminOutcome {
    let job = || AdminResult::Begun(u64::try_from(u128::from_be_bytes(noted)).unwrap_or_default());
    Ok(match what {
        AdminCommand::FoundSpace { .. } => AdminResult::Founded(SpaceId(noted)),
        AdminCommand::AdmitIdentity(..) => AdminResult::Admitted(EventId(noted)),
        AdminCommand::AddKey { .. } | AdminCommand::RotateKey { .. } | AdminCommand::AddSigningKey(..) => {
            AdminResult::Made(noted)
        }
        AdminCommand::Webhook(_, _, WebhookCommand::Add { .. } | WebhookCommand::Rotate(_)) => AdminResult::Made(noted),
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
