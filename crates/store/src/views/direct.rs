//! Direct conversations: threads that only those see who were named when they were opened.

use crate::database::db::Db;
use crate::keys::DirectKey;
use crate::tables::TableReads;
use engine::reads::StoreResult;
use model::crypto::public_space;
use model::{Identity, Seq};

impl<V: TableReads> Db<V> {
    /// Whether a thread is a direct conversation, which stays private for ever.
    pub fn is_direct(&self, thread: Seq) -> StoreResult<bool> {
        Ok(self.tables.direct().range(DirectKey::of_thread(thread))?.next().transpose()?.is_some())
    }

    /// Whether somebody is among those who see a direct conversation.
    pub fn is_talking(&self, thread: Seq, identity: &Identity) -> StoreResult<bool> {
        self.tables.direct().contains(DirectKey::new(thread, public_space(identity)))
    }
}
