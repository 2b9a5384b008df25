//! What the HTTP door keeps: API keys, keys that sign for users, what was asked before, and who administered what.

use crate::database::batch::Batch;
use crate::database::db::{Db, fault};
use crate::encode;
use crate::encode::{from_row, to_row};
use crate::tables::TableReads;
use engine::access::KeyRole;
use engine::reads::StoreResult;
use model::{EventId, Nanos, SpaceId};
use redb::ReadableTable as _;
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
    /// From when it is not accepted any more; zero for never.
    pub ends_at: Nanos,
}

impl ApiKey {
    /// A key that is accepted until it is revoked.
    pub fn new(role: KeyRole, space: SpaceId, hash: [u8; 32], label: String, created_at: Nanos) -> ApiKey {
        ApiKey { role: role.code(), space, hash, label, created_at, ends_at: Nanos(0) }
    }

    /// What it is for.
    pub fn role(&self) -> Option<KeyRole> {
        KeyRole::from_code(self.role)
    }

    /// Whether it is accepted at that time.
    pub fn is_accepted(&self, now: Nanos) -> bool {
        self.ends_at == Nanos(0) || now < self.ends_at
    }
}

/// A key that signs for the users of a space.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SigningSecret {
    /// The secret.
    pub secret: [u8; 32],
    /// When it was made.
    pub created_at: Nanos,
    /// From when it is not accepted any more; zero for never.
    pub ends_at: Nanos,
}

impl std::fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningSecret(since {})", self.created_at)
    }
}

/// What came of a request that may be repeated.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IdempotencyRecord {
    /// The hash of what was asked.
    pub fingerprint: [u8; 32],
    /// When.
    pub at: Nanos,
    /// The event that came of it.
    pub event: EventId,
}

/// An act of administration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AuditRow {
    /// When.
    pub at: Nanos,
    /// In which space; none for the node itself.
    pub space: Option<SpaceId>,
    /// Who: a key, a user, or the operator.
    pub who: String,
    /// What was done.
    pub what: String,
    /// To what.
    pub target: String,
}

/// Repetitions of a request are answered as the first for so long.
pub const IDEMPOTENCY_NANOS: u64 = 24 * 3600 * Nanos::SECOND;

/// What an entry of the audit log is wrapped under.
pub(crate) fn audit_name(number: u64) -> Vec<u8> {
    [b"audit".as_slice(), &number.to_be_bytes()].concat()
}

impl Batch<'_> {
    /// Keeps an API key, or changes what is kept of it.
    pub fn keep_api_key(&mut self, id: [u8; 8], key: &ApiKey) -> StoreResult<()> {
        self.touch();
        self.db.tables.api_keys.insert(id, to_row(key)?.as_slice()).map_err(fault)?;
        Ok(())
    }

    /// Keeps a key that signs for users.
    pub fn keep_signing_key(&mut self, space: &SpaceId, number: u64, key: &SigningSecret) -> StoreResult<()> {
        self.touch();
        let id = crate::keys::key(&[&space.0, &number.to_be_bytes()]);
        let row = self.protect(space, &id, &to_row(key)?)?;
        self.db.tables.signing_keys.insert(id, row.as_slice()).map_err(fault)?;
        Ok(())
    }

    /// Remembers what came of a request, and forgets a few that are too old to be repeated.
    pub fn keep_asked(&mut self, who_and_key: [u8; 32], asked: &IdempotencyRecord) -> StoreResult<()> {
        self.touch();
        self.db.tables.idempotency.insert(who_and_key, to_row(asked)?.as_slice()).map_err(fault)?;
        let order = crate::keys::key(&[&asked.at.0.to_be_bytes(), &who_and_key]);
        self.db.tables.idempotency_order.insert(order, ()).map_err(fault)?;
        let before = self.now.minus(IDEMPOTENCY_NANOS);
        for _ in 0..2 {
            let oldest = self.db.tables.idempotency_order.first().map_err(fault)?.map(|(key, _)| key.value());
            let Some(oldest) = oldest.filter(|key| key[..8] < before.0.to_be_bytes()[..]) else { break };
            self.db.tables.idempotency_order.remove(oldest).map_err(fault)?;
            let key = crate::keys::key::<32>(&[&oldest[8..]]);
            // The key may have been used again since.
            if self.db.asked(&key, self.now)?.is_none() {
                self.db.tables.idempotency.remove(key).map_err(fault)?;
            }
        }
        Ok(())
    }

    /// Writes an act of administration into the audit log.
    pub fn audit(&mut self, space: Option<SpaceId>, who: &str, what: &str, target: &str) -> StoreResult<()> {
        self.touch();
        let number = self.db.tables.audit.last().map_err(fault)?.map_or(1, |(key, _)| key.value().saturating_add(1));
        let entry =
            AuditRow { at: self.now, space, who: who.to_owned(), what: what.to_owned(), target: target.to_owned() };
        let row = self.shared.master.wrap(&audit_name(number), &to_row(&entry)?);
        self.db.tables.audit.insert(number, row.as_slice()).map_err(fault)?;
        Ok(())
    }
}

impl<V: TableReads> Db<V> {
    /// An API key by its id.
    pub fn api_key(&self, id: &[u8; 8]) -> StoreResult<Option<ApiKey>> {
        match self.tables.api_keys().get(id).map_err(fault)? {
            Some(row) => from_row(row.value(), "an API key").map(Some),
            None => Ok(None),
        }
    }

    /// All API keys.
    pub fn api_keys(&self) -> StoreResult<Vec<([u8; 8], ApiKey)>> {
        let mut keys = Vec::new();
        for entry in self.tables.api_keys().iter().map_err(fault)? {
            let (id, row) = entry.map_err(fault)?;
            keys.push((id.value(), from_row(row.value(), "an API key")?));
        }
        Ok(keys)
    }

    /// The keys that sign for users of a space, the latest first.
    pub fn signing_keys(&self, space: &SpaceId) -> StoreResult<Vec<(u64, SigningSecret)>> {
        let bound = |number: u64| crate::keys::key::<24>(&[&space.0, &number.to_be_bytes()]);
        let mut keys = Vec::new();
        for entry in self.tables.signing_keys().range(bound(0)..=bound(u64::MAX)).map_err(fault)?.rev() {
            let (id, row) = entry.map_err(fault)?;
            if let Some(plain) = self.open_at_rest(space, &id.value(), row.value())? {
                keys.push((crate::database::db::seq_at_end(&id.value()).0, from_row(&plain, "a signing key")?));
            }
        }
        Ok(keys)
    }

    /// What came of a request that was made within the last day.
    pub fn asked(&self, who_and_key: &[u8; 32], now: Nanos) -> StoreResult<Option<IdempotencyRecord>> {
        match self.tables.idempotency().get(who_and_key).map_err(fault)? {
            Some(row) => {
                let asked: IdempotencyRecord = from_row(row.value(), "an idempotency row")?;
                Ok(Some(asked).filter(|asked| now < asked.at.plus(IDEMPOTENCY_NANOS)))
            }
            None => Ok(None),
        }
    }

    /// Acts of administration before a number, the latest first.
    pub fn audit_log(&self, before: u64, most: usize) -> StoreResult<Vec<(u64, AuditRow)>> {
        let mut entries = Vec::new();
        for entry in self.tables.audit().range(..before).map_err(fault)?.rev().take(most) {
            let (number, row) = entry.map_err(fault)?;
            let name = audit_name(number.value());
            let plain = self.shared.master.unwrap(&name, row.value()).map_err(|_| encode::broken("an audit entry"))?;
            entries.push((number.value(), from_row(&plain, "an audit entry")?));
        }
        Ok(entries)
    }
}
