//! Needs of the envelope: the events it refers to, and its time.

use crate::chains::{Next, Passage};
use crate::reads::{Answer, Reads};
use crate::release;
use crate::rows::{EventRow, Outcome};
use crate::space::rules::Found;
use crate::steps::hold::hold;
use model::planted::{Bug, is_planted};
use model::stage::{Stage, Why};
use model::{Need, Reference};

/// Goes on when everything needed is applied.
pub(crate) fn needs<R: Reads>(db: &R, mut passage: Passage) -> Answer<Next> {
    let envelope = passage.envelope()?;
    let (space, created_at) = (envelope.space, envelope.created_at);
    let needed: Vec<Reference> = envelope.needed_references().collect();
    let is_first = !passage.was_opened;
    let mut unmet = Vec::new();
    for reference in needed {
        match look_up(db, &reference, is_first)? {
            Lookup::Applied(found) => passage.found.push(*found),
            Lookup::Unmet => unmet.push(Need::Event(reference.id)),
            Lookup::Refused => {
                let changes = release::refuse(db, &passage.setting.policy, passage.work, true, Why::NeedsRefused)?;
                return Ok(Next::End(Outcome::Refused(Why::NeedsRefused), changes));
            }
        }
    }
    let opens_at = created_at.minus(passage.setting.policy.future_nanos);
    if opens_at > passage.setting.now && !is_planted(Bug::FutureAppliedNow) {
        unmet.push(Need::Time(opens_at));
    }
    if unmet.is_empty() {
        return Ok(Next::On(passage));
    }
    hold(db, passage, space, unmet)
}

enum Lookup {
    Applied(Box<Found>),
    Unmet,
    Refused,
}

fn look_up<R: Reads>(db: &R, reference: &Reference, is_first: bool) -> Answer<Lookup> {
    let Some(seq) = db.seq(&reference.id)? else {
        return Ok(if db.refused(&reference.id)?.is_some() { Lookup::Refused } else { Lookup::Unmet });
    };
    match db.event(seq)? {
        Some(row) if is_met(db, &row, is_first)? => {
            Ok(Lookup::Applied(Box::new(Found { role: reference.role, seq, row })))
        }
        Some(_) | None => Ok(Lookup::Unmet),
    }
}

/// A need for an event is met when that event is applied, not when it is merely here or ready.
fn is_met<R: Reads>(db: &R, row: &EventRow, is_first: bool) -> Answer<bool> {
    Ok(match row.stage {
        // As if the door's lookup of a moment ago were believed.
        Stage::Applied { position } if is_first && is_planted(Bug::LostWakeUp) => position + 2 < db.next_position()?,
        Stage::Applied { .. } => true,
        Stage::Held { .. } | Stage::Ready if is_planted(Bug::ReleaseOnReady) => row.meta.is_some(),
        Stage::Held { .. } | Stage::Ready | Stage::Refused { .. } | Stage::Expired | Stage::Carried => false,
    })
}
