//! Taking over a space from a bundle that carries its keys: from then on this node serves it.
//!
//! Whoever made the bundle may be anybody. A space is taken over only with the key of the identity that founded it, and a
//! user only with their own key and a membership that is in force: whoever was removed or erased here does not come back.
//! What is here already stays as it is.

use super::secrets::SpaceSecrets;
use crate::commands::accounts::OPERATOR;
use crate::commands::names::{check_name, is_operator_like};
use crate::writer_command::WriterCommand;
use ed25519_dalek::SigningKey;
use engine::protocol::space::counting::acting_role;
use engine::reads::{Reads as _, SpaceReads as _, StoreError, StoreResult};
use model::payload::Payload;
use model::{EventId, Identity, Kind, SpaceId, Stamp};
use std::collections::BTreeMap;
use store::Batch;
use store::shared::api_keys::SigningSecret;
use store::shared::users::{HostedSpace, User};

/// Takes over a space, or what is new of it, with those of its users who can be proven.
#[derive(Clone)]
pub(super) struct AdoptSpace {
    pub(super) secrets: SpaceSecrets,
    /// A new secret with which applications sign for its users.
    pub(super) signing_secret: [u8; 32],
}

impl std::fmt::Debug for AdoptSpace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AdoptSpace({:?})", self.secrets)
    }
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Adopted {
    /// Whether the space is served from now on.
    pub(super) is_new: bool,
    /// How many users are new here.
    pub(super) users: u64,
}

impl WriterCommand for AdoptSpace {
    type Answer = Adopted;
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<Adopted> {
        let SpaceSecrets { space, hosted: Some(hosted), users, keys, .. } = &self.secrets else {
            return Ok(Adopted::default());
        };
        let own = proven_keys(&self.secrets);
        let Some(keeper) = own.get(&hosted.keeper) else { return Ok(Adopted::default()) };
        let Some(sealed) = founded_by(batch, space, &hosted.founding, &hosted.keeper)? else {
            return Ok(Adopted::default());
        };
        let mut adopted = Adopted::default();
        match batch.db().hosted_space(space)? {
            Some(known) if known.keeper != hosted.keeper || known.founding != hosted.founding => return Ok(adopted),
            Some(_) => {}
            None if check_name(&hosted.name).is_err() || sealed == keys.is_empty() => return Ok(adopted),
            None => {
                self.host(batch, hosted, keeper, sealed)?;
                adopted.is_new = true;
            }
        }
        for user in users {
            if let Some(secret) = own.get(&user.identity)
                && is_member(batch, space, user)?
            {
                batch.add_custodian(&user.identity, secret)?;
                batch.keep_user(space, user)?;
                adopted.users += 1;
            }
        }
        Ok(adopted)
    }
}

impl AdoptSpace {
    fn host(&self, batch: &mut Batch<'_>, hosted: &HostedSpace, keeper: &[u8; 32], sealed: bool) -> StoreResult<()> {
        let SpaceSecrets { space, keys, .. } = &self.secrets;
        if let Some(current) = keys.last().filter(|_| sealed) {
            batch.add_space_key(*space, *current)?;
        }
        batch.add_custodian(&hosted.keeper, keeper)?;
        let hosted = HostedSpace { name: free_name(batch, &hosted.name)?, sealed, ..hosted.clone() };
        batch.host_space(space, &hosted)?;
        let (secret, created_at) = (self.signing_secret, batch.now());
        batch.keep_signing_key(space, 1, &SigningSecret { secret, created_at, ends_at: None })?;
        batch.audit(Some(*space), "import", "import a space", &hosted.name)
    }
}

/// The signing keys that are those of the identities they are said to be.
fn proven_keys(secrets: &SpaceSecrets) -> BTreeMap<Identity, [u8; 32]> {
    let is_own = |identity: &Identity, secret: &[u8; 32]| {
        SigningKey::from_bytes(secret).verifying_key().to_bytes() == identity.0
    };
    secrets.custodians.iter().filter(|(identity, secret)| is_own(identity, secret)).copied().collect()
}

/// Whether the space is sealed, if that event is applied and is how that identity founded it.
fn founded_by(batch: &Batch<'_>, space: &SpaceId, founding: &EventId, keeper: &Identity) -> StoreResult<Option<bool>> {
    let Some(seq) = batch.db().seq(founding)? else { return Ok(None) };
    if !batch.db().event(seq)?.is_some_and(|row| row.is_applied()) {
        return Ok(None);
    }
    let Some(envelope) = batch.db().opened(seq)? else { return Ok(None) };
    Ok(match envelope.payload {
        Payload::Space { sealed } if envelope.kind == Kind::Space => {
            (envelope.space == *space && envelope.author == *keeper).then_some(sealed)
        }
        _ => None,
    })
}

/// Whether a user has a fit name, which is nobody else's, and stands on a membership of theirs that is in force.
fn is_member(batch: &Batch<'_>, space: &SpaceId, user: &User) -> StoreResult<bool> {
    let is_taken =
        batch.db().user(space, &user.id)?.is_some() || batch.db().user_name(space, &user.identity)?.is_some();
    let is_look_alike = is_operator_like(&user.id) && user.id != OPERATOR;
    if is_taken || is_look_alike || check_name(&user.id).is_err() {
        return Ok(false);
    }
    let Some(seq) = batch.db().seq(&user.membership)? else { return Ok(false) };
    let Some(membership) = batch.db().membership(seq)? else { return Ok(false) };
    let is_here = match batch.db().event(seq)?.and_then(|row| row.meta) {
        Some(meta) => batch.db().space_id(meta.space)? == *space,
        None => false,
    };
    Ok(is_here && membership.member == user.identity && acting_role(batch.db(), seq, Stamp::LAST)?.is_some())
}

/// The name, or one like it if another space here has it.
fn free_name(batch: &Batch<'_>, name: &str) -> StoreResult<String> {
    let taken = batch.db().hosted_spaces()?;
    let mut free = name.to_owned();
    for number in 2..=taken.len() + 1 {
        if taken.iter().all(|(_, hosted)| hosted.name != free) {
            break;
        }
        free = format!("{name}-{number}");
    }
    Ok(free)
}

#[cfg(test)]
mod tests;
