//! Webhooks: where a space tells an application what happens in it, and how far it has told.
//!
//! The row of its progress is its outbox. It holds a journal position; what is after it is still to be told. So nothing is
//! stored twice, nothing that was deleted rests in a queue, and an entry is told again until it was taken. Where a webhook
//! tells and what signs is shared; how far it has told is this node's own, as the journal is.

use crate::database::batch::Batch;
use crate::database::db::Db;
use crate::encode::{from_row, to_row};
use crate::keys::WebhookKey;
use crate::shared::Webhooks;
use crate::tables::TableReads;
use engine::reads::StoreResult;
use model::{Nanos, Position, SpaceId};
use serde::{Deserialize, Serialize};
use std::ops::Bound;

/// The id of a webhook, which is random.
pub type WebhookId = [u8; 8];

/// A webhook.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The address that requests are sent to.
    pub url: String,
    /// The secret that requests are signed with.
    pub secret: [u8; 32],
    /// What signed before, and until when it still does.
    pub previous: Option<([u8; 32], Nanos)>,
    /// What to tell; all of it if empty.
    pub kinds: Vec<String>,
    /// When it was made.
    pub created_at: Nanos,
    /// How far it has told.
    pub progress: WebhookProgress,
}

/// What is shared of a webhook: all but how far this node has told.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WebhookSettings {
    url: String,
    secret: [u8; 32],
    previous: Option<([u8; 32], Nanos)>,
    kinds: Vec<String>,
    created_at: Nanos,
}

impl WebhookSettings {
    fn of(webhook: &Webhook) -> WebhookSettings {
        let Webhook { url, secret, previous, kinds, created_at, progress: _ } = webhook.clone();
        WebhookSettings { url, secret, previous, kinds, created_at }
    }

    fn with_progress(self, progress: WebhookProgress) -> Webhook {
        let WebhookSettings { url, secret, previous, kinds, created_at } = self;
        Webhook { url, secret, previous, kinds, created_at, progress }
    }
}

/// How far a webhook has told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WebhookProgress {
    /// The epoch and number of the last journal entry that needs no telling any more.
    pub epoch: u64,
    /// The number of that entry.
    pub number: u64,
    /// How often the next entry was tried in vain.
    pub attempts: u32,
    /// Since when it is tried in vain.
    pub failing_since: Option<Nanos>,
    /// The next attempt is not before then.
    pub next: Nanos,
    /// Why nothing is told any more.
    pub disabled: Option<String>,
}

impl WebhookProgress {
    /// Everything up to a position needs no telling.
    pub fn told_up_to(position: Position) -> WebhookProgress {
        WebhookProgress {
            epoch: position.epoch,
            number: position.number,
            attempts: 0,
            failing_since: None,
            next: Nanos(0),
            disabled: None,
        }
    }
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Webhook({:?})", self.progress)
    }
}

impl Batch<'_> {
    /// Keeps a webhook, or changes what is kept of it.
    pub fn keep_webhook(&mut self, space: &SpaceId, id: &WebhookId, webhook: &Webhook) -> StoreResult<()> {
        self.touch();
        let key = WebhookKey::new(*space, *id);
        let settings = WebhookSettings::of(webhook);
        // Telling changes the progress only, which is no matter of other nodes.
        if self.db.shared::<Webhooks>(&key)?.as_ref() != Some(&settings) {
            self.set_shared::<Webhooks>(&key, &settings)?;
        }
        let progress = self.protect(space, key.as_bytes(), &to_row(&webhook.progress)?)?;
        self.db.tables.webhook_progress.insert(key, &progress)
    }

    /// Forgets a webhook. Says whether there was one.
    pub fn forget_webhook(&mut self, space: &SpaceId, id: &WebhookId) -> StoreResult<bool> {
        self.db.tables.webhook_progress.remove(WebhookKey::new(*space, *id))?;
        self.clear_shared::<Webhooks>(&WebhookKey::new(*space, *id))
    }
}

impl<V: TableReads> Db<V> {
    /// A webhook with its progress.
    pub fn webhook(&self, space: &SpaceId, id: &WebhookId) -> StoreResult<Option<Webhook>> {
        let key = WebhookKey::new(*space, *id);
        let Some(settings) = self.shared::<Webhooks>(&key)? else { return Ok(None) };
        Ok(Some(settings.with_progress(self.webhook_progress(&key)?)))
    }

    /// The webhooks of one space, or of all.
    pub fn webhooks(&self, only: Option<&SpaceId>) -> StoreResult<Vec<(SpaceId, WebhookId, Webhook)>> {
        let all = (Bound::Unbounded, Bound::Unbounded);
        let range = only.map_or(all, |space| {
            let (first, last) = WebhookKey::of_space(*space).into_inner();
            (Bound::Included(first), Bound::Included(last))
        });
        // Where the space's keys were destroyed there is nobody to tell any more.
        let webhooks = self.shared_range::<Webhooks>(range)?.map(|row| {
            let (key, settings) = row?;
            Ok((key.space(), key.id(), settings.with_progress(self.webhook_progress(&key)?)))
        });
        webhooks.collect()
    }

    /// How far this node has told; from now on, if it has not begun.
    fn webhook_progress(&self, key: &WebhookKey) -> StoreResult<WebhookProgress> {
        let opened = match self.tables.webhook_progress().get_row(key)? {
            Some(row) => self.open_at_rest(&key.space(), key.as_bytes(), row.value()?)?,
            None => None,
        };
        match opened {
            Some(plain) => from_row(&plain, "a webhook's progress"),
            None => Ok(WebhookProgress::told_up_to(self.position()?)),
        }
    }
}
