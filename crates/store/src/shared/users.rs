//! The spaces that this node keeps and the users it acts for: local rows, protected under the space's
//! storage key.
//!
//! A user is `(space, user id)`. The row is found by a keyed hash of the id, so that the database shows no names.

use crate::database::batch::Batch;
use crate::database::db::Db;
use crate::database::open::StoreShared;
use crate::encode::{from_row, to_row};
use crate::errors::broken;
use crate::keys::*;
use crate::tables::TableReads;
use ed25519_dalek::SigningKey;
use engine::reads::{Reads as _, StoreResult};
use engine::receive::Keyring as _;
use model::crypto::SpaceKey;
use model::{AuthorNo, EventId, Identity, Nanos, Seq, SpaceId, SpaceNo, Stamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A space that this node keeps: it holds the identity that owns it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeptSpace {
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
    pub fn keep_space(&mut self, space: &SpaceId, kept: &KeptSpace) -> StoreResult<()> {
        self.touch();
        let row = self.protect(space, b"kept space", &to_row(kept)?)?;
        self.db.tables.kept_spaces.insert(SpaceIdKey::new(*space), &row)
    }

    /// Keeps a user, or changes what is kept of them.
    pub fn keep_user(&mut self, space: &SpaceId, user: &User) -> StoreResult<()> {
        self.touch();
        let key = self.shared.user_key(space, &user.id);
        let row = self.protect(space, key.as_bytes(), &to_row(user)?)?;
        self.db.tables.users.insert(key, &row)?;
        let key = UserNameKey::new(*space, user.identity);
        let row = self.protect(space, key.as_bytes(), user.id.as_bytes())?;
        self.db.tables.user_names.insert(key, &row)?;
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
    pub fn kept_space(&self, space: &SpaceId) -> StoreResult<Option<KeptSpace>> {
        let Some(row) = self.tables.kept_spaces().get_row(SpaceIdKey::new(*space))? else { return Ok(None) };
        let plain = self.open_at_rest(space, b"kept space", row.value()?)?;
        plain.map(|plain| from_row(&plain, "a kept space")).transpose()
    }

    /// Whether this node keeps a space, readable or not.
    pub fn is_kept(&self, space: &SpaceId) -> bool {
        self.tables.kept_spaces().contains(SpaceIdKey::new(*space)).unwrap_or(false)
    }

    /// All spaces that this node keeps.
    pub fn kept_spaces(&self) -> StoreResult<Vec<(SpaceId, KeptSpace)>> {
        let mut spaces = Vec::new();
        for entry in self.tables.kept_spaces().iter()? {
            let row = entry?;
            let space = row.key().id();
            if let Some(plain) = self.open_at_rest(&space, b"kept space", row.value()?)? {
                spaces.push((space, from_row(&plain, "a kept space")?));
            }
        }
        Ok(spaces)
    }

    /// A user by the name that applications use.
    pub fn user(&self, space: &SpaceId, user: &str) -> StoreResult<Option<User>> {
        let key = self.shared.user_key(space, user);
        let Some(row) = self.tables.users().get_row(key)? else { return Ok(None) };
        let plain = self.open_at_rest(space, key.as_bytes(), row.value()?)?;
        plain.map(|plain| from_row(&plain, "a user")).transpose()
    }

    /// Users of a space after a row, in an order that means nothing, with the row to go on from.
    pub fn users(&self, space: &SpaceId, after: Option<UserRow>, most: usize) -> StoreResult<Vec<(UserRow, User)>> {
        let all = UserKey::of_space(*space);
        let excluded = |after| std::ops::Bound::Excluded(UserKey::from(after));
        let from = after.map_or(std::ops::Bound::Included(*all.start()), excluded);
        let mut users = Vec::new();
        for row in self.tables.users().range((from, std::ops::Bound::Included(*all.end())))?.take(most) {
            let row = row?;
            if let Some(plain) = self.open_at_rest(space, row.key().as_bytes(), row.value()?)? {
                users.push((*row.key().as_bytes(), from_row(&plain, "a user")?));
            }
        }
        Ok(users)
    }

    /// The user id of an identity, where it is custodial here.
    pub fn user_name(&self, space: &SpaceId, identity: &Identity) -> StoreResult<Option<Arc<str>>> {
        if let Some(known) = self.keys.name(space, identity) {
            return Ok(Some(known));
        }
        let key = UserNameKey::new(*space, *identity);
        let found = match self.tables.user_names().get_row(key)? {
            Some(row) => match self.open_at_rest(space, key.as_bytes(), row.value()?)? {
                Some(plain) => Some(Arc::from(String::from_utf8(plain).map_err(|_| broken("a user's name"))?)),
                None => None,
            },
            None => None,
        };
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

    /// The signing key of a custodial identity.
    pub fn signing_key(&self, identity: &Identity) -> StoreResult<Option<Arc<SigningKey>>> {
        if let Some(known) = self.keys.signing_key(identity) {
            return Ok(Some(known));
        }
        let Some(row) = self.tables.custodians().get_row(IdentityKey::new(*identity))? else { return Ok(None) };
        let name = [b"custodian".as_slice(), &identity.0].concat();
        let secret = self.shared.master.unwrap32(&name, row.value()?).map_err(|_| broken("a custodial key"))?;
        let key = Arc::new(SigningKey::from_bytes(&secret));
        self.keys.remember_signing_key(identity, &key);
        Ok(Some(key))
    }
}
