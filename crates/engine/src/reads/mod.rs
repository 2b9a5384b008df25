//! The one trait through which the engine looks at what is kept; what only one protocol has is a trait beside it.

mod nostr;
#[cfg(feature = "simulation")]
mod probe;
mod space;

pub use nostr::NostrReads;
#[cfg(feature = "simulation")]
pub use probe::ProbeReads;
/// What only simulated protocols look at; in the product there is none.
#[cfg(feature = "simulation")]
use probe::ProbeReads as SimulatedReads;
#[cfg(not(feature = "simulation"))]
use space::SpaceReads as SimulatedReads;
pub use space::SpaceReads;

use crate::keyring::Keyring;
use crate::opened::Opened;
use crate::rows::{ContentRow, EventRow, Owner};
use model::files::WantedBytes;
use model::stage::RefusalReason;
use model::{AuthorKey, AuthorNo, Blob, ContentHash, EventId, Identity, Need, Seq, SpaceId, SpaceNo, Stamp, Verified};

/// The store could not answer, or what it answered breaks an invariant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The disk or the database failed.
    #[error("the store failed: {0}")]
    Store(String),
    /// The disk is full: the node goes on reading, and writes again when there is room.
    #[error("the disk is full")]
    Full,
    /// A row is missing or damaged where an invariant says that it is there.
    #[error("the store breaks a rule: {0}")]
    Broken(String),
}

/// What a read answers.
pub type StoreResult<T> = Result<T, StoreError>;

/// A kept blob with the inline content beside it.
#[derive(Clone, Debug)]
pub struct KeptBlob {
    /// The blob.
    pub blob: Blob,
    /// The inline content, if it is here.
    pub inline: Option<Vec<u8>>,
}

/// Everything the engine may look at. One snapshot: no answer changes while a step runs.
pub trait Reads: SpaceReads + NostrReads + SimulatedReads + Keyring {
    /// The number of a known event.
    fn seq(&self, id: &EventId) -> StoreResult<Option<Seq>>;
    /// The row of a known event.
    fn event(&self, seq: Seq) -> StoreResult<Option<EventRow>>;
    /// The blob of a known event.
    fn kept(&self, seq: Seq) -> StoreResult<Option<KeptBlob>>;
    /// An event that was opened and checked before.
    fn open_event(&self, seq: Seq) -> StoreResult<Option<Opened>>;
    /// The envelope of an event of the `space` protocol that was opened and checked before.
    fn opened(&self, seq: Seq) -> StoreResult<Option<Verified>> {
        Ok(self.open_event(seq)?.and_then(Opened::into_space))
    }
    /// Why an id was refused, if it is remembered.
    fn refused(&self, id: &EventId) -> StoreResult<Option<RefusalReason>>;
    /// The id of a numbered space.
    fn space_id(&self, space: SpaceNo) -> StoreResult<SpaceId>;
    /// The author behind a number.
    fn author_key(&self, author: AuthorNo) -> StoreResult<AuthorKey>;
    /// The identity behind the number of an author of the `space` protocol.
    fn identity(&self, author: AuthorNo) -> StoreResult<Identity> {
        let key = self.author_key(author)?;
        key.identity().ok_or_else(|| StoreError::Broken(format!("{author} is {key}, which is no identity")))
    }
    /// The number of a space, if it has one.
    fn space_no(&self, space: &SpaceId) -> StoreResult<Option<SpaceNo>>;
    /// The number of an author, if they have one.
    fn number_of(&self, author: &AuthorKey) -> StoreResult<Option<AuthorNo>>;
    /// The number of an identity, if it has one.
    fn author_no(&self, identity: &Identity) -> StoreResult<Option<AuthorNo>> {
        self.number_of(&AuthorKey::Space(*identity))
    }
    /// Whether somebody here has joined the space.
    fn joined(&self, space: &SpaceId) -> StoreResult<bool>;
    /// The count and place of a content.
    fn content(&self, space: SpaceNo, hash: &ContentHash) -> StoreResult<Option<ContentRow>>;
    /// What the content of a file event says of its bytes, while that content is here.
    fn wanted_bytes(&self, seq: Seq) -> StoreResult<Option<WantedBytes>>;
    /// The bytes of a content, if they are here and at most that long.
    fn content_bytes(&self, space: SpaceNo, hash: &ContentHash, most: u64) -> StoreResult<Option<Vec<u8>>>;
    /// Events that wait for a need, from a number on.
    fn waiting(&self, need: &Need, after: Seq, most: usize) -> StoreResult<Vec<Seq>>;
    /// Applied events whose content is missing, from a number on.
    fn waiting_for_content(&self, space: SpaceNo, hash: &ContentHash, after: Seq, most: usize)
    -> StoreResult<Vec<Seq>>;
    /// Applied events of an author in a space, after a stamp.
    fn by_author(&self, space: SpaceNo, author: AuthorNo, after: Stamp, most: usize) -> StoreResult<Vec<(Stamp, Seq)>>;
    /// The last applied events of an author in a space, up to a stamp, latest first.
    fn last_by_author(
        &self,
        space: SpaceNo,
        author: AuthorNo,
        upto: Stamp,
        most: usize,
    ) -> StoreResult<Vec<(Stamp, Seq)>>;
    /// How many events an owner has waiting.
    fn held_count(&self, owner: Owner) -> StoreResult<u64>;
    /// How many events wait in total.
    fn held_total(&self) -> StoreResult<u64>;
    /// The event of an owner that has waited longest.
    fn oldest_held(&self, owner: Owner) -> StoreResult<Option<Seq>>;
    /// How many events are carried in total.
    fn carried_total(&self) -> StoreResult<u64>;
    /// The event that has been carried longest, of whatever space.
    fn oldest_carried(&self) -> StoreResult<Option<(SpaceId, Seq)>>;
    /// Carried events of a space, oldest first, after a number.
    fn carried(&self, space: &SpaceId, after: Seq, most: usize) -> StoreResult<Vec<Seq>>;
    /// How many events of a space are carried.
    fn carried_count(&self, space: &SpaceId) -> StoreResult<u64>;
    /// Whether a parent of that author is known to be missing.
    fn is_gap(&self, space: SpaceNo, author: AuthorNo, parent: &EventId) -> StoreResult<bool>;
    /// The number that the next journal entry will get.
    fn next_position(&self) -> StoreResult<u64>;
}
