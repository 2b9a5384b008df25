//! Administration: spaces, API keys, keys that sign for users, and members. Every command is in the audit log.

use crate::commands::identities::set_identity_role;
use crate::commands::users::{self, admit};
use crate::commands::webhooks::{self, WebhookCommand};
use crate::commands::{CommandError, create_event};
use ed25519_dalek::SigningKey;
use engine::access::KeyRole;
use engine::create::{NewEvent, Seal};
use engine::reads::StoreError;
use model::crypto::{SpaceKey, space_id};
use model::envelope::{Reference, Role};
use model::payload::{MemberRole, Payload};
use model::{AuxKey, EventId, Identity, Kind, Nanos, SpaceId, body};
use std::sync::Arc;
use store::shared::api_keys::{ApiKey, SigningSecret};
use store::shared::jobs::JobKind;
use store::shared::retention::Retention;
use store::shared::users::{HostedSpace, User};
use store::shared::webhooks::WebhookId;
use store::{Batch, Protection};

/// What administrators do. Randomness is an argument.
#[derive(Clone, Debug)]
pub enum AdminCommand {
    /// Found a space that this node keeps.
    FoundSpace {
        /// What it is called here.
        name: String,
        /// Whether it is sealed.
        sealed: bool,
        /// Randomness for its keeper, its key and its id.
        random: Box<[u8; 80]>,
    },
    /// Keep a new API key.
    AddKey {
        id: [u8; 8],
        /// What it is for.
        role: KeyRole,
        /// For which space.
        space: SpaceId,
        /// The hash of its secret.
        hash: [u8; 32],
        /// What it is called.
        label: String,
    },
    /// Keep another key like that one, which is accepted only until then.
    RotateKey {
        old: [u8; 8],
        id: [u8; 8],
        /// The hash of its secret.
        hash: [u8; 32],
        /// Until when the one before is accepted.
        at: Nanos,
    },
    /// Accept an API key only until then.
    EndKey { id: [u8; 8], at: Nanos },
    /// Keep a new key that signs for the users of a space.
    AddSigningKey(SpaceId, Box<[u8; 32]>),
    /// Accept a key that signs for users only until then.
    EndSigningKey(SpaceId, u64, Nanos),
    /// Give an identity whose key is elsewhere a role, in place of those that it has; none removes it.
    SetIdentityRole(SpaceId, Identity, Option<MemberRole>),
    /// Make, change or end a webhook of a space.
    Webhook(SpaceId, WebhookId, WebhookCommand),
    /// Forget a user and purge all that they wrote.
    EraseUser(SpaceId, String),
    /// Forget a space, destroy its keys, and drop its content.
    EndSpace(SpaceId),
    /// Destroy the keys of a space, so that its content cannot be read here any more.
    DestroyKeys(SpaceId),
    /// Say what of a space's content is encrypted at rest.
    Protect(SpaceId, Protection),
    /// Say how long messages of a space or thread are kept; nothing lifts it.
    Retain(SpaceId, Option<EventId>, Option<Retention>),
    /// Begin a job.
    Begin(JobKind),
    /// Note what was done elsewhere, and to what.
    Note(&'static str, String),
    /// Settle a report, with a note.
    SettleReport(SpaceId, u64, String),
    /// Give a user a role, admitting them if they were never here.
    SetRole {
        space: SpaceId,
        user: String,
        /// Which role; none removes them.
        role: Option<MemberRole>,
        /// Randomness for an identity that may have to be made.
        random: Box<[u8; 32]>,
    },
}

/// What an administrative command did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AdminResult {
    /// A space was founded.
    Founded(SpaceId),
    /// A secret was made, from the salt of the request; of the first request, if this repeats it.
    Made([u8; 16]),
    /// The membership that an identity was given.
    Admitted(EventId),
    /// A job of this number does it.
    Begun(u64),
    /// The user as they are now.
    User(User),
    Done,
}

/// Why an administrative command was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdminError {
    /// A space of that name is kept already.
    #[error("there is a space called {0:?} already")]
    NameTaken(String),
    #[error("there is no such key")]
    NoSuchKey,
    /// The key has ended, or is about to.
    #[error("the key has ended or is about to; make a new one")]
    Ended,
    #[error("there is no such webhook")]
    NoSuchWebhook,
    /// The space has enough webhooks.
    #[error("a space has at most 100 webhooks")]
    TooManyWebhooks,
    #[error("there is no such report")]
    NoSuchReport,
    #[error("there is no such user")]
    NoSuchUser,
    #[error("this identity has no role in the space")]
    NoSuchIdentity,
    #[error("this identity owns the space, which cannot be without it")]
    IsKeeper,
    /// The identity is one that this node keeps for a user.
    #[error("this identity belongs to the user {0:?}; change the role of the user instead")]
    IsUser(String),
    /// A step that it shares with other commands failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub(super) type AdminOutcome = Result<AdminResult, AdminError>;

/// The space, word and target under which a command stands in the audit log.
pub(super) fn describe_for_audit(command: &AdminCommand) -> (Option<SpaceId>, &'static str, String) {
    match command {
        AdminCommand::FoundSpace { name, .. } => (None, "found space", name.clone()),
        AdminCommand::AddKey { id, space, .. } => (Some(*space), "add api key", hex(id)),
        AdminCommand::RotateKey { old, id, .. } => (None, "rotate api key", format!("{} to {}", hex(old), hex(id))),
        AdminCommand::EndKey { id, .. } => (None, "end api key", hex(id)),
        AdminCommand::AddSigningKey(space, _) => (Some(*space), "add signing key", String::new()),
        AdminCommand::EndSigningKey(space, number, _) => (Some(*space), "end signing key", number.to_string()),
        AdminCommand::SetIdentityRole(space, identity, Some(role)) => {
            (Some(*space), "admit identity", format!("{identity}: {role}"))
        }
        AdminCommand::SetIdentityRole(space, identity, None) => (Some(*space), "remove identity", identity.to_string()),
        AdminCommand::Webhook(space, id, command) => (Some(*space), command.audit_word(), hex(id)),
        AdminCommand::EraseUser(space, user) => (Some(*space), "erase user", user.clone()),
        AdminCommand::EndSpace(space) => (None, "delete space", space.to_string()),
        AdminCommand::DestroyKeys(space) => (Some(*space), "destroy keys", String::new()),
        AdminCommand::Protect(space, protection) => (Some(*space), "protect", format!("{protection:?}")),
        AdminCommand::Retain(space, thread, kept) => {
            let target = thread.map_or_else(|| "space".to_owned(), |thread| thread.to_string());
            (Some(*space), if kept.is_some() { "set retention" } else { "lift retention" }, target)
        }
        AdminCommand::Begin(work) => (work.space(), "begin job", work.word().to_owned()),
        AdminCommand::SettleReport(space, number, _) => (Some(*space), "settle report", number.to_string()),
        AdminCommand::Note(what, target) => (None, what, target.clone()),
        AdminCommand::SetRole { space, user, role: Some(role), .. } => {
            (Some(*space), "set role", format!("{user}: {role}"))
        }
        AdminCommand::SetRole { space, user, role: None, .. } => (Some(*space), "remove user", user.clone()),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn carry_out(batch: &mut Batch<'_>, who: &str, salt: [u8; 16], command: &AdminCommand) -> AdminOutcome {
    match command {
        AdminCommand::FoundSpace { name, sealed, random } => found_space(batch, name, *sealed, random),
        AdminCommand::AddKey { id, role, space, hash, label } => {
            users::hosted(batch.db(), space)?;
            batch.keep_api_key(*id, &ApiKey::new(*role, *space, *hash, label.clone(), batch.now()))?;
            Ok(AdminResult::Made(salt))
        }
        AdminCommand::RotateKey { old, id, hash, at } => {
            rotate_key(batch, *old, (*id, *hash), *at)?;
            Ok(AdminResult::Made(salt))
        }
        AdminCommand::EndKey { id, at } => {
            let mut key = batch.db().api_key(id)?.ok_or(AdminError::NoSuchKey)?;
            key.ends_at = sooner(key.ends_at, *at);
            batch.keep_api_key(*id, &key)?;
            Ok(AdminResult::Done)
        }
        AdminCommand::AddSigningKey(space, secret) => {
            add_signing_key(batch, space, **secret)?;
            Ok(AdminResult::Made(salt))
        }
        AdminCommand::EndSigningKey(space, number, at) => end_signing_key(batch, space, *number, *at),
        AdminCommand::SetIdentityRole(space, identity, role) => set_identity_role(batch, space, identity, *role),
        AdminCommand::Webhook(space, id, command) => webhooks::change_webhook(batch, space, id, command, salt),
        AdminCommand::EraseUser(space, user) => erase_user(batch, who, space, user),
        AdminCommand::EndSpace(space) => {
            if !batch.db().is_hosted(space) {
                return Err(CommandError::NotHosted.into());
            }
            // The job that forgets the rest is there before the space goes.
            let job = batch.begin_job(JobKind::EndSpace(*space), who)?;
            batch.end_space(space)?;
            Ok(AdminResult::Begun(job))
        }
        AdminCommand::DestroyKeys(space) => {
            let kept = users::hosted(batch.db(), space)?;
            batch.forget_custodian(space, &kept.keeper)?;
            batch.destroy_keys(space)?;
            Ok(AdminResult::Done)
        }
        AdminCommand::Protect(space, protection) => {
            users::hosted(batch.db(), space)?;
            batch.set_protection(space, protection)?;
            Ok(AdminResult::Begun(batch.begin_job(JobKind::Encrypt, who)?))
        }
        AdminCommand::Retain(space, thread, kept) => {
            batch.set_retention(space, thread.as_ref(), kept.as_ref())?;
            Ok(AdminResult::Done)
        }
        AdminCommand::Begin(work) => Ok(AdminResult::Begun(batch.begin_job(work.clone(), who)?)),
        AdminCommand::Note(..) => Ok(AdminResult::Done),
        AdminCommand::SettleReport(space, number, note) => {
            let found = batch.db().reports(space, number.saturating_add(1), 1)?;
            let report = found.into_iter().find(|(other, _)| other == number).map(|(_, report)| report);
            let mut report = report.ok_or(AdminError::NoSuchReport)?;
            report.settled = Some((who.to_owned(), batch.now(), note.clone()));
            batch.keep_report(space, *number, &report)?;
            Ok(AdminResult::Done)
        }
        AdminCommand::SetRole { space, user, role: Some(role), random } => set_role(batch, space, user, *role, random),
        AdminCommand::SetRole { space, user, role: None, .. } => remove_user(batch, space, user),
    }
}

/// An end that was set is never put off: a key that was revoked stays so.
fn sooner(ends_at: Option<Nanos>, at: Nanos) -> Option<Nanos> {
    Some(ends_at.map_or(at, |ends_at| ends_at.min(at)))
}

/// Another key with the role, space and label of one that has not ended.
fn rotate_key(
    batch: &mut Batch<'_>,
    old: [u8; 8],
    (id, hash): ([u8; 8], [u8; 32]),
    at: Nanos,
) -> Result<(), AdminError> {
    let Some(mut before) = batch.db().api_key(&old)? else { return Err(AdminError::NoSuchKey) };
    let Some(role) = before.role() else { return Err(AdminError::NoSuchKey) };
    if before.ends_at.is_some() {
        return Err(AdminError::Ended);
    }
    let key = ApiKey::new(role, before.space, hash, before.label.clone(), batch.now());
    batch.keep_api_key(id, &key)?;
    before.ends_at = Some(at);
    batch.keep_api_key(old, &before)?;
    Ok(())
}

fn add_signing_key(batch: &mut Batch<'_>, space: &SpaceId, secret: [u8; 32]) -> Result<(), AdminError> {
    users::hosted(batch.db(), space)?;
    let number = batch.db().signing_keys(space)?.first().map_or(1, |(number, _)| number + 1);
    let key = SigningSecret { secret, created_at: batch.now(), ends_at: None };
    batch.keep_signing_key(space, number, &key)?;
    Ok(())
}

fn end_signing_key(batch: &mut Batch<'_>, space: &SpaceId, number: u64, at: Nanos) -> AdminOutcome {
    let keys = batch.db().signing_keys(space)?;
    let Some((_, mut key)) = keys.into_iter().find(|(other, _)| *other == number) else {
        return Err(AdminError::NoSuchKey);
    };
    key.ends_at = sooner(key.ends_at, at);
    batch.keep_signing_key(space, number, &key)?;
    Ok(AdminResult::Done)
}

/// A space: its keeper's identity, its key if it is sealed, its founding, and a first key that signs for users.
fn found_space(batch: &mut Batch<'_>, name: &str, sealed: bool, random: &[u8; 80]) -> AdminOutcome {
    crate::commands::names::check_name(name).map_err(CommandError::from)?;
    if batch.db().hosted_spaces()?.iter().any(|(_, kept)| kept.name == name) {
        return Err(AdminError::NameTaken(name.to_owned()));
    }
    let random = |context: &str| blake3::derive_key(context, random);
    let secret = random("anteroom v1 chance of a keeper");
    let keeper = SigningKey::from_bytes(&secret);
    let identity = Identity(keeper.verifying_key().to_bytes());
    let mut aux = AuxKey::ZERO;
    aux.0.copy_from_slice(&random("anteroom v1 chance of a space")[..16]);
    let space = space_id(&identity, &aux, sealed);
    let mut seal = Seal::Plain;
    if sealed {
        let key = random("anteroom v1 chance of a space key");
        batch.add_space_key(space, key)?;
        seal = Seal::Key(Arc::new(SpaceKey::new(&space, key)));
    }
    batch.add_custodian(&identity, &secret)?;
    let content = body::encode(&serde_json::json!({ "name": name })).map_err(CommandError::Body)?;
    let payload = Payload::Space { sealed };
    let draft = NewEvent { kind: Kind::Space, space, aux, payload, references: Vec::new(), content, seal };
    let founding = create_event(batch, &keeper, draft)?;
    batch.host_space(&space, &HostedSpace { name: name.to_owned(), keeper: identity, founding, sealed })?;
    let secret = random("anteroom v1 chance of a signing key");
    batch.keep_signing_key(&space, 1, &SigningSecret { secret, created_at: batch.now(), ends_at: None })?;
    Ok(AdminResult::Founded(space))
}

fn set_role(batch: &mut Batch<'_>, space: &SpaceId, user: &str, role: MemberRole, random: &[u8; 32]) -> AdminOutcome {
    let Some(mut known) = batch.db().user(space, user)? else {
        let user = admit(batch, space, user, random, role)?;
        return Ok(AdminResult::User(user));
    };
    let replaces = (!known.is_gone).then_some(Reference { role: Role::Target, id: known.membership });
    let payload = Payload::Member { member: known.identity, role };
    known.membership = by_keeper(batch, space, Kind::Member, payload, replaces)?;
    known.is_gone = false;
    batch.keep_user(space, &known)?;
    Ok(AdminResult::User(known))
}

fn remove_user(batch: &mut Batch<'_>, space: &SpaceId, user: &str) -> AdminOutcome {
    let Some(mut known) = batch.db().user(space, user)?.filter(|user| !user.is_gone) else {
        return Err(AdminError::NoSuchUser);
    };
    let target = Some(Reference { role: Role::Target, id: known.membership });
    by_keeper(batch, space, Kind::Removal, Payload::None, target)?;
    known.is_gone = true;
    batch.keep_user(space, &known)?;
    batch.forget_account(space, user)?;
    Ok(AdminResult::User(known))
}

/// Nobody acts as them any more, their name is gone, and a job purges what they wrote.
fn erase_user(batch: &mut Batch<'_>, who: &str, space: &SpaceId, user: &str) -> AdminOutcome {
    let Some(known) = batch.db().user(space, user)? else { return Err(AdminError::NoSuchUser) };
    if !known.is_gone {
        remove_user(batch, space, user)?;
    }
    let job = batch.begin_job(JobKind::Erase(*space, known.identity), who)?;
    batch.forget_user(space, &known)?;
    Ok(AdminResult::Begun(job))
}

/// An event that the keeper of the space makes.
pub(crate) fn by_keeper(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    kind: Kind,
    payload: Payload,
    target: Option<Reference>,
) -> Result<EventId, CommandError> {
    by_keeper_saying(batch, space, (kind, AuxKey::ZERO), payload, target, Vec::new())
}

/// The same, with content.
pub(crate) fn by_keeper_saying(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    (kind, aux): (Kind, AuxKey),
    payload: Payload,
    target: Option<Reference>,
    content: Vec<u8>,
) -> Result<EventId, CommandError> {
    let kept = users::hosted(batch.db(), space)?;
    let keeper = users::keeper(batch, &kept)?;
    let seal = users::seal(batch.db(), space, &kept)?;
    let authority = Reference { role: Role::Authority, id: keeper.authority };
    let references = std::iter::once(authority).chain(target).collect();
    let draft = NewEvent { kind, space: *space, aux, payload, references, content, seal };
    create_event(batch, &keeper.key, draft)
}
