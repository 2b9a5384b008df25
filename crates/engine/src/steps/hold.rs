//! Holding: an event waits for what it needs, within the limits of whoever answers for it.

use crate::chains::{Next, Passage};
use crate::change::{Change, Turn};
use crate::content::{Work, fetch_origin};
use crate::policy::Policy;
use crate::reads::{Answer, Fault, Reads};
use crate::release::{expire, owner_of, withdraw};
use crate::rows::{Outcome, Owner, TurnedAway};
use model::stage::StageInput;
use model::{Group, Need, SpaceId};

/// Holds the event for its unmet needs. They were looked up in this very transaction, so no wake-up is lost.
pub(crate) fn hold<R: Reads>(db: &R, passage: Passage, space: SpaceId, mut unmet: Vec<Need>) -> Answer<Next> {
    unmet.sort();
    unmet.dedup();
    let (policy, now) = (passage.setting.policy, passage.setting.now);
    let mut work = passage.work;
    let owner = owner_of(&work.row);
    let most = match owner {
        Owner::Author(_) => policy.held_per_author_max,
        Owner::Door(_) => policy.held_per_peer_max,
    };
    if db.held_count(owner)? >= most || db.held_total()? >= policy.held_max {
        match db.oldest_held(owner)? {
            Some(oldest) => work.changes.extend(expire(db, &policy, oldest, now)?),
            None => return turn_away(db, &policy, passage.was_opened, work),
        }
    }
    work.row.stage =
        work.row.stage.next(StageInput::Hold(unmet.clone(), now)).map_err(|edge| Fault::Broken(edge.to_string()))?;
    let seq = work.seq;
    work.changes.push(Change::Held(Turn::Put, owner, seq, now));
    let origin = fetch_origin(work.row.origin);
    for need in &unmet {
        work.changes.push(Change::Waiting(Turn::Put, need.clone(), seq, Some(space)));
        work.changes.extend(Group::of(need, space).map(|group| Change::Wanted(group, origin)));
    }
    work.changes.push(Change::Count("held"));
    Ok(Next::End(Outcome::Held(seq, unmet), work.finish()))
}

/// There is no room and nothing of this owner to end: what just came is not kept. What it took in this passage is left
/// out; what it took in an earlier one is given back.
fn turn_away(db: &impl Reads, policy: &Policy, was_opened: bool, work: Work) -> Answer<Next> {
    let mut changes = if was_opened { withdraw(db, policy, work.seq, &work.row)? } else { Vec::new() };
    changes.push(Change::Forget(work.seq, work.row.id));
    changes.push(Change::Count("no-room"));
    Ok(Next::End(Outcome::TurnedAway(TurnedAway::NoRoom), changes))
}
