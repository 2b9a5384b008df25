//! What the rules of the `nostr` protocol look at beside what all protocols do.

use super::StoreResult;
use crate::rows::DeleteTarget;
use model::need::Oid;
use model::nostr::AddressName;
use model::{AuthorNo, NostrKey, Seq, Stamp};

/// Rows of the `nostr` protocol.
pub trait NostrReads {
    /// The applied event that stands last at an address, with its place.
    fn address_winner(&self, kind: u16, author: AuthorNo, name: &AddressName) -> StoreResult<Option<(Stamp, Seq)>>;
    /// Applied events at an address, by place: after one, at most so many.
    fn at_address(
        &self,
        kind: u16,
        name: &AddressName,
        author: AuthorNo,
        after: Stamp,
        most: usize,
    ) -> StoreResult<Vec<(Stamp, Seq)>>;
    /// Authors with an applied event at an address of that kind and name, at most so many.
    fn authors_at(&self, kind: u16, name: &AddressName, most: usize) -> StoreResult<Vec<AuthorNo>>;
    /// The least delete of a target by an author, from a stamp on.
    fn least_delete(&self, author: AuthorNo, target: &DeleteTarget, from: Stamp) -> StoreResult<Option<Stamp>>;
    /// Whether an applied event has a tag of that letter with that value.
    fn has_tag(&self, letter: u8, value: &str) -> StoreResult<bool>;
    /// Whether an object and all it reaches are in a repository.
    fn is_git_present(&self, owner: &NostrKey, identifier: &str, oid: &Oid) -> StoreResult<bool>;
    /// Whether a repository has its first authorised refs.
    fn has_git_data(&self, owner: &NostrKey, identifier: &str) -> StoreResult<bool>;
    /// Where the objects of a repository are, once that is decided.
    fn git_store(&self, owner: &NostrKey, identifier: &str) -> StoreResult<Option<[u8; 16]>>;
    /// Held events that wait for objects of a repository, each once, at most so many.
    fn waiting_for_objects(&self, owner: &NostrKey, identifier: &str, most: usize) -> StoreResult<Vec<Seq>>;
    /// What of an author is held, the latest to have come first, at most so many.
    fn held_of(&self, author: AuthorNo, most: usize) -> StoreResult<Vec<Seq>>;
    /// Held announcements of an identifier, whoever their owners are, at most so many.
    fn held_announcements(&self, identifier: &str, most: usize) -> StoreResult<Vec<Seq>>;
}
