//! The keys of the `nostr` protocol.

use super::{KeyField, StampedKey, TableKey, fixed_keys};
use engine::rows::DeleteTarget;
use model::need::Oid;
use model::nostr::{AddressName, NostrId};
use model::{AuthorNo, NostrKey, Stamp};

fixed_keys! {
    /// Events at an address, by the place where they stand.
    NostrAddressKey { kind: u16, name: AddressName, author: AuthorNo, stamp: Stamp }
        of_author(kind: u16, name: AddressName, author: AuthorNo);
    /// All Nostr events, in order.
    NostrTimeKey { stamp: Stamp };
    /// Nostr events of a kind, in order.
    NostrKindKey { kind: u16, stamp: Stamp } of_kind(kind: u16);
    /// Nostr events with a tag, in order.
    NostrTagKey { letter: u8, value: AddressName, stamp: Stamp } of_value(letter: u8, value: AddressName);
    /// Deletes of an author, by what they name, in order.
    NostrDeleteKey { author: AuthorNo, target: DeleteTarget, stamp: Stamp };
    /// A git object of a repository.
    GitObjectKey { owner: NostrKey, name: AddressName, oid: Oid } of_repository(owner: NostrKey, name: AddressName);
    /// A git repository.
    GitRepositoryKey { owner: NostrKey, name: AddressName } of_owner(owner: NostrKey);
    /// Refs of a git repository: of a pull request, or, where that is zero, all others.
    GitAlignKey { owner: NostrKey, name: AddressName, pull_request: NostrId }
        of_repository(owner: NostrKey, name: AddressName);
}

macro_rules! stamped_nostr_keys {
    ($($name:ident),*) => {$(
        impl StampedKey for $name {
            fn stamp_of(key: &$name) -> Stamp {
                key.stamp()
            }
        }
    )*};
}

stamped_nostr_keys!(NostrAddressKey, NostrTimeKey, NostrKindKey, NostrTagKey);
