//! The spaces that this node keeps and the users it acts for: shared rows, protected under the space's storage key.
//!
//! A user is `(space, user id)`. The row is found by a keyed hash of the id, so that the database shows no names.

use crate::database::batch::Batch;
use crate::database::db::Db;
use crate::database::open::StoreShared;
use crate::keys::*;
use crate::shared::{Custodians, HostedSpaces, UserNames, Users};
use crate::tables::TableReads;
use ed25519_dalek::SigningKey;
use engine::keyring::Keyring as _;
use engine::reads::{Reads as _, StoreResult};
use model::crypto::SpaceKey;
use model::{AuthorNo, EventId, Identity, Nanos, Seq, SpaceId, SpaceNo, Stamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A space that this node keeps: it holds the identity that owns it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HostedSpace {
    /// What the operator calls it; unique on this node.
    pub name: String,
    /// The identity that owns it.
    pub keeper: Identity,
    /// The event that founded it, which is the keeper's authority.
    pub founding: EventId,
    /// Whether it is sealed.
    pub sealed: bool,
}

/// The key of a user's row, to go on from.
pub type UserRow = [u8; UserKey::WIDTH];

/// A user of the API.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct User {
    /// The name by which applications know them.
    pub id: String,
    /// Their custodial identity.
    pub identity: Identity,
    /// The membership they act on.
    pub membership: EventId,
    /// When they were admitted.
    pub since: Nanos,
    /// Whether they were removed or erased.
    pub is_gone: bool,
}

impl StoreShared {
    pub(crate) fn user_key(&self, space: &SpaceId, user: &str) -> UserKey {
        UserKey::new(*space, UserHash(self.master.index_hash(&[&space.0, user.as_bytes()])))
    }
}

impl Batch<'_> {
    /// Keeps a space, or changes what is kept of it.
    pub fn host_space(&mut self, space: &SpaceId, kept: &HostedSpace) -> StoreResult<()> {
        self.set_shared::<HostedSpaces>(&SpaceIdKey::new(*space), kept)
    }

    /// Keeps a user, or changes what is kept of them. The user comes before the name that leads to them: without the
    /// name they act as ever, and their identity shows without one.
    pub fn keep_user(&mut self, space: &SpaceId, user: &User) -> StoreResult<()> {
        let key = self.shared.user_key(space, &user.id);
        self.set_shared::<Users>(&key, user)?;
        self.set_shared::<UserNames>(&UserNameKey::new(*space, user.identity), &user.id)?;
        self.shared.keys.forget_name(space, &user.identity);
        Ok(())
    }
}

impl<V: TableReads> Db<V> {
    /// Who an author is, remembered: a number that was committed never changes its meaning.
    pub(crate) fn remembered_identity(&self, author: AuthorNo) -> StoreResult<Identity> {
        if let Some(known) = self.keys.identity(author) {
            return Ok(known);
        }
        let identity = self.identity(author)?;
        if self.is_settled {
            self.keys.remember_identity(author, identity);
        }
        Ok(identity)
    }

    /// What a range of authors wrote in a space after a place, by author and stamp.
    pub fn written_after(
        &self,
        space: SpaceNo,
        after: (AuthorNo, Stamp),
        upto: AuthorNo,
        most: usize,
    ) -> StoreResult<Vec<(AuthorNo, Stamp, Seq)>> {
        let from = std::ops::Bound::Excluded(AuthorStamp::new(space, after.0, after.1));
        let to = std::ops::Bound::Included(AuthorStamp::new(space, upto, Stamp::LAST));
        let mut found = Vec::new();
        for row in self.tables.by_author().range((from, to))?.take(most) {
            let row = row?;
            found.push((row.key().author(), row.key().stamp(), row.value()?));
        }
        Ok(found)
    }

    /// What an author wrote in a space up to a place, in order: the latest so many.
    pub fn written_before(&self, space: SpaceNo, author: AuthorNo, upto: Stamp, most: usize) -> StoreResult<Vec<Seq>> {
        let range = AuthorStamp::new(space, author, Stamp::FIRST)..=AuthorStamp::new(space, author, upto);
        let mut found = Vec::new();
        for row in self.tables.by_author().range(range)?.rev().take(most) {
            found.push(row?.value()?);
        }
        found.reverse();
        Ok(found)
    }

    /// A space that this node keeps.
    pub fn hosted_space(&self, space: &SpaceId) -> StoreResult<Option<HostedSpace>> {
        self.shared::<HostedSpaces>(&SpaceIdKey::new(*space))
    }

    /// Whether this node keeps a space, readable or not.
    pub fn is_hosted(&self, space: &SpaceId) -> bool {
        self.tables.hosted_spaces().contains(SpaceIdKey::new(*space)).unwrap_or(false)
    }

    /// All spaces that this node keeps.
    pub fn hosted_spaces(&self) -> StoreResult<Vec<(SpaceId, HostedSpace)>> {
        let rows = self.shared_range::<HostedSpaces>(..)?;
        rows.map(|row| row.map(|(key, kept)| (key.id(), kept))).collect()
    }

    /// A user by the name that applications use.
    pub fn user(&self, space: &SpaceId, user: &str) -> StoreResult<Option<User>> {
        self.shared::<Users>(&self.shared.user_key(space, user))
    }

    /// Users of a space after a row, in an order that means nothing, with the row to go on from.
    pub fn users(&self, space: &SpaceId, after: Option<UserRow>, most: usize) -> StoreResult<Vec<(UserRow, User)>> {
        let all = UserKey::of_space(*space);
        let excluded = |after| std::ops::Bound::Excluded(UserKey::from(after));
        let from = after.map_or(std::ops::Bound::Included(*all.start()), excluded);
        let users = self.shared_range::<Users>((from, std::ops::Bound::Included(*all.end())))?;
        users.take(most).map(|row| row.map(|(key, user)| (*key.as_bytes(), user))).collect()
    }

    /// The user id of an identity, where it is custodial here.
    pub fn user_name(&self, space: &SpaceId, identity: &Identity) -> StoreResult<Option<Arc<str>>> {
        if let Some(known) = self.keys.name(space, identity) {
            return Ok(Some(known));
        }
        let found: Option<Arc<str>> = self.shared::<UserNames>(&UserNameKey::new(*space, *identity))?.map(Arc::from);
        // An unknown identity may get a name with the next commit, so only what is found is remembered.
        if let Some(name) = &found {
            self.keys.remember_name(space, identity, name);
        }
        Ok(found)
    }

    /// The key that new events of a sealed space are sealed under.
    pub fn current_space_key(&self, space: &SpaceId) -> StoreResult<Option<Arc<SpaceKey>>> {
        let current = self.tables.current_keys().get(SpaceIdKey::new(*space))?;
        Ok(current.and_then(|key| self.space_key(space, &key)))
    }

    /// The secrets of all keys of a space, the current one last.
    pub fn space_keys(&self, space: &SpaceId) -> StoreResult<Vec<[u8; 32]>> {
        let current = self.tables.current_keys().get(SpaceIdKey::new(*space))?;
        let mut keys = self.keys.space_keys(space);
        keys.sort_by_key(|key| Some(key.id()) == current);
        Ok(keys.iter().map(|key| *key.secret()).collect())
    }

    /// The signing key of a custodial identity.
    pub fn signing_key(&self, identity: &Identity) -> StoreResult<Option<Arc<SigningKey>>> {
        if let Some(known) = self.keys.signing_key(identity) {
            return Ok(Some(known));
        }
        let Some(secret) = self.shared::<Custodians>(&IdentityKey::new(*identity))? else { return Ok(None) };
        let key = Arc::new(SigningKey::from_bytes(&zeroize::Zeroizing::new(secret)));
        self.keys.remember_signing_key(identity, &key);
        Ok(Some(key))
    }
}
