//! Admitting users: a first write makes an identity, and the keeper of the space makes it a member.

use crate::commands::{CommandError, make, names};
use ed25519_dalek::SigningKey;
use engine::create::{NewEvent, Seal};
use model::envelope::{Reference, Role};
use model::payload::{MemberRole, Payload};
use model::{AuxKey, EventId, Identity, Kind, SpaceId};
use std::sync::Arc;
use store::Batch;
use store::shared::users::{KeptSpace, User};

/// Who signs, and on which membership.
pub(crate) struct Signer {
    pub(crate) key: Arc<SigningKey>,
    pub(crate) authority: EventId,
    pub(crate) identity: Identity,
}

/// The space, if this node keeps it.
pub(crate) fn kept(batch: &Batch<'_>, space: &SpaceId) -> Result<KeptSpace, CommandError> {
    batch.db().kept_space(space)?.ok_or(CommandError::NotKept)
}

/// How new events of a space are wrapped.
pub(crate) fn seal(batch: &Batch<'_>, space: &SpaceId, kept: &KeptSpace) -> Result<Seal, CommandError> {
    if !kept.sealed {
        return Ok(Seal::Plain);
    }
    batch.db().current_space_key(space)?.map(Seal::Key).ok_or(CommandError::NoKey)
}

/// The keeper's hand.
pub(crate) fn keeper(batch: &Batch<'_>, kept: &KeptSpace) -> Result<Signer, CommandError> {
    let key = batch.db().signing_key(&kept.keeper)?;
    key.map(|key| Signer { key, authority: kept.founding, identity: kept.keeper }).ok_or(CommandError::NotKept)
}

/// The user's hand; a user who was never here is admitted.
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
    key.map(|key| Signer { key, authority: user.membership, identity: user.identity }).ok_or(CommandError::NotKept)
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
    // Each of several users that one act admits has chance of its own.
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
    names::check_name(user)?;
    let kept = kept(batch, space)?;
    let keeper = keeper(batch, &kept)?;
    let seal = seal(batch, space, &kept)?;
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
    let membership = make(batch, &keeper.key, draft)?;
    batch.add_custodian(&identity, random)?;
    let user = User { id: user.to_owned(), identity, membership, since: batch.now(), is_gone: false };
    batch.keep_user(space, &user)?;
    Ok(user)
}

/// The number of a space that this node keeps.
pub(crate) fn space_no(batch: &Batch<'_>, space: &SpaceId) -> Result<model::SpaceNo, CommandError> {
    use engine::reads::Reads as _;
    batch.db().space_no(space)?.ok_or(CommandError::NotKept)
}
