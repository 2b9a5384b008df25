//! How long messages are kept, by space or thread, and when that is next looked at.

use crate::database::batch::Batch;
use crate::database::db::{Db, fault};

use crate::encode::{from_row, to_row};
use crate::tables::TableReads;
use engine::reads::StoreResult;
use model::{EventId, Nanos, SpaceId};
use redb::ReadableTable as _;
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

/// A space has its own row; a thread's is under its event id.
fn row_key(space: &SpaceId, thread: Option<&EventId>) -> [u8; 32] {
    crate::keys::key(&[&space.0, &thread.map_or([0; 16], |thread| thread.0)])
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
        let key = row_key(space, thread);
        match kept {
            Some(kept) => {
                self.db.tables.retentions.insert(key, to_row(kept)?.as_slice()).map_err(fault)?;
                // Whoever comes later does not put it off for the others.
                if self.db.about_number(NEXT)? <= self.now.0 { self.schedule_retention() } else { Ok(()) }
            }
            None => self.db.tables.retentions.remove(key).map_err(fault).map(drop),
        }
    }

    /// Sets the time at which retention is next looked at, from now.
    pub fn schedule_retention(&mut self) -> StoreResult<()> {
        self.touch();
        let next = self.now.plus(EVERY_NANOS).0.to_be_bytes();
        self.db.tables.about.insert(NEXT, next.as_slice()).map_err(fault)?;
        Ok(())
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
        match self.tables.retentions().get(row_key(space, thread)).map_err(fault)? {
            Some(row) => from_row(row.value(), "a retention").map(Some),
            None => Ok(None),
        }
    }

    /// All rules, by space and thread.
    pub fn retentions(&self) -> StoreResult<Vec<(SpaceId, Option<EventId>, Retention)>> {
        let mut rules = Vec::new();
        for entry in self.tables.retentions().iter().map_err(fault)? {
            let (key, row) = entry.map_err(fault)?;
            let (space, thread) = (crate::keys::key(&[&key.value()[..16]]), crate::keys::key(&[&key.value()[16..]]));
            let thread = Some(EventId(thread)).filter(|thread| thread.0 != [0; 16]);
            rules.push((SpaceId(space), thread, from_row(row.value(), "a retention")?));
        }
        Ok(rules)
    }

    /// When retention is next looked at, if there is any.
    pub fn next_retention(&self) -> StoreResult<Option<Nanos>> {
        if self.tables.retentions().first().map_err(fault)?.is_none() {
            return Ok(None);
        }
        Ok(Some(Nanos(self.about_number(NEXT)?)))
    }
}
