//! Webhooks: made, changed and ended by administrators, and moved on by whoever tells.

use super::administration::{Administered, CannotAdminister};
use super::{go, people};
use engine::reads::Answer;
use model::{Nanos, SpaceId};
use store::Batch;
use store::webhooks::{Progress, Webhook, WebhookId};

/// For how long the secret before a rotation still signs.
const PREVIOUS_NANOS: u64 = 24 * 3600 * Nanos::SECOND;
/// More webhooks than this a space does not have.
const PER_SPACE_MAX: usize = 100;

/// What to do with a webhook.
#[derive(Clone, Debug)]
pub enum Hooking {
    /// Make it: from now on it is told what happens.
    Add {
        /// Where to tell.
        url: String,
        /// What signs.
        secret: Box<[u8; 32]>,
        /// What to tell; all of it if empty.
        kinds: Vec<String>,
    },
    /// Let another secret sign; the one before signs beside it for a day.
    Rotate(Box<[u8; 32]>),
    /// Tell it again, after it was disabled.
    Enable,
    /// End it.
    End,
}

impl Hooking {
    /// How the audit log tells it.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Hooking::Add { .. } => "add webhook",
            Hooking::Rotate(_) => "rotate webhook secret",
            Hooking::Enable => "enable webhook",
            Hooking::End => "end webhook",
        }
    }
}

pub(super) fn administer(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    id: &WebhookId,
    hooking: Hooking,
    salt: [u8; 16],
) -> Answer<Result<Administered, CannotAdminister>> {
    go!(people::kept(batch, space));
    let makes_a_secret = matches!(hooking, Hooking::Add { .. } | Hooking::Rotate(_));
    let known = batch.db().webhook(space, id)?;
    let changed = match (hooking, known) {
        (Hooking::Add { url, secret, kinds }, _) => {
            if batch.db().webhooks(Some(space))?.len() >= PER_SPACE_MAX {
                return Ok(Err(CannotAdminister::TooManyWebhooks));
            }
            let progress = Progress::told_up_to(batch.db().position()?);
            Webhook { url, secret: *secret, previous: None, kinds, created_at: batch.now(), progress }
        }
        (_, None) => return Ok(Err(CannotAdminister::NoSuchWebhook)),
        (Hooking::Rotate(secret), Some(known)) => {
            let previous = Some((known.secret, batch.now().plus(PREVIOUS_NANOS)));
            Webhook { secret: *secret, previous, ..known }
        }
        (Hooking::Enable, Some(mut known)) => {
            known.progress = Progress { epoch: known.progress.epoch, number: known.progress.number, ..empty(batch)? };
            known
        }
        (Hooking::End, Some(_)) => {
            batch.forget_webhook(space, id)?;
            return Ok(Ok(Administered::Done));
        }
    };
    batch.keep_webhook(space, id, &changed)?;
    Ok(Ok(if makes_a_secret { Administered::Made(salt) } else { Administered::Done }))
}

fn empty(batch: &Batch<'_>) -> Answer<Progress> {
    Ok(Progress::told_up_to(batch.db().position()?))
}

/// Notes how far a webhook has told. That it was disabled is told in the audit log.
pub(crate) fn progress(batch: &mut Batch<'_>, space: &SpaceId, id: &WebhookId, progress: Progress) -> Answer<()> {
    // It may have been ended while something was on its way.
    let Some(mut webhook) = batch.db().webhook(space, id)? else { return Ok(()) };
    if let (None, Some(why)) = (&webhook.progress.disabled, &progress.disabled) {
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        batch.audit(Some(*space), "this node", "disable webhook", &format!("{id}: {why}"))?;
    }
    webhook.progress = progress;
    batch.keep_webhook(space, id, &webhook)
}
