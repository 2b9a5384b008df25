//! What a data folder is known by: the id of its node, and the epoch of its journal. Both are random.
//!
//! The epoch is drawn when a folder is made and at every restore, so that no two folders ever share one and a position of
//! one journal is never taken for one of another. The node id is drawn when a folder is made and stays through restores:
//! a restored folder is the same node, in a state of before. Node id and epoch together name one folder.

use crate::at_rest::KeySource;
use crate::database::db::Db;
use crate::database::open::Store;
use crate::tables::{TableReads, Tables};
use engine::reads::StoreResult;

/// The row with the epoch of the journal.
pub(crate) const EPOCH: &str = "epoch";
/// The row with the id of the node.
pub(crate) const NODE_ID: &str = "node id";

/// Which node a data folder is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub [u8; 16]);

impl std::fmt::Display for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "node:{self}")
    }
}

/// Draws an epoch: 53 random bits, which every reader of JSON keeps, and never zero.
pub(crate) fn draw_epoch(random: KeySource, context: &[u8]) -> StoreResult<u64> {
    let drawn = u64::from_be_bytes(random.draw("anteroom v1 epoch of a test", context)?);
    Ok((drawn >> 11).max(1))
}

/// Draws the id of a node.
pub(crate) fn draw_node_id(random: KeySource, context: &[u8]) -> StoreResult<NodeId> {
    Ok(NodeId(random.draw("anteroom v1 node id of a test", context)?))
}

impl Store {
    /// Starts a new epoch of the journal: positions given before mean nothing any more. Says which it is.
    pub(crate) fn begin_epoch(&self, now: model::Nanos) -> StoreResult<u64> {
        let old = self.snapshot()?.epoch()?;
        let context = [old.to_be_bytes(), now.0.to_be_bytes()].concat();
        let new = draw_epoch(self.shared.random, &context)?;
        self.write_raw(|transaction| {
            Tables::open(transaction)?.about.insert(EPOCH, &new.to_be_bytes())?;
            Ok(new)
        })
    }
}

impl<V: TableReads> Db<V> {
    /// Which node this folder is of.
    pub fn node_id(&self) -> StoreResult<NodeId> {
        let id = self.about(NODE_ID)?.and_then(|bytes| bytes.try_into().ok());
        id.map(NodeId).ok_or_else(|| crate::errors::broken("the node id"))
    }
}
