//! What the HTTP door keeps: API keys, keys that sign for users, what was asked before, and who administered what.

use crate::database::batch::Batch;
use crate::database::db::Db;
use crate::keys::*;
use crate::shared::rows::SharedWriteError;
use crate::shared::{ApiKeys, Audit, Requests, SigningKeys};
use crate::tables::TableReads;
use engine::access::KeyRole;
use engine::reads::StoreResult;
use model::{EventId, Nanos, SpaceId};
use serde::{Deserialize, Serialize};

/// An API key, without its secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ApiKey {
    role: u8,
    /// The space it is bound to.
    pub space: SpaceId,
    /// The BLAKE3 hash of its secret.
    pub hash: [u8; 32],
    /// What the operator calls it.
    pub label: String,
    /// When it was made.
    pub created_at: Nanos,
    /// From when it is not accepted any more; none for never.
    pub ends_at: Option<Nanos>,
}

impl ApiKey {
    /// A key that is accepted until it is revoked.
    pub fn new(role: KeyRole, space: SpaceId, hash: [u8; 32], label: String, created_at: Nanos) -> ApiKey {
        ApiKey { role: role.code(), space, hash, label, created_at, ends_at: None }
    }

    /// What it is for.
    pub fn role(&self) -> Option<KeyRole> {
        KeyRole::from_code(self.role)
    }

    /// Whether it is accepted at that time.
    pub fn is_accepted(&self, now: Nanos) -> bool {
        self.ends_at.is_none_or(|end| now < end)
    }
}

/// A key that signs for the users of a space.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SigningSecret {
    /// The secret that signatures are made with.
    pub secret: [u8; 32],
    /// When it was made.
    pub created_at: Nanos,
    /// From when it is not accepted any more; none for never.
    pub ends_at: Option<Nanos>,
}

impl std::fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningSecret(since {})", self.created_at)
    }
}

/// What came of a request, enough to answer a repetition as the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RequestOutcome {
    /// It made an event.
    Event(EventId),
    /// It founded a space.
    Space(SpaceId),
    /// It made a secret, which can be derived again from this salt.
    Secret([u8; 16]),
    /// It began the job of that number.
    Job(u64),
    /// There is nothing to say beyond that it was done.
    Done,
}

/// What came of a request that may be repeated.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IdempotencyRecord {
    /// The hash of what was asked.
    pub fingerprint: [u8; 32],
    /// When it was asked.
    pub at: Nanos,
    /// What came of it.
    pub outcome: RequestOutcome,
}

/// An act of administration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AuditRow {
    /// When it was done.
    pub at: Nanos,
    /// In which space; none for the node itself.
    pub space: Option<SpaceId>,
    /// Who: a key, a user, or the operator.
    pub who: String,
    /// What was done.
    pub what: String,
    /// What it was done to.
    pub target: String,
}

/// Repetitions of a request are answered as the first for so long.
pub const IDEMPOTENCY_NANOS: u64 = 24 * 3600 * Nanos::SECOND;

impl Batch<'_> {
    /// Keeps an API key, or changes what is kept of it.
    pub fn keep_api_key(&mut self, id: [u8; 8], key: &ApiKey) -> StoreResult<()> {
        self.set_shared::<ApiKeys>(&ApiKeyName::new(id), key)
    }

    /// Keeps a key that signs for users.
    pub fn keep_signing_key(&mut self, space: &SpaceId, number: u64, key: &SigningSecret) -> StoreResult<()> {
        self.set_shared::<SigningKeys>(&SigningKeyName::new(*space, number), key)
    }

    /// Remembers what came of a request, and forgets a few that are too old to be repeated.
    pub fn keep_asked(&mut self, who_and_key: [u8; 32], asked: &IdempotencyRecord) -> StoreResult<()> {
        self.set_shared::<Requests>(&RequestKey::new(who_and_key), asked)?;
        self.db.tables.idempotency_order.insert(RequestOrderKey::new(asked.at, who_and_key), ())?;
        let before = self.now.minus(IDEMPOTENCY_NANOS);
        for _ in 0..2 {
            let oldest = self.db.tables.idempotency_order.first()?.map(|row| row.key());
            let Some(oldest) = oldest.filter(|key| key.at() < before) else { break };
            self.db.tables.idempotency_order.remove(oldest)?;
            // The key may have been used again since.
            if self.db.asked(&oldest.hash(), self.now)?.is_none() {
                self.clear_shared::<Requests>(&RequestKey::new(oldest.hash()))?;
            }
        }
        Ok(())
    }

    /// Writes an act of administration into the audit log.
    pub fn audit(&mut self, space: Option<SpaceId>, who: &str, what: &str, target: &str) -> StoreResult<()> {
        let number = self.db.tables.audit.last()?.map_or(1, |row| row.key().number().saturating_add(1));
        let entry =
            AuditRow { at: self.now, space, who: who.to_owned(), what: what.to_owned(), target: target.to_owned() };
        let put = self.put_shared::<Audit>(&AuditNo::new(number), None, &entry);
        put.map(drop).map_err(SharedWriteError::within_batch)
    }
}

impl<V: TableReads> Db<V> {
    /// An API key by its id.
    pub fn api_key(&self, id: &[u8; 8]) -> StoreResult<Option<ApiKey>> {
        self.shared::<ApiKeys>(&ApiKeyName::new(*id))
    }

    /// All API keys.
    pub fn api_keys(&self) -> StoreResult<Vec<([u8; 8], ApiKey)>> {
        self.shared_range::<ApiKeys>(..)?.map(|row| row.map(|(id, key)| (id.id(), key))).collect()
    }

    /// The keys that sign for users of a space, the latest first.
    pub fn signing_keys(&self, space: &SpaceId) -> StoreResult<Vec<(u64, SigningSecret)>> {
        let keys = self.shared_range::<SigningKeys>(SigningKeyName::of_space(*space))?.rev();
        keys.map(|row| row.map(|(name, key)| (name.number(), key))).collect()
    }

    /// What came of a request that was made within the last day.
    pub fn asked(&self, who_and_key: &[u8; 32], now: Nanos) -> StoreResult<Option<IdempotencyRecord>> {
        let asked = self.shared::<Requests>(&RequestKey::new(*who_and_key))?;
        Ok(asked.filter(|asked| now < asked.at.plus(IDEMPOTENCY_NANOS)))
    }

    /// Acts of administration before a number, the latest first.
    pub fn audit_log(&self, before: u64, most: usize) -> StoreResult<Vec<(u64, AuditRow)>> {
        let entries = self.shared_range::<Audit>(..AuditNo::new(before))?.rev().take(most);
        entries.map(|row| row.map(|(key, entry)| (key.number(), entry))).collect()
    }
}
