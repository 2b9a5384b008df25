//! Webhooks: added, changed and ended by administrators; their progress is saved by whoever delivers.

use crate::commands::admin::{AdminError, AdminResult};
use crate::commands::users;
use engine::reads::StoreResult;
use model::{Nanos, SpaceId};
use store::Batch;
use store::shared::webhooks::{Webhook, WebhookId, WebhookProgress};

/// How long the previous secret signs beside the new one after a rotation.
const PREVIOUS_NANOS: u64 = 24 * 3600 * Nanos::SECOND;
/// How many webhooks a space may have.
const PER_SPACE_MAX: usize = 100;

/// What to do with a webhook.
#[derive(Clone, Debug)]
pub enum WebhookCommand {
    /// Add a webhook, which gets everything that happens from now on.
    Add {
        url: String,
        /// What signs its deliveries.
        secret: Box<[u8; 32]>,
        /// The kinds of live events to deliver; all if empty.
        kinds: Vec<String>,
    },
    /// Let another secret sign; the one before signs beside it for a day.
    Rotate(Box<[u8; 32]>),
    /// Deliver again, after it was disabled.
    Enable,
    /// Remove the webhook.
    End,
}

impl WebhookCommand {
    /// How the audit log calls it.
    pub(super) fn audit_word(&self) -> &'static str {
        match self {
            WebhookCommand::Add { .. } => "add webhook",
            WebhookCommand::Rotate(_) => "rotate webhook secret",
            WebhookCommand::Enable => "enable webhook",
            WebhookCommand::End => "end webhook",
        }
    }
}

pub(super) fn change_webhook(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    id: &WebhookId,
    command: &WebhookCommand,
    salt: [u8; 16],
) -> Result<AdminResult, AdminError> {
    users::hosted(batch.db(), space)?;
    let makes_a_secret = matches!(command, WebhookCommand::Add { .. } | WebhookCommand::Rotate(_));
    let known = batch.db().webhook(space, id)?;
    let changed = match (command, known) {
        (WebhookCommand::Add { url, secret, kinds }, _) => {
            if batch.db().webhooks(Some(space))?.len() >= PER_SPACE_MAX {
                return Err(AdminError::TooManyWebhooks);
            }
            let progress = WebhookProgress::told_up_to(batch.db().position()?);
            Webhook {
                url: url.clone(),
                secret: **secret,
                previous: None,
                kinds: kinds.clone(),
                created_at: batch.now(),
                progress,
            }
        }
        (_, None) => return Err(AdminError::NoSuchWebhook),
        (WebhookCommand::Rotate(secret), Some(known)) => {
            let previous = Some((known.secret, batch.now().plus(PREVIOUS_NANOS)));
            Webhook { secret: **secret, previous, ..known }
        }
        (WebhookCommand::Enable, Some(mut known)) => {
            known.progress =
                WebhookProgress { epoch: known.progress.epoch, number: known.progress.number, ..empty(batch)? };
            known
        }
        (WebhookCommand::End, Some(_)) => {
            batch.forget_webhook(space, id)?;
            return Ok(AdminResult::Done);
        }
    };
    batch.keep_webhook(space, id, &changed)?;
    Ok(if makes_a_secret { AdminResult::Made(salt) } else { AdminResult::Done })
}

fn empty(batch: &Batch<'_>) -> StoreResult<WebhookProgress> {
    Ok(WebhookProgress::told_up_to(batch.db().position()?))
}

/// Saves how far a webhook has delivered. That it was disabled stands in the audit log.
pub(crate) fn save_progress(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    id: &WebhookId,
    progress: &WebhookProgress,
) -> StoreResult<()> {
    // It may have been ended while something was on its way.
    let Some(mut webhook) = batch.db().webhook(space, id)? else { return Ok(()) };
    if let (None, Some(why)) = (&webhook.progress.disabled, &progress.disabled) {
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        batch.audit(Some(*space), "this node", "disable webhook", &format!("{id}: {why}"))?;
    }
    webhook.progress = progress.clone();
    batch.keep_webhook(space, id, &webhook)
}
