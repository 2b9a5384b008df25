//! How long messages are kept, by space or thread, and when that is next looked at.

use crate::database::batch::Batch;
use crate::database::db::Db;
use crate::encode::{from_row, to_row};
use crate::keys::{SpaceIdKey, ThreadIdKey};
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
        self.touch();
        let row = kept.map(to_row).transpose()?;
        let tables = &mut self.db.tables;
        match (thread.map(|thread| ThreadIdKey::new(*space, *thread)), &row) {
            (Some(key), Some(row)) => tables.thread_retentions.insert(key, row)?,
            (Some(key), None) => tables.thread_retentions.remove(key).map(drop)?,
            (None, Some(row)) => tables.retentions.insert(SpaceIdKey::new(*space), row)?,
            (None, None) => tables.retentions.remove(SpaceIdKey::new(*space)).map(drop)?,
        }
        // Whoever comes later does not put it off for the others.
        if row.is_some() && self.db.about_number(NEXT)? <= self.now.0 { self.schedule_retention() } else { Ok(()) }
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
        let row = match thread {
            Some(thread) => self.tables.thread_retentions().get_row(ThreadIdKey::new(*space, *thread))?,
            None => self.tables.retentions().get_row(SpaceIdKey::new(*space))?,
        };
        row.map(|row| from_row(row.value()?, "a retention")).transpose()
    }

    /// All rules: those of spaces, then those of threads.
    pub fn retentions(&self) -> StoreResult<Vec<(SpaceId, Option<EventId>, Retention)>> {
        let mut rules = Vec::new();
        for entry in self.tables.retentions().iter()? {
            let row = entry?;
            rules.push((row.key().id(), None, from_row(row.value()?, "a retention")?));
        }
        for entry in self.tables.thread_retentions().iter()? {
            let row = entry?;
            rules.push((row.key().space(), Some(row.key().thread()), from_row(row.value()?, "a retention")?));
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
