//! People who come in through the pages: accounts, sessions, invitations. Rows rest under the storage key of their space.
//!
//! Sessions and invitations are found by the hash of a secret that only a browser or a link has.

use crate::database::batch::Batch;
use crate::database::db::{Db, fault};

use crate::encode::{from_row, to_row};
use crate::tables::TableReads;
use engine::reads::StoreResult;
use model::payload::MemberRole;
use model::{Nanos, SpaceId};
use redb::ReadableTable as _;
use serde::{Deserialize, Serialize};

/// The BLAKE3 hash of a secret.
pub type SecretHash = [u8; 32];

/// What a session is found by: the space, the keyed hash of the user, and half the hash of the browser's secret. So a
/// user's sessions are neighbours.
pub type SessionId = [u8; 48];

/// What a passkey calls a user.
pub type PasskeyHandle = [u8; 16];

/// Ways in for a user of a space.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The user.
    pub user: String,
    /// The hash of their password, in the form that names how it was made; none for whoever comes by a link only.
    pub password: Option<String>,
    /// What they want to be called; empty for the user's name.
    pub display: String,
    /// A picture, as PNG or JPEG.
    pub picture: Option<Vec<u8>>,
    /// When it was made.
    pub since: Nanos,
    /// Other ways in.
    pub passkeys: Vec<Passkey>,
}

impl Account {
    /// An account without a way in.
    pub fn new(user: String, since: Nanos) -> Account {
        Account { user, password: None, display: String::new(), picture: None, since, passkeys: Vec::new() }
    }
}

/// A passkey: what a browser proves itself with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Passkey {
    /// What browsers know it by.
    pub id: Vec<u8>,
    /// The host that it was made for; it is good for no other.
    pub host: String,
    /// Where it was made, as its owner sees it.
    pub label: String,
    /// When it was made.
    pub since: Nanos,
    /// When it was last used.
    pub used: Nanos,
    /// Its public key and what was said with it, as JSON.
    pub key: Vec<u8>,
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

/// The space of a session.
pub fn space_of(id: &SessionId) -> SpaceId {
    SpaceId(crate::keys::key(&[&id[..16]]))
}

/// The session of a user who has that secret.
pub fn session_id(user_key: &[u8; 32], hash: &SecretHash) -> SessionId {
    crate::keys::key(&[user_key, &hash[..16]])
}

fn hash_key(space: &SpaceId, hash: &SecretHash) -> [u8; 48] {
    crate::keys::key(&[&space.0, hash])
}

impl Batch<'_> {
    /// Keeps an account, or changes what is kept of it.
    pub fn keep_account(&mut self, space: &SpaceId, account: &Account) -> StoreResult<()> {
        self.touch();
        let key = self.shared.user_key(space, &account.user);
        let row = self.protect(space, &key, &to_row(account)?)?;
        self.db.tables.accounts.insert(key, row.as_slice()).map_err(fault)?;
        Ok(())
    }

    /// Forgets an account, ends its sessions, and takes back what its user invited to.
    pub fn forget_account(&mut self, space: &SpaceId, user: &str) -> StoreResult<()> {
        self.touch();
        let key = self.shared.user_key(space, user);
        self.db.tables.accounts.remove(key).map_err(fault)?;
        for (id, _) in self.db.sessions_of(space, user)? {
            self.end_session(&id)?;
        }
        for (hash, invitation) in self.db.invitations(space)? {
            if invitation.by == user {
                self.end_invitation(space, &hash)?;
            }
        }
        Ok(())
    }

    /// Keeps a session, or changes what is kept of it.
    pub fn keep_session(&mut self, id: &SessionId, session: &Session) -> StoreResult<()> {
        self.touch();
        let row = self.protect(&space_of(id), id, &to_row(session)?)?;
        self.db.tables.sessions.insert(id, row.as_slice()).map_err(fault)?;
        Ok(())
    }

    /// Ends a session. Says whether there was one.
    pub fn end_session(&mut self, id: &SessionId) -> StoreResult<bool> {
        self.touch();
        Ok(self.db.tables.sessions.remove(id).map_err(fault)?.is_some())
    }

    /// Keeps an invitation, or changes what is kept of it.
    pub fn keep_invitation(&mut self, space: &SpaceId, hash: &SecretHash, invitation: &Invitation) -> StoreResult<()> {
        self.touch();
        let key = hash_key(space, hash);
        let row = self.protect(space, &key, &to_row(invitation)?)?;
        self.db.tables.invitations.insert(key, row.as_slice()).map_err(fault)?;
        Ok(())
    }

    /// Takes an invitation back. Says whether there was one.
    pub fn end_invitation(&mut self, space: &SpaceId, hash: &SecretHash) -> StoreResult<bool> {
        self.touch();
        Ok(self.db.tables.invitations.remove(hash_key(space, hash)).map_err(fault)?.is_some())
    }
}

impl<V: TableReads> Db<V> {
    /// The account of a user.
    pub fn account(&self, space: &SpaceId, user: &str) -> StoreResult<Option<Account>> {
        self.account_at(space, self.shared.user_key(space, user))
    }

    /// What a passkey calls a user: it tells nobody else who that is.
    pub fn handle(&self, space: &SpaceId, user: &str) -> PasskeyHandle {
        crate::keys::key(&[&self.shared.user_key(space, user)[16..]])
    }

    /// The account that a passkey names.
    pub fn account_by_handle(&self, space: &SpaceId, handle: &PasskeyHandle) -> StoreResult<Option<Account>> {
        self.account_at(space, crate::keys::key(&[&space.0, handle]))
    }

    fn account_at(&self, space: &SpaceId, key: [u8; 32]) -> StoreResult<Option<Account>> {
        let Some(row) = self.tables.accounts().get(key).map_err(fault)? else { return Ok(None) };
        let plain = self.open_at_rest(space, &key, row.value())?;
        plain.map(|plain| from_row(&plain, "an account")).transpose()
    }

    /// What the sessions of a user begin with.
    pub fn session_prefix(&self, space: &SpaceId, user: &str) -> [u8; 32] {
        self.shared.user_key(space, user)
    }

    /// A session.
    pub fn session(&self, id: &SessionId) -> StoreResult<Option<Session>> {
        let Some(row) = self.tables.sessions().get(id).map_err(fault)? else { return Ok(None) };
        let plain = self.open_at_rest(&space_of(id), id, row.value())?;
        plain.map(|plain| from_row(&plain, "a session")).transpose()
    }

    /// An invitation by the hash of its secret.
    pub fn invitation(&self, space: &SpaceId, hash: &SecretHash) -> StoreResult<Option<Invitation>> {
        let key = hash_key(space, hash);
        let Some(row) = self.tables.invitations().get(key).map_err(fault)? else { return Ok(None) };
        let plain = self.open_at_rest(space, &key, row.value())?;
        plain.map(|plain| from_row(&plain, "an invitation")).transpose()
    }

    /// The sessions of a user.
    pub fn sessions_of(&self, space: &SpaceId, user: &str) -> StoreResult<Vec<(SessionId, Session)>> {
        let prefix = self.session_prefix(space, user);
        self.sessions_between(session_id(&prefix, &[0; 32]), session_id(&prefix, &[0xff; 32]), usize::MAX)
    }

    /// Sessions of a space, in an order that means nothing.
    pub fn sessions(&self, space: &SpaceId, most: usize) -> StoreResult<Vec<(SessionId, Session)>> {
        self.sessions_between(crate::keys::key(&[&space.0]), crate::keys::key(&[&space.0, &[0xff; 32]]), most)
    }

    fn sessions_between(&self, from: SessionId, to: SessionId, most: usize) -> StoreResult<Vec<(SessionId, Session)>> {
        let mut found = Vec::new();
        for entry in self.tables.sessions().range(from..=to).map_err(fault)?.take(most) {
            let (id, row) = entry.map_err(fault)?;
            if let Some(plain) = self.open_at_rest(&space_of(&id.value()), &id.value(), row.value())? {
                found.push((id.value(), from_row(&plain, "a session")?));
            }
        }
        Ok(found)
    }

    /// All invitations of a space, in an order that means nothing.
    pub fn invitations(&self, space: &SpaceId) -> StoreResult<Vec<(SecretHash, Invitation)>> {
        let mut found = Vec::new();
        let range = hash_key(space, &[0; 32])..=hash_key(space, &[0xff; 32]);
        for entry in self.tables.invitations().range(range).map_err(fault)? {
            let (key, row) = entry.map_err(fault)?;
            if let Some(plain) = self.open_at_rest(space, &key.value(), row.value())? {
                found.push((crate::keys::key(&[&key.value()[16..]]), from_row(&plain, "an invitation")?));
            }
        }
        Ok(found)
    }
}
