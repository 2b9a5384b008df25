//! Whom users do not want to hear of, and what they reported.

use crate::database::batch::Batch;
use crate::database::db::Db;
pub use crate::encode::BlockKind;

use crate::encode::{from_row, to_row};
use crate::keys::*;
use crate::tables::TableReads;
use engine::reads::StoreResult;
use model::{EventId, Identity, Nanos, SpaceId};
use serde::{Deserialize, Serialize};

/// What somebody reported to the moderators.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UserReport {
    /// Who did.
    pub reporter: Identity,
    /// What it is about.
    pub message: EventId,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Nanos,
    /// Who settled it, when, and how; none while it is open.
    pub settled: Option<(String, Nanos, String)>,
}

impl Batch<'_> {
    /// Keeps another at a distance, or no longer.
    pub fn set_distance(
        &mut self,
        space: &SpaceId,
        owner: &Identity,
        other: &Identity,
        distance: Option<BlockKind>,
    ) -> StoreResult<()> {
        self.touch();
        let key = BlockKey::new(*space, *owner, *other);
        match distance {
            Some(distance) => self.db.tables.distances.insert(key, distance),
            None => self.db.tables.distances.remove(key).map(drop),
        }
    }

    /// Forgets whom somebody keeps at a distance.
    pub fn forget_distances(&mut self, space: &SpaceId, owner: &Identity) -> StoreResult<()> {
        for (other, _) in self.db.distances(space, owner)? {
            self.set_distance(space, owner, &other, None)?;
        }
        Ok(())
    }

    /// Forgets what somebody reported.
    pub fn forget_reports(&mut self, space: &SpaceId, reporter: &Identity) -> StoreResult<()> {
        self.touch();
        for (number, report) in self.db.reports(space, u64::MAX, usize::MAX)? {
            if report.reporter == *reporter {
                self.db.tables.reports.remove(ReportNo::new(*space, number))?;
            }
        }
        Ok(())
    }

    /// Keeps a new report. Says its number.
    pub fn add_report(&mut self, space: &SpaceId, report: &UserReport) -> StoreResult<u64> {
        // A number stays what it was in the audit log, also when the report is forgotten.
        let name = format!("reports {space}");
        let last = self.db.about(&name)?.and_then(|bytes| Some(u64::from_be_bytes(*bytes.first_chunk()?)));
        let latest = self.db.reports(space, u64::MAX, 1)?.first().map_or(0, |(number, _)| *number);
        let number = last.unwrap_or(0).max(latest).saturating_add(1);
        self.db.tables.about.insert(name.as_str(), &number.to_be_bytes())?;
        self.keep_report(space, number, report)?;
        Ok(number)
    }

    /// Changes what is kept of a report.
    pub fn keep_report(&mut self, space: &SpaceId, number: u64, report: &UserReport) -> StoreResult<()> {
        self.touch();
        let key = ReportNo::new(*space, number);
        let row = self.protect(space, key.as_bytes(), &to_row(report)?)?;
        self.db.tables.reports.insert(key, &row)
    }
}

impl<V: TableReads> Db<V> {
    /// Whom somebody keeps at a distance in a space.
    pub fn distances(&self, space: &SpaceId, owner: &Identity) -> StoreResult<Vec<(Identity, BlockKind)>> {
        let rows = self.tables.distances().range(BlockKey::of_owner(*space, *owner))?;
        let mut found = Vec::new();
        for row in rows {
            let row = row?;
            found.push((row.key().other(), row.value()?));
        }
        Ok(found)
    }

    /// How somebody keeps another at a distance.
    pub fn distance(&self, space: &SpaceId, owner: &Identity, other: &Identity) -> StoreResult<Option<BlockKind>> {
        self.tables.distances().get(BlockKey::new(*space, *owner, *other))
    }

    /// Reports of a space before a number, the latest first.
    pub fn reports(&self, space: &SpaceId, before: u64, most: usize) -> StoreResult<Vec<(u64, UserReport)>> {
        let mut reports = Vec::new();
        let range = ReportNo::new(*space, 0)..ReportNo::new(*space, before);
        for row in self.tables.reports().range(range)?.rev().take(most) {
            let row = row?;
            if let Some(plain) = self.open_at_rest(space, row.key().as_bytes(), row.value()?)? {
                reports.push((row.key().number(), from_row(&plain, "a report")?));
            }
        }
        Ok(reports)
    }
}
