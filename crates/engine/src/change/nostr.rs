//! Changes of rows that only the `nostr` protocol has.

use super::{Change, RowChange};
use crate::rows::{Alignment, DeleteTarget, PushedCommit};
use model::nostr::AddressName;
use model::{AuthorNo, NostrKey, Seq, Stamp, need::Oid};
use std::collections::BTreeSet;

/// One change of rows of the `nostr` protocol.
#[derive(Clone, PartialEq, Debug)]
pub enum NostrChange {
    /// An applied event, found by time, kind and tags.
    Found { kind: u16, stamp: Stamp, tags: BTreeSet<(u8, AddressName)>, seq: Seq },
    /// A candidate at an address, at the place where it stands among the others.
    Address(u16, AddressName, AuthorNo, Stamp, Seq),
    /// A delete of an author.
    Delete(AuthorNo, DeleteTarget, Stamp, Seq),
    /// A repository whose refs have to be looked at, or that was.
    Align(Alignment),
    /// An object and all that it reaches are in a repository, or are not any more.
    Present(RowChange, NostrKey, AddressName, Oid),
    /// Where the objects of a repository are, or were.
    Store(RowChange, NostrKey, String, [u8; 16]),
    /// A commit that was pushed for a pull request whose event is not here, and until when it waits; or it does not.
    Pushed(RowChange, PushedCommit),
    /// A repository has its first authorised refs, or is gone.
    Data(RowChange, NostrKey, String),
}

impl From<NostrChange> for Change {
    fn from(change: NostrChange) -> Change {
        Change::Nostr(change)
    }
}
