//! Needs of the envelope: the events it refers to, and its time.

use crate::chains::{EventInPost, StepResult};
use crate::reads::{Reads, StoreResult};
use crate::release;
use crate::rows::{EventRow, Outcome};
use crate::space::rules::AppliedReference;
use crate::steps::hold::hold;
use model::planted::{PlantedBug, is_planted};
use model::stage::{RefusalReason, Stage};
use model::{Need, Reference};

/// Goes on when everything needed is applied.
pub(crate) fn needs<R: Reads>(db: &R, mut in_post: EventInPost) -> StoreResult<StepResult> {
    let envelope = in_post.envelope()?;
    let (space, created_at) = (envelope.space, envelope.created_at);
    let needed: Vec<Reference> = envelope.needed_references().collect();
    let is_first = !in_post.was_opened;
    let mut unmet = Vec::new();
    for reference in needed {
        match look_up(db, &reference, is_first)? {
            Lookup::Applied(found) => in_post.found.push(*found),
            Lookup::Unmet => unmet.push(Need::Event(reference.id)),
            Lookup::Refused => {
                let changes =
                    release::refuse(db, &in_post.context.policy, in_post.draft, true, RefusalReason::NeedsRefused)?;
                return Ok(StepResult::End(Outcome::Refused(RefusalReason::NeedsRefused), changes));
            }
        }
    }
    let opens_at = created_at.minus(in_post.context.policy.future_nanos);
    if opens_at > in_post.context.now && !is_planted(PlantedBug::FutureAppliedNow) {
        unmet.push(Need::Time(opens_at));
    }
    if unmet.is_empty() {
        return Ok(StepResult::On(in_post));
    }
    hold(db, in_post, space, unmet)
}

enum Lookup {
    Applied(Box<AppliedReference>),
    Unmet,
    Refused,
}

fn look_up<R: Reads>(db: &R, reference: &Reference, is_first: bool) -> StoreResult<Lookup> {
    let Some(seq) = db.seq(&reference.id)? else {
        return Ok(if db.refused(&reference.id)?.is_some() { Lookup::Refused } else { Lookup::Unmet });
    };
    match db.event(seq)? {
        Some(row) if is_met(db, &row, is_first)? => {
            Ok(Lookup::Applied(Box::new(AppliedReference { role: reference.role, seq, row })))
        }
        Some(_) | None => Ok(Lookup::Unmet),
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
        Stage::Held { .. } | Stage::Ready | Stage::Refused { .. } | Stage::Expired | Stage::Carried => false,
    })
}
