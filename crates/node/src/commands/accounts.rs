//! Signing in to the pages: invitations, accounts, sessions. Passwords are checked before the writer; who may do what is
//! decided here, in one transaction.

use crate::commands::users::{self, admit};
use crate::commands::{Caller, CommandError, by_keeper, names, principal};
use crate::writer_command::WriterCommand;
use engine::access::{Action, Decision, Facts, decide};
use engine::reads::{StoreError, StoreResult};
use model::payload::{MemberRole, Payload};
use model::{Kind, Nanos, SpaceId};
use store::Batch;
use store::shared::accounts::{Account, Invitation, Passkey, SecretHash, Session, SessionId, session_id};
use store::shared::users::User;

/// Under which name the operator takes part; nobody else joins under it.
pub const OPERATOR: &str = "operator";
/// Browsers that one user is signed in with; the one that was quiet for longest makes room.
const SESSIONS_MAX: usize = 50;
/// Invitations of a space that may be open.
const INVITATIONS_MAX: usize = 1000;
/// Passkeys of one user.
const PASSKEYS_MAX: usize = 20;
/// A session that was not used for so long has ended.
pub const SESSION_NANOS: u64 = 30 * 24 * 3600 * Nanos::SECOND;

/// A command about an account, a session or an invitation of a space.
#[derive(Clone, Debug)]
pub struct AccountRequest {
    pub space: SpaceId,
    pub what: AccountCommand,
}

/// A browser that is signed in from now on.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// The hash of the secret that it gets.
    pub hash: SecretHash,
    /// What it calls itself.
    pub agent: String,
}

/// How somebody proves who they are.
#[derive(Clone, Debug)]
pub enum Credential {
    /// The hash of a password.
    Password(String),
    /// A passkey, as it is after it was used.
    Passkey(Passkey),
}

/// What people do about how they sign in.
#[derive(Clone, Debug)]
pub enum AccountCommand {
    /// Make an invitation link.
    Invite(Caller, SecretHash, Invitation),
    /// Take an invitation link back.
    Uninvite(Caller, SecretHash),
    /// Use an invitation link: become a member, get an account, be signed in.
    Join {
        /// The hash of the link's secret.
        invitation: SecretHash,
        user: String,
        /// How they sign in from now on.
        way: Credential,
        browser: NewSession,
        random: Box<[u8; 32]>,
    },
    /// Sign in somebody who was proven.
    SignIn {
        user: String,
        /// How they were proven; that may have been changed meanwhile.
        proven: Credential,
        browser: NewSession,
    },
    /// Sign in the operator, who is an admin under this name.
    SignInOperator(String, NewSession, Box<[u8; 32]>),
    /// Save that a session was used just now.
    Touch(SessionId),
    /// End a session of a user.
    SignOut(String, SessionId),
    /// End all sessions of a user but this one.
    SignOutOthers(String, SessionId),
    /// Change an account.
    Change(String, Box<AccountChange>),
}

/// What is to change in an account.
#[derive(Clone, Debug)]
pub enum AccountChange {
    /// The hash of another password.
    Password(String),
    /// What the user wants to be called.
    Display(String),
    /// A picture, or none.
    Picture(Option<Vec<u8>>),
    /// One more passkey.
    AddPasskey(Passkey),
    /// A passkey is not good any more.
    ForgetPasskey(Vec<u8>),
}

/// Why an account command was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    /// The invitation link is not valid.
    #[error("the invitation was used up, taken back, or has ended")]
    InvitationEnded,
    /// Somebody has that name.
    #[error("the name {0:?} is taken")]
    NameTaken(String),
    /// There is no such account, session or invitation.
    #[error("there is no such {0}")]
    Unknown(&'static str),
    /// There are too many.
    #[error("there are at most {0} {1}")]
    TooMany(usize, &'static str),
    /// Without this credential nobody could sign in to the account.
    #[error("this is the only way into the account")]
    LastWay,
    /// A step that it shares with other commands failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl WriterCommand for AccountRequest {
    type Answer = ();
    type Error = AccountError;

    fn run(&self, batch: &mut Batch<'_>) -> Result<(), AccountError> {
        let space = &self.space;
        match &self.what {
            AccountCommand::Invite(caller, hash, invitation) => invite(batch, space, caller, hash, invitation),
            AccountCommand::Uninvite(caller, hash) => uninvite(batch, space, caller, hash),
            AccountCommand::Join { invitation, user, way, browser, random } => {
                join(batch, space, invitation, user, way, browser, random)
            }
            AccountCommand::SignIn { user, proven, browser } => sign_in_user(batch, space, user, proven, browser),
            AccountCommand::SignInOperator(user, browser, random) => {
                sign_in_operator(batch, space, user, browser, random)
            }
            AccountCommand::Touch(id) => touch_session(batch, id),
            AccountCommand::SignOut(user, id) => sign_out(batch, space, user, id),
            AccountCommand::SignOutOthers(user, kept) => sign_out_others(batch, space, user, kept),
            AccountCommand::Change(user, change) => change_account(batch, space, user, change),
        }
    }
}

fn uninvite(batch: &mut Batch<'_>, space: &SpaceId, caller: &Caller, hash: &SecretHash) -> Result<(), AccountError> {
    check_may_administer(batch, space, caller)?;
    if !batch.end_invitation(space, hash)? {
        return Err(AccountError::Unknown("invitation"));
    }
    batch.audit(Some(*space), &caller.audit_name, "take back invitation", "")?;
    Ok(())
}

fn sign_in_user(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    user: &str,
    proven: &Credential,
    browser: &NewSession,
) -> Result<(), AccountError> {
    let is_here = batch.db().user(space, user)?.is_some_and(|user| !user.is_gone);
    match is_here && batch.db().hosted_space(space)?.is_some() && is_proven(batch, space, user, proven)? {
        true => add_session(batch, space, user, browser, false),
        false => Err(AccountError::Unknown("account")),
    }
}

fn sign_in_operator(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    user: &str,
    browser: &NewSession,
    random: &[u8; 32],
) -> Result<(), AccountError> {
    match batch.db().user(space, user)? {
        None => drop(admit(batch, space, user, random, MemberRole::Admin)?),
        Some(known) if known.is_gone => readmit(batch, space, known)?,
        Some(_) => {}
    }
    batch.audit(Some(*space), "operator", "sign in", user)?;
    add_session(batch, space, user, browser, true)
}

fn touch_session(batch: &mut Batch<'_>, id: &SessionId) -> Result<(), AccountError> {
    if let Some(mut session) = batch.db().session(id)? {
        session.seen = batch.now();
        batch.keep_session(id, &session)?;
    }
    Ok(())
}

fn sign_out(batch: &mut Batch<'_>, space: &SpaceId, user: &str, id: &SessionId) -> Result<(), AccountError> {
    let is_own = id.starts_with(&batch.db().session_prefix(space, user));
    match is_own && batch.end_session(id)? {
        true => Ok(()),
        false => Err(AccountError::Unknown("session")),
    }
}

fn sign_out_others(batch: &mut Batch<'_>, space: &SpaceId, user: &str, kept: &SessionId) -> Result<(), AccountError> {
    for (id, _) in batch.db().sessions_of(space, user)?.into_iter().filter(|(id, _)| id != kept) {
        batch.end_session(&id)?;
    }
    Ok(())
}

/// Makes a link by which others may come in; links that are not good any more are forgotten.
fn invite(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    caller: &Caller,
    hash: &SecretHash,
    invitation: &Invitation,
) -> Result<(), AccountError> {
    check_may_administer(batch, space, caller)?;
    let mut open = 0;
    for (known, invitation) in batch.db().invitations(space)? {
        match invitation.is_good(batch.now()) {
            true => open += 1,
            false => drop(batch.end_invitation(space, &known)?),
        }
    }
    if open >= INVITATIONS_MAX {
        return Err(AccountError::TooMany(INVITATIONS_MAX, "open invitations"));
    }
    batch.keep_invitation(space, hash, invitation)?;
    let target = invitation.role().map_or_else(String::new, |role| role.to_string());
    batch.audit(Some(*space), &caller.audit_name, "invite", &target)?;
    Ok(())
}

/// An operator who was removed is an admin again.
fn readmit(batch: &mut Batch<'_>, space: &SpaceId, mut known: User) -> Result<(), CommandError> {
    let payload = Payload::Member { member: known.identity, role: MemberRole::Admin };
    known.membership = by_keeper(batch, space, Kind::Member, payload, None)?;
    known.is_gone = false;
    batch.keep_user(space, &known)?;
    Ok(())
}

fn check_may_administer(batch: &Batch<'_>, space: &SpaceId, caller: &Caller) -> Result<(), CommandError> {
    users::hosted(batch.db(), space)?;
    let (principal, _) = principal(batch.db(), space, caller, batch.now())?;
    match decide(&principal, Action::Administer, &Facts::default()) {
        Decision::Allow => Ok(()),
        denied => Err(CommandError::Denied(denied)),
    }
}

fn join(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    hash: &SecretHash,
    user: &str,
    way: &Credential,
    browser: &NewSession,
    random: &[u8; 32],
) -> Result<(), AccountError> {
    let found = batch.db().invitation(space, hash)?.filter(|invitation| invitation.is_good(batch.now()));
    let Some(mut invitation) = found else { return Err(AccountError::InvitationEnded) };
    let Some(role) = invitation.role() else { return Err(AccountError::InvitationEnded) };
    names::check_name(user).map_err(CommandError::from)?;
    // Whoever has the name is somebody, with an account or without; the operator may come later.
    if batch.db().user(space, user)?.is_some() || names::is_operator_like(user) {
        return Err(AccountError::NameTaken(user.to_owned()));
    }
    // The invitation is used up before anybody comes in by it, so that no cut lets a second in.
    invitation.uses_left -= 1;
    match invitation.uses_left {
        0 => drop(batch.end_invitation(space, hash)?),
        _ => batch.keep_invitation(space, hash, &invitation)?,
    }
    admit(batch, space, user, random, role)?;
    let mut account = Account::new(user.to_owned(), batch.now());
    match way {
        Credential::Password(hash) => account.password = Some(hash.clone()),
        Credential::Passkey(passkey) => account.passkeys.push(passkey.clone()),
    }
    batch.keep_account(space, &account)?;
    batch.audit(Some(*space), &invitation.by, "admit by invitation", user)?;
    add_session(batch, space, user, browser, false)
}

/// Whether an account still has the way in that somebody was proven by. A passkey is noted as used.
fn is_proven(batch: &mut Batch<'_>, space: &SpaceId, user: &str, proven: &Credential) -> StoreResult<bool> {
    let Some(mut account) = batch.db().account(space, user)? else { return Ok(false) };
    match proven {
        Credential::Password(hash) => Ok(account.password.as_ref() == Some(hash)),
        Credential::Passkey(used) => {
            let known = account.passkeys.iter_mut().find(|known| known.id == used.id && known.host == used.host);
            let Some(known) = known else { return Ok(false) };
            *known = Passkey { used: batch.now(), ..used.clone() };
            batch.keep_account(space, &account)?;
            Ok(true)
        }
    }
}

/// Remembers a browser. Sessions that ended, and the oldest of too many, are forgotten.
fn add_session(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    user: &str,
    browser: &NewSession,
    is_operator: bool,
) -> Result<(), AccountError> {
    let now = batch.now();
    let mut own = batch.db().sessions_of(space, user)?;
    own.sort_by_key(|(_, session)| std::cmp::Reverse(session.seen));
    for (number, (id, session)) in own.iter().enumerate() {
        if number + 1 >= SESSIONS_MAX || session.seen.plus(SESSION_NANOS) < now {
            batch.end_session(id)?;
        }
    }
    let id = session_id(&batch.db().session_prefix(space, user), &browser.hash);
    let session = Session { user: user.to_owned(), is_operator, since: now, seen: now, agent: browser.agent.clone() };
    batch.keep_session(&id, &session)?;
    Ok(())
}

fn change_account(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    user: &str,
    change: &AccountChange,
) -> Result<(), AccountError> {
    if batch.db().user(space, user)?.is_none_or(|user| user.is_gone) {
        return Err(AccountError::Unknown("user"));
    }
    let known = batch.db().account(space, user)?;
    // An operator who came by link has no account until there is something to keep in it.
    let mut account = known.unwrap_or_else(|| Account::new(user.to_owned(), batch.now()));
    match change {
        AccountChange::Password(hash) => account.password = Some(hash.clone()),
        AccountChange::Display(display) => account.display.clone_from(display),
        AccountChange::Picture(picture) => account.picture.clone_from(picture),
        AccountChange::AddPasskey(_) if account.passkeys.len() >= PASSKEYS_MAX => {
            return Err(AccountError::TooMany(PASSKEYS_MAX, "passkeys"));
        }
        AccountChange::AddPasskey(passkey) => {
            account.passkeys.retain(|known| known.id != passkey.id);
            account.passkeys.push(passkey.clone());
        }
        AccountChange::ForgetPasskey(id) => {
            let before = account.passkeys.len();
            account.passkeys.retain(|known| known.id != *id);
            if account.passkeys.len() == before {
                return Err(AccountError::Unknown("passkey"));
            }
            if account.passkeys.is_empty() && account.password.is_none() && user != OPERATOR {
                return Err(AccountError::LastWay);
            }
        }
    }
    batch.keep_account(space, &account)?;
    Ok(())
}
