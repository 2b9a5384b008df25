//! Opening: a blob that cannot be opened yet waits for its key, or is carried for others.

use super::hold::hold;
use super::{Ending, EventInPost, StepResult};
use crate::change::{Change, RowChange};
use crate::content;
use crate::opened::Opened;
use crate::opened::Opening;
use crate::protocol::Protocol;
use crate::reads::{Reads, StoreError, StoreResult};
use crate::release;
use crate::rows::{Outcome, TurnedAway};
use model::stage::{RefusalReason, StageInput};
use model::{Need, Seq, SpaceId};

/// Why an event is not opened.
pub(super) enum Closed {
    /// Its key is not here.
    Key(SpaceId, model::KeyId),
    /// It is for somebody else.
    NotOurs(SpaceId),
    /// A later release may know it.
    UnknownVersion,
    /// It is not valid.
    Bad,
}

/// What is opened, or why it is not.
pub(super) fn opened_or_why(opening: Opening) -> Result<Opened, Closed> {
    match opening {
        Opening::Opened(opened) => Ok(opened),
        Opening::NoKey(space, key) => Err(Closed::Key(space, key)),
        Opening::NotOurs(space) => Err(Closed::NotOurs(space)),
        Opening::Bad(why) if why.is_unknown_version() => Err(Closed::UnknownVersion),
        Opening::Bad(_) => Err(Closed::Bad),
    }
}

/// Begins the content of what was opened just now.
pub(super) fn begin<P: Protocol, R: Reads>(
    db: &R,
    event: &mut EventInPost,
    inner: &P::Opened,
) -> StoreResult<StepResult<()>> {
    if !event.was_opened {
        let meta = P::outline(inner, event.numbers);
        let deleted = P::deleted_by(db, &event.draft.row.id, &meta, inner)?;
        event.draft.row.meta = Some(meta);
        content::begin(&event.context.policy, &mut event.draft, deleted)?;
    } else if P::RECHECKS_ON_EACH {
        // Between two looks it was neither held nor applied, and a delete may have passed it over.
        let meta = event.draft.meta()?;
        let deleted = P::deleted_by(db, &event.draft.row.id, &meta, inner)?;
        content::recheck(db, &event.context.policy, &mut event.draft, deleted)?;
    }
    Ok(StepResult::On(()))
}

/// Ends the passage of what is not opened.
pub(super) fn end<R: Reads>(db: &R, event: EventInPost, reason: Closed) -> StoreResult<Ending> {
    match reason {
        Closed::Key(space, key) if db.joined(&space)? => hold(db, event, space, vec![Need::Key(key)]),
        Closed::Key(space, _) | Closed::NotOurs(space) => carry(db, event, space),
        // Nothing of it is remembered, and it refuses nothing else.
        Closed::UnknownVersion => {
            let changes = vec![Change::Forget(event.draft.seq, event.draft.row.id), Change::Count("version")];
            Ok((Outcome::TurnedAway(TurnedAway::Version), changes))
        }
        Closed::Bad => {
            let changes = release::refuse(db, &event.context.policy, event.draft, false, RefusalReason::Blob)?;
            Ok((Outcome::Refused(RefusalReason::Blob), changes))
        }
    }
}

fn carry<R: Reads>(db: &R, event: EventInPost, space: SpaceId) -> StoreResult<Ending> {
    let mut draft = event.draft;
    let seq = draft.seq;
    let policy = event.context.policy;
    let too_many = if db.carried_count(&space)? >= policy.carried_per_space_max {
        db.carried(&space, Seq(0), 1)?.first().map(|oldest| (space, *oldest))
    } else if db.carried_total()? >= policy.carried_max {
        db.oldest_carried()?
    } else {
        None
    };
    if let Some((space, oldest)) = too_many {
        draft.changes.extend(release::drop_carried(db, &space, oldest, event.context.now)?);
    }
    draft.row.stage = draft.row.stage.next(StageInput::Carry).map_err(|edge| StoreError::Broken(edge.to_string()))?;
    draft.changes.push(Change::Carried(RowChange::Put, space, seq));
    Ok((Outcome::Carried(seq), draft.finish()))
}
