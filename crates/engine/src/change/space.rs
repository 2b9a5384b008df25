//! Changes of rows that only the `space` protocol has.

use super::{Change, RowChange};
use crate::rows::{Membership, MembershipLimit, ViewRow};
use model::{EventId, Seq, SpaceNo, Stamp};

/// One change of rows of the `space` protocol.
#[derive(Clone, PartialEq, Debug)]
pub enum SpaceChange {
    /// A contribution to a view.
    View(RowChange, ViewRow, Stamp, Seq),
    /// A membership of a space, counting or not.
    Membership(SpaceNo, Stamp, Seq, Membership),
    /// A counting limit of a membership.
    Limit(RowChange, Seq, MembershipLimit),
    /// An edit, counting or not, by its target: a delete of the target reaches all of them.
    Edit(Seq, Stamp, Seq),
    /// A delete, counting or not, by its target.
    Tombstone(EventId, Stamp, Seq),
}

impl From<SpaceChange> for Change {
    fn from(change: SpaceChange) -> Change {
        Change::Space(change)
    }
}
