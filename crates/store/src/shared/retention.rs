//! How long messages are kept, by space or thread, and when that is next looked at.

use crate::database::batch::Batch;
use crate::database::db::Db;
use crate::keys::{SpaceIdKey, ThreadIdKey};
use crate::shared::{Retentions, ThreadRetentions};
use crate::tables::TableReads;
use engine::reads::StoreResult;
use model::{EventId, Nanos, SpaceId};
use serde::{Deserialize, Serialize};

/// How often retention is looked at.
const EVERY_NANOS: u64 = 3600 * Nanos::SECOND;
const NEXT: &str = "next retention";

/// How long messages are kept. What is absent sets no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Retention {
    /// Messages older than this go.
    pub age_seconds: Option<u64>,
    /// Messages beyond the latest so many of their thread go.
    pub count: Option<u64>,
    /// Messages that were deleted softly go after so long.
    pub deleted_seconds: Option<u64>,
}

impl Batch<'_> {
    /// Says how long messages of a space, or of one of its threads, are kept; nothing lifts it.
    pub fn set_retention(
        &mut self,
        space: &SpaceId,
        thread: Option<&EventId>,
        kept: Option<&Retention>,
    ) -> StoreResult<()> {
        match (thread.map(|thread| ThreadIdKey::new(*space, *thread)), kept) {
            (Some(key), Some(kept)) => self.set_shared::<ThreadRetentions>(&key, kept)?,
            (Some(key), None) => self.clear_shared::<ThreadRetentions>(&key).map(drop)?,
            (None, Some(kept)) => self.set_shared::<Retentions>(&SpaceIdKey::new(*space), kept)?,
            (None, None) => self.clear_shared::<Retentions>(&SpaceIdKey::new(*space)).map(drop)?,
        }
        // Whoever comes later does not put it off for the others.
        if kept.is_some() && self.db.about_number(NEXT)? <= self.now.0 { self.schedule_retention() } else { Ok(()) }
    }

    /// Sets the time at which retention is next looked at, from now.
    pub fn schedule_retention(&mut self) -> StoreResult<()> {
        self.touch();
        let next = self.now.plus(EVERY_NANOS).0.to_be_bytes();
        self.db.tables.about.insert(NEXT, &next)
    }
}

impl<V: TableReads> Db<V> {
    /// How long messages of a thread are kept: by its own rule, or by that of its space.
    pub fn retention(&self, space: &SpaceId, thread: &EventId) -> StoreResult<Option<Retention>> {
        match self.own_retention(space, Some(thread))? {
            Some(own) => Ok(Some(own)),
            None => self.own_retention(space, None),
        }
    }

    /// The rule of a space or thread itself.
    pub fn own_retention(&self, space: &SpaceId, thread: Option<&EventId>) -> StoreResult<Option<Retention>> {
        match thread {
            Some(thread) => self.shared::<ThreadRetentions>(&ThreadIdKey::new(*space, *thread)),
            None => self.shared::<Retentions>(&SpaceIdKey::new(*space)),
        }
    }

    /// All rules: those of spaces, then those of threads.
    pub fn retentions(&self) -> StoreResult<Vec<(SpaceId, Option<EventId>, Retention)>> {
        let mut rules = Vec::new();
        for row in self.shared_range::<Retentions>(..)? {
            let (key, kept) = row?;
            rules.push((key.id(), None, kept));
        }
        for row in self.shared_range::<ThreadRetentions>(..)? {
            let (key, kept) = row?;
            rules.push((key.space(), Some(key.thread()), kept));
        }
        Ok(rules)
    }

    /// When retention is next looked at, if there is any.
    pub fn next_retention(&self) -> StoreResult<Option<Nanos>> {
        if self.tables.retentions().is_empty()? && self.tables.thread_retentions().is_empty()? {
            return Ok(None);
        }
        Ok(Some(Nanos(self.about_number(NEXT)?)))
    }
}
