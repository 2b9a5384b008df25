//! The latest times by which this folder was written.

use crate::database::batch::Batch;
use crate::database::db::Db;
use crate::tables::TableReads;
use engine::reads::StoreResult;
use model::Nanos;

/// The greatest time at which a batch was written.
pub(super) const GREATEST_TIME: &str = "greatest time";
/// The greatest time that counted for what is held.
pub(super) const HELD_TIME: &str = "held time";

impl Batch<'_> {
    /// Takes the time of this batch for the greatest that was given.
    pub fn trust_clock(&mut self) {
        self.greatest_time = 0;
        self.is_changed = true;
    }
}

impl<V: TableReads> Db<V> {
    /// The greatest time at which anything was written here.
    pub fn greatest_time(&self) -> StoreResult<Nanos> {
        self.about_number(GREATEST_TIME).map(Nanos)
    }

    /// The greatest time that counted for what is held.
    pub fn held_time(&self) -> StoreResult<Nanos> {
        self.about_number(HELD_TIME).map(Nanos)
    }
}
