//! Whom users do not want to hear of, and what they reported.

use crate::database::batch::Batch;
use crate::database::db::Db;
use crate::keys::*;
use crate::shared::{Blocks, ReportNumbers, Reports};
use crate::tables::TableReads;
use engine::reads::StoreResult;
use model::{EventId, Identity, Nanos, SpaceId};
use serde::{Deserialize, Serialize};

/// How a user keeps away from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum BlockKind {
    /// What the other writes is not shown.
    Block,
    /// What the other writes is shown, and counts as read.
    Mute,
}

/// What somebody reported to the moderators.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UserReport {
    /// The identity of whoever reported it.
    pub reporter: Identity,
    /// What it is about.
    pub message: EventId,
    /// What they gave as the reason.
    pub reason: String,
    /// When they did.
    pub at: Nanos,
    /// Who settled it, when, and how; none while it is open.
    pub settled: Option<(String, Nanos, String)>,
}

impl Batch<'_> {
    /// Blocks or mutes another, or no longer.
    pub fn set_block(
        &mut self,
        space: &SpaceId,
        owner: &Identity,
        other: &Identity,
        block: Option<BlockKind>,
    ) -> StoreResult<()> {
        let key = BlockKey::new(*space, *owner, *other);
        match block {
            Some(block) => self.set_shared::<Blocks>(&key, &block),
            None => self.clear_shared::<Blocks>(&key).map(drop),
        }
    }

    /// Forgets whom somebody blocks or mutes.
    pub fn forget_blocks(&mut self, space: &SpaceId, owner: &Identity) -> StoreResult<()> {
        for (other, _) in self.db.blocks_by(space, owner)? {
            self.set_block(space, owner, &other, None)?;
        }
        Ok(())
    }

    /// Forgets what somebody reported.
    pub fn forget_reports(&mut self, space: &SpaceId, reporter: &Identity) -> StoreResult<()> {
        for (number, report) in self.db.reports(space, u64::MAX, usize::MAX)? {
            if report.reporter == *reporter {
                self.clear_shared::<Reports>(&ReportNo::new(*space, number))?;
            }
        }
        Ok(())
    }

    /// Keeps a new report. Says its number. The number is taken before the report has it: whoever is cut off leaves a
    /// number that no report has.
    pub fn add_report(&mut self, space: &SpaceId, report: &UserReport) -> StoreResult<u64> {
        // A number stays what it was in the audit log, also when the report is forgotten.
        let number = self.db.shared::<ReportNumbers>(&SpaceIdKey::new(*space))?.unwrap_or(0).saturating_add(1);
        self.set_shared::<ReportNumbers>(&SpaceIdKey::new(*space), &number)?;
        self.keep_report(space, number, report)?;
        Ok(number)
    }

    /// Changes what is kept of a report.
    pub fn keep_report(&mut self, space: &SpaceId, number: u64, report: &UserReport) -> StoreResult<()> {
        self.set_shared::<Reports>(&ReportNo::new(*space, number), report)
    }
}

impl<V: TableReads> Db<V> {
    /// Whom somebody blocks or mutes in a space.
    pub fn blocks_by(&self, space: &SpaceId, owner: &Identity) -> StoreResult<Vec<(Identity, BlockKind)>> {
        let blocks = self.shared_range::<Blocks>(BlockKey::of_owner(*space, *owner))?;
        blocks.map(|row| row.map(|(key, kind)| (key.other(), kind))).collect()
    }

    /// Whether somebody blocks or mutes another.
    pub fn block_between(&self, space: &SpaceId, owner: &Identity, other: &Identity) -> StoreResult<Option<BlockKind>> {
        self.shared::<Blocks>(&BlockKey::new(*space, *owner, *other))
    }

    /// Reports of a space before a number, the latest first.
    pub fn reports(&self, space: &SpaceId, before: u64, most: usize) -> StoreResult<Vec<(u64, UserReport)>> {
        let range = ReportNo::new(*space, 0)..ReportNo::new(*space, before);
        let reports = self.shared_range::<Reports>(range)?.rev().take(most);
        reports.map(|row| row.map(|(key, report)| (key.number(), report))).collect()
    }
}
