//! Opening: a blob that cannot be opened yet waits for its key, or is carried for others.

use crate::chains::{Next, Passage};
use crate::change::{Change, Turn};
use crate::content;
use crate::reads::{Answer, Fault, Reads};
use crate::receive::Opening;
use crate::release;
use crate::rows::{Outcome, TurnedAway};
use crate::space::rules::{Examined, Standing, meta_of};
use crate::steps::hold::hold;
use model::stage::{StageInput, Why};
use model::{Need, Seq, SpaceId};

/// Goes on with what is opened; begins its content.
pub(crate) fn open<R: Reads>(db: &R, mut passage: Passage) -> Answer<Next> {
    match &passage.opening {
        Opening::Opened(_) if passage.was_opened => Ok(Next::On(passage)),
        Opening::Opened(envelope) => {
            let (space, author) = passage.numbers;
            let examined = Examined { envelope, space, author, found: &[] };
            let standing = Standing { authority: Seq(0), subject: Seq(0), grants: None };
            passage.work.row.meta = Some(meta_of(&examined, &standing));
            content::begin(db, &passage.setting.policy, &mut passage.work)?;
            Ok(Next::On(passage))
        }
        Opening::NoKey(space, key) if db.joined(space)? => {
            let needs = vec![Need::Key(*key)];
            let space = *space;
            hold(db, passage, space, needs)
        }
        Opening::NoKey(space, _) | Opening::NotOurs(space) => {
            let space = *space;
            carry(db, passage, space)
        }
        // A later release may know it: nothing of it is remembered, and it refuses nothing else.
        Opening::Bad(why) if why.is_unknown_version() => {
            let changes = vec![Change::Forget(passage.work.seq, passage.work.row.id), Change::Count("version")];
            Ok(Next::End(Outcome::TurnedAway(TurnedAway::Version), changes))
        }
        Opening::Bad(_) => {
            let changes = release::refuse(db, &passage.setting.policy, passage.work, false, Why::Blob)?;
            Ok(Next::End(Outcome::Refused(Why::Blob), changes))
        }
    }
}

fn carry<R: Reads>(db: &R, passage: Passage, space: SpaceId) -> Answer<Next> {
    let mut work = passage.work;
    let seq = work.seq;
    let policy = passage.setting.policy;
    let too_many = if db.carried_count(&space)? >= policy.carried_per_space_max {
        db.carried(&space, Seq(0), 1)?.first().map(|oldest| (space, *oldest))
    } else if db.carried_total()? >= policy.carried_max {
        db.oldest_carried()?
    } else {
        None
    };
    if let Some((space, oldest)) = too_many {
        work.changes.extend(release::drop_carried(db, &space, oldest, passage.setting.now)?);
    }
    work.row.stage = work.row.stage.next(StageInput::Carry).map_err(|edge| Fault::Broken(edge.to_string()))?;
    work.changes.push(Change::Carried(Turn::Put, space, seq));
    Ok(Next::End(Outcome::Carried(seq), work.finish()))
}
