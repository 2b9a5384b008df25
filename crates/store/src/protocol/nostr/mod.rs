//! Rows of the `nostr` protocol: events by address, time, kind and tag, deletes, and what is known of git repositories.

mod check;
mod dump;
mod queries;

pub use queries::{KeptRepository, NostrIndex};

use crate::database::batch::{Batch, put_or_remove};
use crate::database::db::Db;
use crate::keys::*;
use crate::tables::TableReads;
use engine::change::NostrChange;
use engine::reads::{NostrReads, StoreResult};
use engine::rows::{DeleteTarget, Owner};
use model::need::Oid;
use model::nostr::{AddressName, NostrId};
use model::{AuthorNo, Need, NostrKey, Seq, Stamp};
use std::ops::Bound;

impl Batch<'_> {
    pub(crate) fn apply_nostr(&mut self, change: NostrChange) -> StoreResult<()> {
        match change {
            NostrChange::Found { kind, stamp, tags, seq } => {
                self.db.tables.nostr_times.insert(NostrTimeKey::new(stamp), seq)?;
                self.db.tables.nostr_kinds.insert(NostrKindKey::new(kind, stamp), seq)?;
                for (letter, value) in tags {
                    self.db.tables.nostr_tags.insert(NostrTagKey::new(letter, value, stamp), seq)?;
                }
                Ok(())
            }
            NostrChange::Address(kind, name, author, place, seq) => {
                self.db.tables.nostr_addresses.insert(NostrAddressKey::new(kind, name, author, place), seq)
            }
            NostrChange::Delete(author, target, stamp, seq) => {
                self.db.tables.nostr_deletes.insert(NostrDeleteKey::new(author, target, stamp), seq)
            }
            NostrChange::Align(alignment) => {
                let pull_request = alignment.pull_request.unwrap_or(NostrId::ZERO);
                let name = AddressName::of(&alignment.identifier);
                let key = GitAlignKey::new(alignment.owner, name, pull_request);
                // Another number than before, so that whoever is at it now does not take this for done.
                let version = self.next_version;
                self.next_version += 1;
                let value = [&version.to_be_bytes()[..], alignment.identifier.as_bytes()].concat();
                self.db.tables.git_align.insert(key, &value)
            }
            NostrChange::Store(row_change, owner, identifier, store) => {
                let key = GitRepositoryKey::new(owner, AddressName::of(&identifier));
                let value = [&store[..], identifier.as_bytes()].concat();
                put_or_remove(row_change, &mut self.db.tables.git_stores, key, &value)
            }
            NostrChange::Pushed(row_change, pushed) => {
                let name = AddressName::of(&pushed.identifier);
                let key = GitAlignKey::new(pushed.owner, name, pushed.pull_request);
                let value = [&pushed.oid[..], &pushed.until.0.to_be_bytes(), pushed.identifier.as_bytes()].concat();
                put_or_remove(row_change, &mut self.db.tables.git_pushed, key, &value)
            }
            NostrChange::Present(row_change, owner, name, oid) => {
                let key = GitObjectKey::new(owner, name, oid);
                put_or_remove(row_change, &mut self.db.tables.git_present, key, ())
            }
            NostrChange::Data(row_change, owner, identifier) => {
                let key = GitRepositoryKey::new(owner, AddressName::of(&identifier));
                put_or_remove(row_change, &mut self.db.tables.git_data, key, identifier.as_bytes())
            }
        }
    }
}

impl<V: TableReads> NostrReads for Db<V> {
    fn address_winner(&self, kind: u16, author: AuthorNo, name: &AddressName) -> StoreResult<Option<(Stamp, Seq)>> {
        Self::last(self.tables.nostr_addresses().range(NostrAddressKey::of_author(kind, *name, author))?)
    }

    fn at_address(
        &self,
        kind: u16,
        name: &AddressName,
        author: AuthorNo,
        after: Stamp,
        most: usize,
    ) -> StoreResult<Vec<(Stamp, Seq)>> {
        let key = |stamp| NostrAddressKey::new(kind, *name, author, stamp);
        Self::after(self.tables.nostr_addresses(), key(after), key(Stamp::LAST), most)
    }

    fn authors_at(&self, kind: u16, name: &AddressName, most: usize) -> StoreResult<Vec<AuthorNo>> {
        let last = NostrAddressKey::new(kind, *name, AuthorNo(u32::MAX), Stamp::LAST);
        let mut from = NostrAddressKey::new(kind, *name, AuthorNo(0), Stamp::FIRST);
        let mut authors = Vec::new();
        // From author to author: however many events one of them has there, it is one step.
        while authors.len() < most {
            let range = (Bound::Excluded(from), Bound::Included(last));
            let Some(row) = self.tables.nostr_addresses().range(range)?.next().transpose()? else { break };
            authors.push(row.key().author());
            from = NostrAddressKey::new(kind, *name, row.key().author(), Stamp::LAST);
        }
        Ok(authors)
    }

    fn least_delete(&self, author: AuthorNo, target: &DeleteTarget, from: Stamp) -> StoreResult<Option<Stamp>> {
        let key = |stamp| NostrDeleteKey::new(author, *target, stamp);
        let first = self.tables.nostr_deletes().range(key(from)..=key(Stamp::LAST))?.next().transpose()?;
        Ok(first.map(|row| row.key().stamp()))
    }

    fn has_tag(&self, letter: u8, value: &str) -> StoreResult<bool> {
        let range = NostrTagKey::of_value(letter, AddressName::of(value));
        Ok(self.tables.nostr_tags().range(range)?.next().transpose()?.is_some())
    }

    fn is_git_present(&self, owner: &NostrKey, identifier: &str, oid: &Oid) -> StoreResult<bool> {
        let key = GitObjectKey::new(*owner, AddressName::of(identifier), *oid);
        self.tables.git_present().contains(key)
    }

    fn has_git_data(&self, owner: &NostrKey, identifier: &str) -> StoreResult<bool> {
        let key = GitRepositoryKey::new(*owner, AddressName::of(identifier));
        self.tables.git_data().contains(key)
    }

    fn git_store(&self, owner: &NostrKey, identifier: &str) -> StoreResult<Option<[u8; 16]>> {
        let key = GitRepositoryKey::new(*owner, AddressName::of(identifier));
        let row = self.tables.git_stores().get_row(key)?;
        row.map(|row| Ok(queries::read_store(row.value()?)?.0)).transpose()
    }

    fn waiting_for_objects(&self, owner: &NostrKey, identifier: &str, most: usize) -> StoreResult<Vec<Seq>> {
        self.waiting_under(&Need::keys_of_objects(owner, identifier), most)
    }

    fn held_of(&self, author: AuthorNo, most: usize) -> StoreResult<Vec<Seq>> {
        let range = HeldByOwnerKey::of_owner(Owner::Author(author));
        let rows = self.tables.held_by_owner().range(range)?.rev().take(most);
        rows.map(|row| Ok(row?.key().seq())).collect()
    }

    fn held_announcements(&self, identifier: &str, most: usize) -> StoreResult<Vec<Seq>> {
        let [_, _, data] = Need::keys_of_repository(identifier);
        self.waiting_under(&data, most)
    }
}
