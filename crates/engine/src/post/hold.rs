//! Holding: an event waits for what it needs, within the limits of whoever answers for it.

use super::{Ending, EventInPost};
use crate::change::{Change, RowChange};
use crate::content::{EventDraft, fetch_origin};
use crate::policy::Policy;
use crate::protocol;
use crate::reads::{Reads, StoreError, StoreResult};
use crate::release::{expire, owner_of, withdraw};
use crate::rows::{Outcome, Owner, TurnedAway};
use model::stage::StageInput;
use model::{Group, Need, SpaceId};

/// Holds the event for its unmet needs. They were looked up in this very transaction, so no wake-up is lost.
pub(super) fn hold<R: Reads>(db: &R, event: EventInPost, space: SpaceId, mut unmet: Vec<Need>) -> StoreResult<Ending> {
    unmet.sort();
    unmet.dedup();
    let (policy, now) = (event.context.policy, event.context.now);
    let mut draft = event.draft;
    let owner = owner_of(&draft.row);
    let most = match owner {
        Owner::Author(_) => policy.held_per_author_max,
        Owner::Door(_) => policy.held_per_peer_max,
    };
    if db.held_count(owner)? >= most || db.held_total()? >= policy.held_max {
        match db.oldest_held(owner)? {
            Some(oldest) => draft.changes.extend(expire(db, &policy, oldest, now)?),
            None => return turn_away(db, &policy, event.was_opened, draft),
        }
    }
    let until = protocol::hold_until(draft.row.meta.as_ref().map(|meta| meta.kind), &policy, &unmet, now);
    draft.row.stage = draft
        .row
        .stage
        .next(StageInput::Hold { unmet: unmet.clone(), since: now, until })
        .map_err(|edge| StoreError::Broken(edge.to_string()))?;
    let seq = draft.seq;
    draft.changes.push(Change::Held(RowChange::Put, owner, seq, until));
    let origin = fetch_origin(draft.row.origin);
    for need in &unmet {
        draft.changes.push(Change::Waiting(RowChange::Put, need.clone(), seq, Some(space)));
        draft.changes.extend(Group::of(need, space).map(|group| Change::Wanted(group, origin)));
    }
    draft.changes.push(Change::Count("held"));
    Ok((Outcome::Held(seq, unmet), draft.finish()))
}

/// There is no room and nothing of this owner to end: what just came is not kept. What it took in this passage is left
/// out; what it took in an earlier one is given back.
fn turn_away(db: &impl Reads, policy: &Policy, was_opened: bool, draft: EventDraft) -> StoreResult<Ending> {
    let mut changes = if was_opened { withdraw(db, policy, draft.seq, &draft.row)? } else { Vec::new() };
    changes.push(Change::Forget(draft.seq, draft.row.id));
    changes.push(Change::Count("no-room"));
    Ok((Outcome::TurnedAway(TurnedAway::NoRoom), changes))
}
