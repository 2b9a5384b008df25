//! Taking over a space from a bundle that carries its keys: from then on this node serves it.

use super::secrets::SpaceSecrets;
use crate::writer_command::WriterCommand;
use engine::reads::{Reads as _, StoreError, StoreResult};
use model::EventId;
use store::Batch;
use store::shared::api_keys::SigningSecret;
use store::shared::users::HostedSpace;

/// Keeps what a bundle says of a space and its users, except what is here already.
#[derive(Clone, Debug)]
pub(super) struct AdoptSpace {
    pub secrets: SpaceSecrets,
    /// A new secret with which applications sign for its users.
    pub signing_secret: [u8; 32],
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Adopted {
    /// Whether the space is served from now on.
    pub is_new: bool,
    /// How many users are new here.
    pub users: u64,
}

impl WriterCommand for AdoptSpace {
    type Answer = Adopted;
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<Adopted> {
        let SpaceSecrets { space, hosted: Some(hosted), custodians, users, .. } = &self.secrets else {
            return Ok(Adopted::default());
        };
        let mut adopted = Adopted::default();
        // Without the event that founded it nothing in it can be shown.
        if !is_applied(batch, &hosted.founding)? {
            return Ok(adopted);
        }
        if !batch.db().is_hosted(space) {
            let hosted = HostedSpace { name: free_name(batch, &hosted.name)?, ..hosted.clone() };
            batch.host_space(space, &hosted)?;
            let (secret, created_at) = (self.signing_secret, batch.now());
            batch.keep_signing_key(space, 1, &SigningSecret { secret, created_at, ends_at: None })?;
            batch.audit(Some(*space), "import", "import a space", &hosted.name)?;
            adopted.is_new = true;
        }
        for (identity, secret) in custodians {
            if batch.db().signing_key(identity)?.is_none() {
                batch.add_custodian(identity, secret)?;
            }
        }
        for user in users {
            if batch.db().user(space, &user.id)?.is_none() {
                batch.keep_user(space, user)?;
                adopted.users += 1;
            }
        }
        Ok(adopted)
    }
}

fn is_applied(batch: &Batch<'_>, id: &EventId) -> StoreResult<bool> {
    let Some(seq) = batch.db().seq(id)? else { return Ok(false) };
    Ok(batch.db().event(seq)?.is_some_and(|row| row.is_applied()))
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
