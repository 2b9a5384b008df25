//! Requests of administration: safe to repeat, and written into the audit log.

use crate::commands::admin::{AdminOutcome, carry_out, describe_for_audit};
use crate::commands::{AdminCommand, AdminError, AdminResult, CommandError, IdempotencyKey};
use crate::writer_command::WriterCommand;
use store::Batch;
use store::shared::api_keys::{IdempotencyRecord, RequestOutcome};

/// An administrative command, done once however often it is sent.
#[derive(Clone, Debug)]
pub struct AdminRequest {
    /// How the audit log calls whoever asks.
    pub who: String,
    /// What makes it safe to repeat.
    pub idempotency: Option<IdempotencyKey>,
    /// What the secrets that it makes are derived from, so that a repetition can show them again.
    pub salt: [u8; 16],
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
                true => repeat_result(batch, what, earlier.outcome),
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
            let outcome = note_result(&done);
            batch.keep_asked(who_and_key, &IdempotencyRecord { fingerprint, at: batch.now(), outcome })?;
        }
        Ok(done)
    }
}

/// What is kept of a result, enough to give it again.
fn note_result(done: &AdminResult) -> RequestOutcome {
    match done {
        AdminResult::Founded(space) => RequestOutcome::Space(*space),
        AdminResult::Admitted(membership) => RequestOutcome::Event(*membership),
        AdminResult::Made(salt) => RequestOutcome::Secret(*salt),
        AdminResult::Begun(job) => RequestOutcome::Job(*job),
        AdminResult::User(_) | AdminResult::Done => RequestOutcome::Done,
    }
}

/// The result of what was done before, from what was kept of it.
fn repeat_result(batch: &Batch<'_>, what: &AdminCommand, noted: RequestOutcome) -> AdminOutcome {
    Ok(match (noted, what) {
        (RequestOutcome::Space(space), _) => AdminResult::Founded(space),
        (RequestOutcome::Event(membership), _) => AdminResult::Admitted(membership),
        (RequestOutcome::Secret(salt), _) => AdminResult::Made(salt),
        (RequestOutcome::Job(job), _) => AdminResult::Begun(job),
        (RequestOutcome::Done, AdminCommand::SetRole { space, user, .. }) => match batch.db().user(space, user)? {
            Some(user) => AdminResult::User(user),
            None => return Err(AdminError::NoSuchUser),
        },
        (RequestOutcome::Done, _) => AdminResult::Done,
    })
}
