//! People who come in through the pages: accounts, sessions, invitations. Rows rest under the storage key of their space.
//!
//! Sessions and invitations are found by the hash of a secret that only a browser or a link has.

use crate::database::batch::Batch;
use crate::database::db::Db;
use crate::keys::*;
use crate::shared::{Accounts, Invitations, Sessions};
use crate::tables::TableReads;
use engine::reads::StoreResult;
use model::payload::MemberRole;
use model::{Nanos, SpaceId};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// The BLAKE3 hash of a secret.
pub type SecretHash = [u8; 32];

/// What a session is found by: the space, the keyed hash of the user, and half the hash of the browser's secret. So a
/// user's sessions are neighbours.
pub type SessionId = [u8; SessionKey::WIDTH];

/// What a passkey calls a user.
pub type PasskeyHandle = [u8; 16];

/// Ways in for a user of a space.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The id of the user whose account it is.
    pub user: String,
    /// The hash of their password, in the form that names how it was made; none for whoever comes by a link only.
    pub password: Option<String>,
    /// What they want to be called; empty for the user's name.
    pub display: String,
    /// A picture, as PNG or JPEG.
    pub picture: Option<Vec<u8>>,
    /// When it was made.
    pub since: Nanos,
    /// Passkeys, each a way in of its own.
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
    /// The id of the user who signed in.
    pub user: String,
    /// Whether it is the operator's as well.
    pub is_operator: bool,
    /// When they signed in.
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
    /// The id of the user who made it.
    pub by: String,
    /// What whoever made it noted for themselves.
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
    SessionKey::from(*id).space()
}

/// The session of a user who has that secret.
pub fn session_id(user_key: &[u8; UserKey::WIDTH], hash: &SecretHash) -> SessionId {
    let user = UserKey::from(*user_key);
    *SessionKey::new(user.space(), user.user(), KeyField::read(&hash[..16])).as_bytes()
}

impl Batch<'_> {
    /// Keeps an account, or changes what is kept of it.
    pub fn keep_account(&mut self, space: &SpaceId, account: &Account) -> StoreResult<()> {
        let key = self.shared.user_key(space, &account.user);
        self.set_shared::<Accounts>(&key, account)
    }

    /// Takes back what a user invited to, ends their sessions, and forgets their account, in this order: whoever is cut
    /// off leaves an account without a way in, never a way in without its account.
    pub fn forget_account(&mut self, space: &SpaceId, user: &str) -> StoreResult<()> {
        for (hash, invitation) in self.db.invitations(space)? {
            if invitation.by == user {
                self.end_invitation(space, &hash)?;
            }
        }
        let key = self.shared.user_key(space, user);
        self.clear_shared_range::<Sessions>(SessionKey::of_user(*space, key.user()), usize::MAX)?;
        self.clear_shared::<Accounts>(&key)?;
        Ok(())
    }

    /// Keeps a session, or changes what is kept of it.
    pub fn keep_session(&mut self, id: &SessionId, session: &Session) -> StoreResult<()> {
        self.set_shared::<Sessions>(&SessionKey::from(*id), session)
    }

    /// Ends a session. Says whether there was one.
    pub fn end_session(&mut self, id: &SessionId) -> StoreResult<bool> {
        self.clear_shared::<Sessions>(&SessionKey::from(*id))
    }

    /// Keeps an invitation, or changes what is kept of it.
    pub fn keep_invitation(&mut self, space: &SpaceId, hash: &SecretHash, invitation: &Invitation) -> StoreResult<()> {
        self.set_shared::<Invitations>(&InvitationKey::new(*space, *hash), invitation)
    }

    /// Takes an invitation back. Says whether there was one.
    pub fn end_invitation(&mut self, space: &SpaceId, hash: &SecretHash) -> StoreResult<bool> {
        self.clear_shared::<Invitations>(&InvitationKey::new(*space, *hash))
    }
}

impl<V: TableReads> Db<V> {
    /// The account of a user.
    pub fn account(&self, space: &SpaceId, user: &str) -> StoreResult<Option<Account>> {
        self.shared::<Accounts>(&self.shared.user_key(space, user))
    }

    /// What a passkey calls a user: it tells nobody else who that is.
    pub fn handle(&self, space: &SpaceId, user: &str) -> PasskeyHandle {
        self.shared.user_key(space, user).user().0
    }

    /// The account that a passkey names.
    pub fn account_by_handle(&self, space: &SpaceId, handle: &PasskeyHandle) -> StoreResult<Option<Account>> {
        self.shared::<Accounts>(&UserKey::new(*space, UserHash(*handle)))
    }

    /// What the sessions of a user begin with.
    pub fn session_prefix(&self, space: &SpaceId, user: &str) -> [u8; UserKey::WIDTH] {
        *self.shared.user_key(space, user).as_bytes()
    }

    /// A session that has not ended.
    pub fn session(&self, id: &SessionId) -> StoreResult<Option<Session>> {
        self.shared::<Sessions>(&SessionKey::from(*id))
    }

    /// An invitation by the hash of its secret.
    pub fn invitation(&self, space: &SpaceId, hash: &SecretHash) -> StoreResult<Option<Invitation>> {
        self.shared::<Invitations>(&InvitationKey::new(*space, *hash))
    }

    /// The sessions of a user.
    pub fn sessions_of(&self, space: &SpaceId, user: &str) -> StoreResult<Vec<(SessionId, Session)>> {
        self.sessions_in(SessionKey::of_user(*space, self.shared.user_key(space, user).user()), usize::MAX)
    }

    /// Sessions of a space, in an order that means nothing.
    pub fn sessions(&self, space: &SpaceId, most: usize) -> StoreResult<Vec<(SessionId, Session)>> {
        self.sessions_in(SessionKey::of_space(*space), most)
    }

    fn sessions_in(&self, range: RangeInclusive<SessionKey>, most: usize) -> StoreResult<Vec<(SessionId, Session)>> {
        let sessions = self.shared_range::<Sessions>(range)?.take(most);
        sessions.map(|row| row.map(|(key, session)| (*key.as_bytes(), session))).collect()
    }

    /// All invitations of a space, in an order that means nothing.
    pub fn invitations(&self, space: &SpaceId) -> StoreResult<Vec<(SecretHash, Invitation)>> {
        let invitations = self.shared_range::<Invitations>(InvitationKey::of_space(*space))?;
        invitations.map(|row| row.map(|(key, invitation)| (key.secret(), invitation))).collect()
    }
}
