//! What the rules of the `space` protocol look at beside what all protocols do.

use super::StoreResult;
use crate::rows::{Membership, MembershipLimit, RegisterKey};
use model::{AuthorNo, EventId, Identity, Seq, SpaceNo, Stamp};

/// Rows of the `space` protocol.
pub trait SpaceReads {
    /// The membership that a space or member event gives.
    fn membership(&self, seq: Seq) -> StoreResult<Option<Membership>>;
    /// The memberships that somebody was given in a space, counting or not, in order.
    fn memberships_of(&self, space: SpaceNo, member: &Identity) -> StoreResult<Vec<(Stamp, Seq)>>;
    /// What ends or lessens a membership before a stamp, counting, in order, as far as the first that ends it.
    fn limits(&self, membership: Seq, before: Stamp) -> StoreResult<Vec<MembershipLimit>>;
    /// Deletes that name this target, counting or not, in order: after a stamp, at most so many.
    fn tombstones(&self, target: &EventId, after: Stamp, most: usize) -> StoreResult<Vec<(Stamp, Seq)>>;
    /// Edits of a message or post, counting or not, after a stamp.
    fn edits(&self, target: Seq, after: Stamp, most: usize) -> StoreResult<Vec<(Stamp, Seq)>>;
    /// Versions of a message or post, after a stamp.
    fn versions(&self, target: Seq, after: Stamp, most: usize) -> StoreResult<Vec<(Stamp, Seq)>>;
    /// The greatest candidate of a register.
    fn register_winner(&self, key: &RegisterKey) -> StoreResult<Option<(Stamp, Seq)>>;
    /// The latest version of a message or post, if it was edited.
    fn last_version(&self, target: Seq) -> StoreResult<Option<(Stamp, Seq)>>;
    /// The greatest reaction of an author on a target.
    fn reaction_winner(&self, target: Seq, author: AuthorNo) -> StoreResult<Option<(Stamp, Seq)>>;
    /// The least stamp from which events of some membership are to be looked at again, leaving out one such task.
    fn next_rederive(&self, but: (Seq, Stamp)) -> StoreResult<Option<Stamp>>;
}
