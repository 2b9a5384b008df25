//! Whom users do not want to hear of, and what they reported.

use crate::database::batch::Batch;
use crate::database::db::{Db, fault};

use crate::encode::{from_row, to_row};
use crate::tables::TableReads;
use engine::reads::StoreResult;
use model::{EventId, Identity, Nanos, SpaceId};
use redb::ReadableTable as _;
use serde::{Deserialize, Serialize};

/// How somebody keeps another at a distance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockKind {
    /// What the other writes is not shown.
    Block,
    /// What the other writes is shown, and counts as read.
    Mute,
}

impl BlockKind {
    fn code(self) -> u8 {
        match self {
            BlockKind::Block => 1,
            BlockKind::Mute => 2,
        }
    }

    fn from_code(code: u8) -> BlockKind {
        if code == 1 { BlockKind::Block } else { BlockKind::Mute }
    }
}

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

fn distance_key(space: &SpaceId, owner: &Identity, other: &[u8; 32]) -> [u8; 80] {
    crate::keys::key(&[&space.0, &owner.0, other])
}

fn report_key(space: &SpaceId, number: u64) -> [u8; 24] {
    crate::keys::key(&[&space.0, &number.to_be_bytes()])
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
        let key = distance_key(space, owner, &other.0);
        match distance {
            Some(distance) => self.db.tables.distances.insert(key, distance.code()).map_err(fault)?.is_some(),
            None => self.db.tables.distances.remove(key).map_err(fault)?.is_some(),
        };
        Ok(())
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
                self.db.tables.reports.remove(report_key(space, number)).map_err(fault)?;
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
        self.db.tables.about.insert(name.as_str(), number.to_be_bytes().as_slice()).map_err(fault)?;
        self.keep_report(space, number, report)?;
        Ok(number)
    }

    /// Changes what is kept of a report.
    pub fn keep_report(&mut self, space: &SpaceId, number: u64, report: &UserReport) -> StoreResult<()> {
        self.touch();
        let key = report_key(space, number);
        let row = self.protect(space, &key, &to_row(report)?)?;
        self.db.tables.reports.insert(key, row.as_slice()).map_err(fault)?;
        Ok(())
    }
}

impl<V: TableReads> Db<V> {
    /// Whom somebody keeps at a distance in a space.
    pub fn distances(&self, space: &SpaceId, owner: &Identity) -> StoreResult<Vec<(Identity, BlockKind)>> {
        let range = distance_key(space, owner, &[0; 32])..=distance_key(space, owner, &[0xff; 32]);
        let mut found = Vec::new();
        for entry in self.tables.distances().range(range).map_err(fault)? {
            let (key, code) = entry.map_err(fault)?;
            found.push((Identity(crate::keys::key(&[&key.value()[48..]])), BlockKind::from_code(code.value())));
        }
        Ok(found)
    }

    /// How somebody keeps another at a distance.
    pub fn distance(&self, space: &SpaceId, owner: &Identity, other: &Identity) -> StoreResult<Option<BlockKind>> {
        let found = self.tables.distances().get(distance_key(space, owner, &other.0)).map_err(fault)?;
        Ok(found.map(|code| BlockKind::from_code(code.value())))
    }

    /// Reports of a space before a number, the latest first.
    pub fn reports(&self, space: &SpaceId, before: u64, most: usize) -> StoreResult<Vec<(u64, UserReport)>> {
        let mut reports = Vec::new();
        let range = report_key(space, 0)..report_key(space, before);
        for entry in self.tables.reports().range(range).map_err(fault)?.rev().take(most) {
            let (key, row) = entry.map_err(fault)?;
            if let Some(plain) = self.open_at_rest(space, &key.value(), row.value())? {
                reports.push((crate::database::db::seq_at_end(&key.value()).0, from_row(&plain, "a report")?));
            }
        }
        Ok(reports)
    }
}
