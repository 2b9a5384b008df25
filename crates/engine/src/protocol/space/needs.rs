//! Needs of an envelope: the events it refers to, and its time.

use super::winner::winner;
use crate::context::StepContext;
use crate::protocol::{AppliedReference, Lookup};
use crate::reads::{Reads, StoreResult};
use crate::rows::EventRow;
use model::envelope::Role;
use model::planted::{PlantedBug, is_planted};
use model::stage::Stage;
use model::{Envelope, Nanos, Need, Reference};

/// Looks up everything that must be here before the event can be applied.
pub(super) fn look_up_needs<R: Reads>(
    db: &R,
    context: &StepContext,
    envelope: &Envelope,
    is_first: bool,
) -> StoreResult<Lookup> {
    let (mut found, mut unmet) = (Vec::new(), Vec::new());
    for reference in envelope.needed_references() {
        match look_up(db, &reference, is_first)? {
            Found::Applied(reference) => found.push(*reference),
            Found::Unmet => unmet.push(Need::Event(reference.id)),
            Found::Refused => return Ok(Lookup::Refused),
        }
    }
    let opens_at = envelope.created_at.minus(context.policy.future_nanos);
    if opens_at > context.now
        && !is_planted(PlantedBug::FutureAppliedNow)
        && !follows_what_is_ahead(db, context, envelope, &found)?
    {
        unmet.push(Need::Time(opens_at));
    }
    Ok(if unmet.is_empty() { Lookup::Met(found) } else { Lookup::Unmet(unmet) })
}

/// By how much an event may come after what it follows.
const FOLLOWS_NANOS: u64 = Nanos::SECOND;

/// Whether the event comes right after something that is applied here although its own time has not come, because the
/// clock was wrong when it came. Waiting would freeze that thing until then. Nothing that is ahead by no more than
/// anything may be counts: else each event could go a little further than the one before.
fn follows_what_is_ahead<R: Reads>(
    db: &R,
    context: &StepContext,
    envelope: &Envelope,
    found: &[AppliedReference],
) -> StoreResult<bool> {
    let bound = context.now.plus(context.policy.future_nanos);
    let created = envelope.created_at;
    let is_followed = |at: Nanos| at > bound && (at..=at.plus(FOLLOWS_NANOS)).contains(&created);
    let mut times = found.iter().filter_map(|reference| reference.row.meta.as_ref()).map(|meta| meta.at);
    if times.any(is_followed) {
        return Ok(true);
    }
    let subject = found.iter().find(|reference| matches!(reference.role, Role::Thread | Role::Target));
    let winner = winner(db, envelope, subject.map(|reference| reference.seq))?;
    Ok(winner.is_some_and(|stamp| is_followed(stamp.at)))
}

enum Found {
    Applied(Box<AppliedReference>),
    Unmet,
    Refused,
}

fn look_up<R: Reads>(db: &R, reference: &Reference, is_first: bool) -> StoreResult<Found> {
    let Some(seq) = db.seq(&reference.id)? else {
        return Ok(if db.refused(&reference.id)?.is_some() { Found::Refused } else { Found::Unmet });
    };
    match db.event(seq)? {
        Some(row) if is_met(db, &row, is_first)? => {
            Ok(Found::Applied(Box::new(AppliedReference { role: reference.role, seq, row })))
        }
        Some(_) | None => Ok(Found::Unmet),
    }
}

/// A need for an event is met when that event is applied, not when it is merely here or ready.
fn is_met<R: Reads>(db: &R, row: &EventRow, is_first: bool) -> StoreResult<bool> {
    Ok(match row.stage {
        // As if the door's lookup of a moment ago were believed.
        Stage::Applied { position } if is_first && is_planted(PlantedBug::LostWakeUp) => {
            position + 2 < db.next_position()?
        }
        Stage::Applied { .. } => true,
        Stage::Held { .. } | Stage::Ready if is_planted(PlantedBug::ReleaseOnReady) => row.meta.is_some(),
        Stage::Held { .. } | Stage::Ready | Stage::Refused { .. } | Stage::Expired => false,
        Stage::Carried | Stage::Parked { .. } => false,
    })
}
