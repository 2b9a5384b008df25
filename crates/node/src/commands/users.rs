//! Admitting users: a first write makes an identity, and the keeper of the space makes it a member.

use crate::commands::accounts::OPERATOR;
use crate::commands::{CommandError, create_event, names};
use ed25519_dalek::SigningKey;
use engine::create::{NewEvent, Seal};
use engine::reads::Reads as _;
use model::envelope::{Reference, Role};
use model::payload::{MemberRole, Payload};
use model::{AuxKey, EventId, Identity, Kind, SpaceId, SpaceNo};
use std::sync::Arc;
use store::shared::users::{HostedSpace, User};
use store::tables::TableReads;
use store::{Batch, Db};

/// Who signs, and on which membership.
pub(crate) struct Signer {
    pub(crate) key: Arc<SigningKey>,
    pub(crate) authority: EventId,
    pub(crate) identity: Identity,
}

/// The space, if this node keeps it.
pub(crate) fn hosted<V: TableReads>(db: &Db<V>, space: &SpaceId) -> Result<HostedSpace, CommandError> {
    db.hosted_space(space)?.ok_or(CommandError::NotHosted)
}

/// How new events of a space are wrapped.
pub(crate) fn seal<V: TableReads>(db: &Db<V>, space: &SpaceId, kept: &HostedSpace) -> Result<Seal, CommandError> {
    if !kept.sealed {
        return Ok(Seal::Plain);
    }
    db.current_space_key(space)?.map(Seal::Key).ok_or(CommandError::NoKey)
}

/// How new events of a space that this node keeps are wrapped.
pub fn seal_for<V: TableReads>(db: &Db<V>, space: &SpaceId) -> Result<Seal, CommandError> {
    seal(db, space, &hosted(db, space)?)
}

/// How content of a space travels that this node keeps, has joined, or follows. Whoever has joined a space had a key of it.
pub(crate) fn seal_of_content<V: TableReads>(db: &Db<V>, space: &SpaceId) -> Result<Seal, CommandError> {
    match (db.hosted_space(space)?, db.current_space_key(space)?) {
        (Some(kept), _) => seal(db, space, &kept),
        (None, Some(key)) => Ok(Seal::Key(key)),
        (None, None) if db.joined(space)? => Err(CommandError::NoKey),
        (None, None) => Ok(Seal::Plain),
    }
}

/// The keeper of a space, who signs for it.
pub(crate) fn keeper(batch: &Batch<'_>, kept: &HostedSpace) -> Result<Signer, CommandError> {
    let key = batch.db().signing_key(&kept.keeper)?;
    key.map(|key| Signer { key, authority: kept.founding, identity: kept.keeper }).ok_or(CommandError::NotHosted)
}

/// The user as a signer; a user who was never here is admitted.
pub(crate) fn signer(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    user: &str,
    random: &[u8; 32],
) -> Result<Signer, CommandError> {
    let user = match batch.db().user(space, user)? {
        Some(user) => user,
        None => admit(batch, space, user, random, MemberRole::Member)?,
    };
    let key = batch.db().signing_key(&user.identity)?;
    key.map(|key| Signer { key, authority: user.membership, identity: user.identity }).ok_or(CommandError::NotHosted)
}

/// The identity of a user, who is admitted if they were never here.
pub(crate) fn identity_of(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    user: &str,
    random: &[u8; 32],
) -> Result<Identity, CommandError> {
    if let Ok(identity) = user.parse() {
        return Ok(identity);
    }
    // Each of several users that one command admits has randomness of its own.
    let random = blake3::derive_key("anteroom v1 chance of a user", &[random.as_slice(), user.as_bytes()].concat());
    Ok(signer(batch, space, user, &random)?.identity)
}

pub(crate) fn admit(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    user: &str,
    random: &[u8; 32],
    role: MemberRole,
) -> Result<User, CommandError> {
    // The operator comes in by a token, and is admitted under the one name that is theirs.
    if user != OPERATOR {
        names::check_user_name(user)?;
    }
    let kept = hosted(batch.db(), space)?;
    let keeper = keeper(batch, &kept)?;
    let seal = seal(batch.db(), space, &kept)?;
    let identity = Identity(SigningKey::from_bytes(random).verifying_key().to_bytes());
    let draft = NewEvent {
        kind: Kind::Member,
        space: *space,
        aux: AuxKey::ZERO,
        payload: Payload::Member { member: identity, role },
        references: vec![Reference { role: Role::Authority, id: keeper.authority }],
        content: Vec::new(),
        seal,
    };
    let membership = create_event(batch, &keeper.key, draft)?;
    batch.add_custodian(&identity, random)?;
    let user = User { id: user.to_owned(), identity, membership, since: batch.now(), is_gone: false };
    batch.keep_user(space, &user)?;
    Ok(user)
}

/// The number of a space that this node keeps.
pub(crate) fn space_no(batch: &Batch<'_>, space: &SpaceId) -> Result<SpaceNo, CommandError> {
    batch.db().space_no(space)?.ok_or(CommandError::NotHosted)
}
