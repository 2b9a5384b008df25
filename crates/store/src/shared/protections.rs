//! What of a space's content is encrypted at rest: a shared row for each space that differs from the default.

use crate::at_rest::Protection;
use crate::database::batch::Batch;
use crate::database::db::Db;
use crate::keys::SpaceIdKey;
use crate::shared::Protections;
use crate::tables::TableReads;
use engine::reads::StoreResult;
use model::SpaceId;

impl<V: TableReads> Db<V> {
    /// What of a space's content is encrypted at rest.
    pub fn protection(&self, space: &SpaceId) -> StoreResult<Protection> {
        Ok(self.shared::<Protections>(&SpaceIdKey::new(*space))?.unwrap_or_default())
    }
}

impl Batch<'_> {
    /// Sets what of a space's content is encrypted from now on. What is stored already changes with the next sweep.
    pub fn set_protection(&mut self, space: &SpaceId, protection: &Protection) -> StoreResult<()> {
        self.touch();
        self.writing.remove(space);
        // A walk that is under way may be past this space.
        self.db.tables.about.remove(crate::at_rest::SWEEP)?;
        self.set_shared::<Protections>(&SpaceIdKey::new(*space), protection)
    }
}
