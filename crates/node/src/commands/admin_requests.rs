//! Orders: acts of administration that are safe to repeat, and stand in the audit log.

use crate::commands::admin::{AdminOutcome, carry_out, told};
use crate::commands::{AdminCommand, AdminError, AdminResult, CommandError, IdempotencyKey, go};
use store::Batch;
use store::shared::api_keys::{IdempotencyRecord, RequestOutcome};

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
            true => again(batch, &what, earlier.outcome),
            false => Ok(Err(CommandError::OtherRequest.into())),
        };
    }
    let (space, word, target) = told(&what);
    let space = match &what {
        AdminCommand::EndKey { id, .. } | AdminCommand::RotateKey { old: id, .. } => {
            batch.db().api_key(id)?.map(|key| key.space)
        }
        _ => space,
    };
    let done = go!(carry_out(batch, &who, salt, what));
    batch.audit(space, &who, word, &target)?;
    if let Some(IdempotencyKey { who_and_key, fingerprint }) = idempotency {
        let outcome = noted(&done);
        batch.keep_asked(who_and_key, &IdempotencyRecord { fingerprint, at: batch.now(), outcome })?;
    }
    Ok(Ok(done))
}

/// What is noted of an outcome, enough to give it again.
fn noted(done: &AdminResult) -> RequestOutcome {
    match done {
        AdminResult::Founded(space) => RequestOutcome::Space(*space),
        AdminResult::Admitted(membership) => RequestOutcome::Event(*membership),
        AdminResult::Made(salt) => RequestOutcome::Secret(*salt),
        AdminResult::Begun(job) => RequestOutcome::Job(*job),
        AdminResult::User(_) | AdminResult::Done => RequestOutcome::Done,
    }
}

/// The outcome of what was done before, from what was noted.
fn again(batch: &Batch<'_>, what: &AdminCommand, noted: RequestOutcome) -> AdminOutcome {
    Ok(Ok(match (noted, what) {
        (RequestOutcome::Space(space), _) => AdminResult::Founded(space),
        (RequestOutcome::Event(membership), _) => AdminResult::Admitted(membership),
        (RequestOutcome::Secret(salt), _) => AdminResult::Made(salt),
        (RequestOutcome::Job(job), _) => AdminResult::Begun(job),
        (RequestOutcome::Done, AdminCommand::SetRole { space, user, .. }) => match batch.db().user(space, user)? {
            Some(user) => AdminResult::User(user),
            None => return Ok(Err(AdminError::NoSuchUser)),
        },
        (RequestOutcome::Done, _) => AdminResult::Done,
    }))
}
