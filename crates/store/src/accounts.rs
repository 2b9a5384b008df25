//! People who come in through the pages: accounts, sessions, invitations. Rows rest under the storage key of their space.
//!
//! Sessions and invitations are found by the hash of a secret that only a browser or a link has.

use crate::batch::Batch;
use crate::db::{Db, fault};
use crate::encode;
use crate::people::{from_row, to_row};
use crate::tables::View;
use engine::reads::Answer;
use model::payload::MemberRole;
use model::{Nanos, SpaceId};
use redb::ReadableTable as _;
use serde::{Deserialize, Serialize};

/// The BLAKE3 hash of a secret.
pub type SecretHash = [u8; 32];

/// A way in for a user of a space.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The user.
    pub user: String,
    /// The hash of their password, in the form that names how it was made; none where there are passkeys only.
    pub password: Option<String>,
    /// Their passkeys, as the library that checks them writes them.
    pub passkeys: Vec<Passkey>,
    /// What they want to be called; empty for the user's name.
    pub display: String,
    /// A picture, as PNG or JPEG.
    pub picture: Option<Vec<u8>>,
    /// When it was made.
    pub since: Nanos,
}

/// A passkey.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Passkey {
    /// What its owner calls it.
    pub label: String,
    /// When it was added.
    pub since: Nanos,
    /// What the library that checks it keeps.
    pub data: Vec<u8>,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Account({})", self.user)
    }
}

/// A browser that somebody signed in with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Session {
    /// Who.
    pub user: String,
    /// Whether it is the operator's as well.
    pub is_operator: bool,
    /// Since when.
    pub since: Nanos,
    /// When it was last used, to within some minutes.
    pub seen: Nanos,
    /// What the browser calls itself.
    pub agent: String,
}

/// A link by which somebody may come in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Invitation {
    role: u8,
    /// Who made it.
    pub by: String,
    /// What for.
    pub note: String,
    /// When it was made.
    pub since: Nanos,
    /// From when it is not good any more.
    pub ends_at: Nanos,
    /// How many may still use it.
    pub uses_left: u32,
}

impl Invitation {
    /// An invitation to a role.
    pub fn new(role: MemberRole, by: String, note: String, since: Nanos, ends_at: Nanos, uses_left: u32) -> Invitation {
        Invitation { role: role.code(), by, note, since, ends_at, uses_left }
    }

    /// The role that it gives.
    pub fn role(&self) -> Option<MemberRole> {
        MemberRole::from_code(self.role)
    }

    /// Whether it is good at that time.
    pub fn is_good(&self, now: Nanos) -> bool {
        now < self.ends_at && self.uses_left > 0
    }
}

fn hash_key(space: &SpaceId, hash: &SecretHash) -> [u8; 48] {
    encode::key(&[&space.0, hash])
}

impl Batch<'_> {
    /// Keeps an account, or changes what is kept of it.
    pub fn keep_account(&mut self, space: &SpaceId, account: &Account) -> Answer<()> {
        self.touch();
        let key = self.shared.user_key(space, &account.user);
        let row = self.protect(space, &key, &to_row(account)?)?;
        self.db.tables.accounts.insert(key, row.as_slice()).map_err(fault)?;
        Ok(())
    }

    /// Forgets an account and ends its sessions.
    pub fn forget_account(&mut self, space: &SpaceId, user: &str) -> Answer<()> {
        self.touch();
        let key = self.shared.user_key(space, user);
        self.db.tables.accounts.remove(key).map_err(fault)?;
        for (hash, session) in self.db.sessions(space)? {
            if session.user == user {
                self.end_session(space, &hash)?;
            }
        }
        Ok(())
    }

    /// Keeps a session, or changes what is kept of it.
    pub fn keep_session(&mut self, space: &SpaceId, hash: &SecretHash, session: &Session) -> Answer<()> {
        self.touch();
        let key = hash_key(space, hash);
        let row = self.protect(space, &key, &to_row(session)?)?;
        self.db.tables.sessions.insert(key, row.as_slice()).map_err(fault)?;
        Ok(())
    }

    /// Ends a session. Says whether there was one.
    pub fn end_session(&mut self, space: &SpaceId, hash: &SecretHash) -> Answer<bool> {
        self.touch();
        Ok(self.db.tables.sessions.remove(hash_key(space, hash)).map_err(fault)?.is_some())
    }

    /// Keeps an invitation, or changes what is kept of it.
    pub fn keep_invitation(&mut self, space: &SpaceId, hash: &SecretHash, invitation: &Invitation) -> Answer<()> {
        self.touch();
        let key = hash_key(space, hash);
        let row = self.protect(space, &key, &to_row(invitation)?)?;
        self.db.tables.invitations.insert(key, row.as_slice()).map_err(fault)?;
        Ok(())
    }

    /// Takes an invitation back. Says whether there was one.
    pub fn end_invitation(&mut self, space: &SpaceId, hash: &SecretHash) -> Answer<bool> {
        self.touch();
        Ok(self.db.tables.invitations.remove(hash_key(space, hash)).map_err(fault)?.is_some())
    }
}

/// The rows of a space that are found by a hash, opened.
macro_rules! by_hash {
    ($db:ident, $space:ident, $table:ident, $what:literal) => {{
        let mut found = Vec::new();
        let range = hash_key($space, &[0; 32])..=hash_key($space, &[0xff; 32]);
        for entry in $db.tables.$table().range(range).map_err(fault)? {
            let (key, row) = entry.map_err(fault)?;
            if let Some(plain) = $db.open_at_rest($space, &key.value(), row.value())? {
                found.push((encode::key(&[&key.value()[16..]]), from_row(&plain, $what)?));
            }
        }
        Ok(found)
    }};
}

impl<V: View> Db<V> {
    /// The account of a user.
    pub fn account(&self, space: &SpaceId, user: &str) -> Answer<Option<Account>> {
        let key = self.shared.user_key(space, user);
        let Some(row) = self.tables.accounts().get(key).map_err(fault)? else { return Ok(None) };
        let plain = self.open_at_rest(space, &key, row.value())?;
        plain.map(|plain| from_row(&plain, "an account")).transpose()
    }

    /// A session by the hash of its secret.
    pub fn session(&self, space: &SpaceId, hash: &SecretHash) -> Answer<Option<Session>> {
        let key = hash_key(space, hash);
        let Some(row) = self.tables.sessions().get(key).map_err(fault)? else { return Ok(None) };
        let plain = self.open_at_rest(space, &key, row.value())?;
        plain.map(|plain| from_row(&plain, "a session")).transpose()
    }

    /// An invitation by the hash of its secret.
    pub fn invitation(&self, space: &SpaceId, hash: &SecretHash) -> Answer<Option<Invitation>> {
        let key = hash_key(space, hash);
        let Some(row) = self.tables.invitations().get(key).map_err(fault)? else { return Ok(None) };
        let plain = self.open_at_rest(space, &key, row.value())?;
        plain.map(|plain| from_row(&plain, "an invitation")).transpose()
    }

    /// All sessions of a space, in an order that means nothing.
    pub fn sessions(&self, space: &SpaceId) -> Answer<Vec<(SecretHash, Session)>> {
        by_hash!(self, space, sessions, "a session")
    }

    /// All invitations of a space, in an order that means nothing.
    pub fn invitations(&self, space: &SpaceId) -> Answer<Vec<(SecretHash, Invitation)>> {
        by_hash!(self, space, invitations, "an invitation")
    }
}
