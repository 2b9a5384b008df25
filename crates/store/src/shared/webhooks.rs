//! Webhooks: where a space tells an application what happens in it, and how far it has told.
//!
//! A row is its own outbox. It holds a journal position; what is after it is still to be told. So nothing is stored
//! twice, nothing that was deleted rests in a queue, and an entry is told again until it was taken.

use crate::database::batch::Batch;
use crate::database::db::Db;
use crate::encode::{from_row, to_row};
use crate::keys::WebhookKey;
use crate::tables::TableReads;
use engine::reads::StoreResult;
use model::{Nanos, Position, SpaceId};
use serde::{Deserialize, Serialize};

/// The id of a webhook, which is chance.
pub type WebhookId = [u8; 8];

/// A webhook.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    /// Where to tell.
    pub url: String,
    /// What signs.
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

/// How far a webhook has told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WebhookProgress {
    /// The epoch and number of the last journal entry that needs no telling any more.
    pub epoch: u64,
    /// The number.
    pub number: u64,
    /// How often the next entry was tried in vain.
    pub attempts: u32,
    /// Since when it is tried in vain.
    pub failing_since: Nanos,
    /// Not before then.
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
            failing_since: Nanos(0),
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
        let row = self.protect(space, key.as_bytes(), &to_row(webhook)?)?;
        self.db.tables.webhooks.insert(key, &row)
    }

    /// Forgets a webhook. Says whether there was one.
    pub fn forget_webhook(&mut self, space: &SpaceId, id: &WebhookId) -> StoreResult<bool> {
        self.touch();
        self.db.tables.webhooks.remove(WebhookKey::new(*space, *id))
    }
}

impl<V: TableReads> Db<V> {
    /// A webhook.
    pub fn webhook(&self, space: &SpaceId, id: &WebhookId) -> StoreResult<Option<Webhook>> {
        let key = WebhookKey::new(*space, *id);
        let Some(row) = self.tables.webhooks().get_row(key)? else { return Ok(None) };
        let plain = self.open_at_rest(space, key.as_bytes(), row.value()?)?;
        plain.map(|plain| from_row(&plain, "a webhook")).transpose()
    }

    /// The webhooks of one space, or of all.
    pub fn webhooks(&self, only: Option<&SpaceId>) -> StoreResult<Vec<(SpaceId, WebhookId, Webhook)>> {
        let rows = match only {
            Some(space) => self.tables.webhooks().range(WebhookKey::of_space(*space))?,
            None => self.tables.webhooks().iter()?,
        };
        let mut webhooks = Vec::new();
        for row in rows {
            let row = row?;
            let key = row.key();
            // Where the space's keys were destroyed there is nobody to tell any more.
            if let Some(plain) = self.open_at_rest(&key.space(), key.as_bytes(), row.value()?)? {
                webhooks.push((key.space(), key.id(), from_row(&plain, "a webhook")?));
            }
        }
        Ok(webhooks)
    }
}
