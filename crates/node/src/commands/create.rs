//! CREATE inside the writer: an event is made, stored and applied in one transaction.

use crate::commands::CommandError;
use crate::pipeline::{arrive, policy, step_context};
use ed25519_dalek::SigningKey;
use engine::chains;
use engine::create::{CreateError, NewEvent, Seal};
use engine::rows::Outcome;
use engine::{protocol, release};
use model::crypto::content_hash;
use model::{EventId, Need};
use store::Batch;

/// CREATE, then STORE and POST at once: the event is applied, or the error says why not.
pub(crate) fn create_event(
    batch: &mut Batch<'_>,
    author: &SigningKey,
    draft: NewEvent,
) -> Result<EventId, CommandError> {
    let policy = policy(batch);
    let is_for_another = matches!(draft.seal, Seal::Prekey(_));
    let space = draft.space;
    let mut arrival = chains::create(batch.db(), batch.db(), &step_context(batch), author, draft)??;
    let id = arrival.blob.id();
    if is_for_another {
        // Only what can be opened again is applied; a key for somebody else's prekey is carried for them.
        arrival.opening = protocol::open(batch.db(), &arrival.blob);
    }
    let large = arrival.inline.take_if(|wire| wire.len() as u64 > policy.inline_bytes_max);
    let outcome = arrive(batch, &arrival)?;
    match outcome {
        Outcome::Applied(_) => {
            if let Some(wire) = large {
                batch.deliver(&space, &content_hash(&wire), &wire)?;
            }
            Ok(id)
        }
        Outcome::Refused(why) => Err(CreateError::NotApplied(why.to_string()).into()),
        Outcome::Held(seq, needs) => {
            // CREATE never holds: what would wait is taken back.
            let changes = release::expire(batch.db(), &policy, seq, batch.now())?;
            batch.apply(changes)?;
            let needs: Vec<String> = needs.iter().map(Need::to_string).collect();
            Err(CreateError::NotApplied(format!("it would wait for {}", needs.join(", "))).into())
        }
        // The author's own event for someone else's prekey is kept for them.
        Outcome::Carried(_) | Outcome::Known(_) => Ok(id),
        Outcome::TurnedAway(why) => Err(CreateError::NotApplied(format!("{why:?}")).into()),
    }
}
