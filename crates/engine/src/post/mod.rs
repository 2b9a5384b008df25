//! POST: open, needs, validate, reflect, apply, respond. The same for all protocols, and again for what is released.
//!
//! Steps never write. They gather changes in the event's draft; the writer applies all of them in one transaction.

mod hold;
mod open;

use crate::change::Change;
use crate::content::{ContentCheck, EventDraft};
use crate::context::StepContext;
use crate::opened::Opened;
use crate::opened::Opening;
use crate::protocol::{AppliedEvent, AppliedReference, Lookup, Numbers, Protocol, of_protocol};
use crate::reads::{Reads, StoreError, StoreResult};
use crate::rows::{JournalKind, Outcome};
use crate::{delivery, release};
use model::planted::{PlantedBug, is_planted};
use model::stage::{RefusalReason, StageInput};
use model::{Need, Stamp};

/// An event on its way through POST.
#[derive(Debug)]
pub struct EventInPost {
    /// The clock and the limits.
    pub context: StepContext,
    /// The row and the changes so far.
    pub draft: EventDraft,
    /// Whether it was opened in an earlier passage.
    pub was_opened: bool,
    /// What is known of its inline content.
    pub verdict: Option<ContentCheck>,
    /// The numbers of its space and author, once opened.
    pub numbers: Numbers,
}

/// What POST says of an event, and what changes.
type Ending = (Outcome, Vec<Change>);

/// Whether the next step follows.
enum StepResult<T> {
    On(T),
    End(Ending),
}

/// Goes on with what a step gives, or ends here.
macro_rules! go_on {
    ($step:expr) => {
        match $step? {
            StepResult::On(value) => value,
            StepResult::End(ending) => return Ok(ending),
        }
    };
}

/// POST: the same steps for what is new and for what was released, after what opening it came to.
pub fn post<R: Reads>(db: &R, mut event: EventInPost, opening: Opening) -> StoreResult<Ending> {
    let opened = match open::opened_or_why(opening) {
        Ok(opened) => opened,
        Err(reason) => return open::end(db, event, reason),
    };
    of_protocol!(&opened, inner => {
        go_on!(open::begin::<P, R>(db, &mut event, inner));
        let (mut event, found) = go_on!(needs::<P, R>(db, event, &opened, inner));
        go_on!(validate::<P, R>(db, &mut event, inner, &found));
        apply::<P, R>(db, &mut event, inner)?;
        let context = event.context;
        delivery::settle(db, &context.policy, &mut event.draft, &opened, event.verdict)?;
        respond(db, event, P::meets(inner))
    })
}

/// Goes on when everything needed is applied; otherwise the event is held or refused.
fn needs<P: Protocol, R: Reads>(
    db: &R,
    mut event: EventInPost,
    opened: &Opened,
    inner: &P::Opened,
) -> StoreResult<StepResult<(EventInPost, Vec<AppliedReference>)>> {
    match P::needs(db, &event.context, inner, !event.was_opened)? {
        Lookup::Met(found) => Ok(StepResult::On((event, found))),
        Lookup::Unmet(unmet) => {
            event.draft.changes.extend(P::wait_effects(db, inner)?);
            hold::hold(db, event, opened.space(), unmet).map(StepResult::End)
        }
        Lookup::Refused => refuse(db, event.draft, &event.context, RefusalReason::NeedsRefused).map(StepResult::End),
    }
}

fn refuse<R: Reads>(db: &R, draft: EventDraft, context: &StepContext, why: RefusalReason) -> StoreResult<Ending> {
    let changes = release::refuse(db, &context.policy, draft, true, why)?;
    Ok((Outcome::Refused(why), changes))
}

/// Goes on with what is valid, a pure function of the event and the events it refers to.
fn validate<P: Protocol, R: Reads>(
    db: &R,
    event: &mut EventInPost,
    inner: &P::Opened,
    found: &[AppliedReference],
) -> StoreResult<StepResult<()>> {
    match P::validate(db, inner, event.numbers, found)? {
        Ok(meta) => {
            event.draft.row.meta = Some(meta);
            Ok(StepResult::On(()))
        }
        Err(why) => {
            let draft = std::mem::replace(&mut event.draft, EventDraft::empty());
            refuse(db, draft, &event.context, why).map(StepResult::End)
        }
    }
}

/// Puts the effects of a valid event into the changes, its stage and its journal entry with them. No protocol reflects
/// yet: events made in answer would be made here; replay and rebuild never reflect.
fn apply<P: Protocol, R: Reads>(db: &R, event: &mut EventInPost, inner: &P::Opened) -> StoreResult<()> {
    let draft = &mut event.draft;
    let mut meta = draft.meta()?;
    let stamp = Stamp { at: meta.at, id: draft.row.id };
    meta.counts = P::counts(db, &meta, stamp)?;
    draft.row.meta = Some(meta.clone());
    let position = db.next_position()?;
    let stage = draft.row.stage.clone().next(StageInput::Apply(position));
    draft.row.stage = stage.map_err(|edge| StoreError::Broken(edge.to_string()))?;
    if !is_planted(PlantedBug::JournalEntryMissing) || event.was_opened {
        draft.changes.push(Change::Journal(meta.space, draft.seq, JournalKind::Applied));
    }
    let applied = AppliedEvent { seq: draft.seq, stamp, meta: &meta, opened: inner };
    draft.changes.extend(P::standing_rows(db, applied)?);
    draft.changes.extend(P::effects(db, applied)?);
    Ok(())
}

/// Wakes what waited for this event, and for whatever else it brings; then the passage is over.
fn respond<R: Reads>(db: &R, event: EventInPost, meets: Vec<Need>) -> StoreResult<Ending> {
    let (seq, id) = (event.draft.seq, event.draft.row.id);
    let policy = event.context.policy;
    let needs = [Need::Event(id)].into_iter().chain(meets).collect();
    let woken = release::met_together(db, &policy, needs)?;
    let mut changes = event.draft.finish();
    changes.extend(woken);
    Ok((Outcome::Applied(seq), changes))
}
