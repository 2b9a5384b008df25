//! Webhooks: where a space tells an application what happens in it, and how far it has told.
//!
//! A row is its own outbox. It holds a journal position; what is after it is still to be told. So nothing is stored
//! twice, nothing that was deleted rests in a queue, and an entry is told again until it was taken.

use crate::database::batch::Batch;
use crate::database::db::{Db, fault};

use crate::encode::{from_row, to_row};
use crate::tables::TableReads;
use engine::reads::StoreResult;
use model::{Nanos, Position, SpaceId};
use redb::ReadableTable as _;
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
    pub epoch: u32,
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

fn row_key(space: &SpaceId, id: &WebhookId) -> [u8; 24] {
    crate::keys::key(&[&space.0, id])
}

impl Batch<'_> {
    /// Keeps a webhook, or changes what is kept of it.
    pub fn keep_webhook(&mut self, space: &SpaceId, id: &WebhookId, webhook: &Webhook) -> StoreResult<()> {
        self.touch();
        let key = row_key(space, id);
        let row = self.protect(space, &key, &to_row(webhook)?)?;
        self.db.tables.webhooks.insert(key, row.as_slice()).map_err(fault)?;
        Ok(())
    }

    /// Forgets a webhook. Says whether there was one.
    pub fn forget_webhook(&mut self, space: &SpaceId, id: &WebhookId) -> StoreResult<bool> {
        self.touch();
        Ok(self.db.tables.webhooks.remove(row_key(space, id)).map_err(fault)?.is_some())
    }
}

impl<V: TableReads> Db<V> {
    /// A webhook.
    pub fn webhook(&self, space: &SpaceId, id: &WebhookId) -> StoreResult<Option<Webhook>> {
        let key = row_key(space, id);
        let Some(row) = self.tables.webhooks().get(key).map_err(fault)? else { return Ok(None) };
        let plain = self.open_at_rest(space, &key, row.value())?;
        plain.map(|plain| from_row(&plain, "a webhook")).transpose()
    }

    /// The webhooks of one space, or of all.
    pub fn webhooks(&self, only: Option<&SpaceId>) -> StoreResult<Vec<(SpaceId, WebhookId, Webhook)>> {
        let (first, last) = only.map_or(([0; 16], [0xff; 16]), |space| (space.0, space.0));
        let range = crate::keys::key::<24>(&[&first])..=crate::keys::key::<24>(&[&last, &[0xff; 8]]);
        let mut webhooks = Vec::new();
        for entry in self.tables.webhooks().range(range).map_err(fault)? {
            let (key, row) = entry.map_err(fault)?;
            let key = key.value();
            let space = SpaceId(crate::keys::key(&[&key[..16]]));
            // Where the space's keys were destroyed there is nobody to tell any more.
            if let Some(plain) = self.open_at_rest(&space, &key, row.value())? {
                webhooks.push((space, crate::keys::key(&[&key[16..]]), from_row(&plain, "a webhook")?));
            }
        }
        Ok(webhooks)
    }
}
