//! Opening: a blob that cannot be opened yet waits for its key, or is carried for others.

use crate::chains::{EventInPost, StepResult};
use crate::change::{Change, RowChange};
use crate::content;
use crate::reads::{Reads, StoreError, StoreResult};
use crate::receive::Opening;
use crate::release;
use crate::rows::{Outcome, TurnedAway};
use crate::space::rules::{EventToValidate, Grounds, meta_of};
use crate::steps::hold::hold;
use model::stage::{RefusalReason, StageInput};
use model::{Need, Seq, SpaceId};

/// Goes on with what is opened; begins its content.
pub(crate) fn open<R: Reads>(db: &R, mut in_post: EventInPost) -> StoreResult<StepResult> {
    match &in_post.opening {
        Opening::Opened(_) if in_post.was_opened => Ok(StepResult::On(in_post)),
        Opening::Opened(envelope) => {
            let (space, author) = in_post.numbers;
            let examined = EventToValidate { envelope, space, author, found: &[] };
            let standing = Grounds { authority: Seq(0), subject: Seq(0), grants: None };
            in_post.draft.row.meta = Some(meta_of(&examined, &standing));
            content::begin(db, &in_post.context.policy, &mut in_post.draft)?;
            Ok(StepResult::On(in_post))
        }
        Opening::NoKey(space, key) if db.joined(space)? => {
            let needs = vec![Need::Key(*key)];
            let space = *space;
            hold(db, in_post, space, needs)
        }
        Opening::NoKey(space, _) | Opening::NotOurs(space) => {
            let space = *space;
            carry(db, in_post, space)
        }
        // A later release may know it: nothing of it is remembered, and it refuses nothing else.
        Opening::Bad(why) if why.is_unknown_version() => {
            let changes = vec![Change::Forget(in_post.draft.seq, in_post.draft.row.id), Change::Count("version")];
            Ok(StepResult::End(Outcome::TurnedAway(TurnedAway::Version), changes))
        }
        Opening::Bad(_) => {
            let changes = release::refuse(db, &in_post.context.policy, in_post.draft, false, RefusalReason::Blob)?;
            Ok(StepResult::End(Outcome::Refused(RefusalReason::Blob), changes))
        }
    }
}

fn carry<R: Reads>(db: &R, in_post: EventInPost, space: SpaceId) -> StoreResult<StepResult> {
    let mut draft = in_post.draft;
    let seq = draft.seq;
    let policy = in_post.context.policy;
    let too_many = if db.carried_count(&space)? >= policy.carried_per_space_max {
        db.carried(&space, Seq(0), 1)?.first().map(|oldest| (space, *oldest))
    } else if db.carried_total()? >= policy.carried_max {
        db.oldest_carried()?
    } else {
        None
    };
    if let Some((space, oldest)) = too_many {
        draft.changes.extend(release::drop_carried(db, &space, oldest, in_post.context.now)?);
    }
    draft.row.stage = draft.row.stage.next(StageInput::Carry).map_err(|edge| StoreError::Broken(edge.to_string()))?;
    draft.changes.push(Change::Carried(RowChange::Put, space, seq));
    Ok(StepResult::End(Outcome::Carried(seq), draft.finish()))
}
