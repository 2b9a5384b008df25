//! Following what a held event waits for, through what that waits for, to where the chain ends.

use super::text;
use super::waiting::{HuntState, hunted, oldest};
use engine::reads::{Reads as _, StoreResult};
use model::stage::Stage;
use model::{EventId, Nanos, Need, Seq};
use serde::Serialize;
use store::Db;
use store::tables::Snapshot;

/// No chain is followed further than this.
const DEPTH_MAX: usize = 32;
/// No explanation names more needs than this.
const NEEDS_MAX: usize = 256;
/// How many that wait for a need are counted.
const COUNTED_MAX: usize = 10_000;

/// A need that is not met.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Unmet {
    /// What is needed.
    #[serde(serialize_with = "text")]
    pub need: Need,
    /// Where the needed thing is.
    pub state: NeedState,
    /// How many events wait for it.
    pub waiting: u64,
    /// Since when the first of them waits.
    pub since: u64,
    /// When it is hunted; none for what is here already, and for what only time brings.
    pub hunted: Option<HuntState>,
    /// What the needed thing itself waits for.
    pub needs: Vec<Unmet>,
}

/// Where a needed thing is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NeedState {
    /// Not here.
    Absent,
    /// Here, and waiting itself.
    Held,
    /// Here, and about to be applied.
    Ready,
    /// Here, but nobody here can open it.
    Carried,
    /// Applied or at hand: whoever waits is about to be woken.
    Met,
    /// Refused: whoever waits is about to be refused.
    Refused,
    /// A moment that has not come.
    Future,
    /// Waits, through others, for the event that waits for it: none of them will ever be applied.
    Cycle,
    /// Not followed any further.
    Beyond,
    /// It is here, but a step broke an invariant on it.
    Parked,
}

/// What is known of one need.
struct Look {
    unmet: Unmet,
    /// What the needed event itself waits for.
    next: Vec<Need>,
}

/// Follows the unmet needs of a held event. Answers with them and with the circles that were found.
pub(super) fn follow(
    db: &Db<Snapshot>,
    id: &EventId,
    seq: Seq,
    unmet: &[Need],
) -> StoreResult<(Vec<Unmet>, Vec<Vec<String>>)> {
    let space = db.space_of(seq)?;
    let look = |need: &Need| look_at(db, need, space);
    let mut walk = Walk { look: &look, path: vec![*id], cycles: Vec::new(), left: NEEDS_MAX };
    let needs = walk.all(unmet)?;
    Ok((needs, walk.cycles))
}

struct Walk<'a> {
    look: &'a dyn Fn(&Need) -> StoreResult<Look>,
    /// The events from the first to the one whose needs are looked at.
    path: Vec<EventId>,
    cycles: Vec<Vec<String>>,
    left: usize,
}

impl Walk<'_> {
    fn all(&mut self, needs: &[Need]) -> StoreResult<Vec<Unmet>> {
        let mut found = Vec::new();
        for need in needs {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            found.push(self.one(need)?);
        }
        Ok(found)
    }

    fn one(&mut self, need: &Need) -> StoreResult<Unmet> {
        let Look { mut unmet, next } = (self.look)(need)?;
        let Need::Event(id) = need else { return Ok(unmet) };
        if let Some(start) = self.path.iter().position(|other| other == id) {
            let circle = self.path[start..].iter().chain([id]);
            self.cycles.push(circle.map(EventId::to_string).collect());
            unmet.state = NeedState::Cycle;
        } else if next.is_empty() {
            return Ok(unmet);
        } else if self.path.len() >= DEPTH_MAX || self.left == 0 {
            unmet.state = NeedState::Beyond;
        } else {
            self.path.push(*id);
            unmet.needs = self.all(&next)?;
            self.path.pop();
        }
        Ok(unmet)
    }
}

fn look_at(db: &Db<Snapshot>, need: &Need, space: Option<model::SpaceId>) -> StoreResult<Look> {
    let (state, next) = match need {
        Need::Event(id) => event_state(db, id)?,
        Need::Time(_) => (NeedState::Future, Vec::new()),
        other => {
            let is_met = engine::release::is_met(db, other, space.as_ref(), Nanos(0))?;
            (if is_met { NeedState::Met } else { NeedState::Absent }, Vec::new())
        }
    };
    let waiting = db.waiting(need, Seq(0), COUNTED_MAX)?;
    let is_hunted = state == NeedState::Absent;
    let unmet = Unmet {
        need: need.clone(),
        state,
        waiting: waiting.len() as u64,
        since: oldest(db, &waiting)?,
        hunted: if is_hunted { hunted(db, need, space)? } else { None },
        needs: Vec::new(),
    };
    Ok(Look { unmet, next })
}

fn event_state(db: &Db<Snapshot>, id: &EventId) -> StoreResult<(NeedState, Vec<Need>)> {
    let row = match db.seq(id)? {
        Some(seq) => db.event(seq)?,
        None => None,
    };
    let Some(row) = row else {
        let refused = db.refused(id)?.is_some();
        return Ok((if refused { NeedState::Refused } else { NeedState::Absent }, Vec::new()));
    };
    Ok(match row.stage {
        Stage::Held { unmet, .. } => (NeedState::Held, unmet),
        Stage::Ready => (NeedState::Ready, Vec::new()),
        Stage::Applied { .. } => (NeedState::Met, Vec::new()),
        Stage::Carried => (NeedState::Carried, Vec::new()),
        Stage::Refused { .. } => (NeedState::Refused, Vec::new()),
        Stage::Expired => (NeedState::Absent, Vec::new()),
        Stage::Parked { .. } => (NeedState::Parked, Vec::new()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn id(letter: char) -> EventId {
        EventId([letter as u8; 16])
    }

    fn letter(need: &Need) -> char {
        match need {
            Need::Event(id) => char::from(id.0[0]),
            _ => '?',
        }
    }

    fn show(unmet: &Unmet) -> String {
        let inner: Vec<String> = unmet.needs.iter().map(show).collect();
        let inner = if inner.is_empty() { String::new() } else { format!("({})", inner.join(" ")) };
        format!("{}:{}{inner}", letter(&unmet.need), format!("{:?}", unmet.state).to_lowercase())
    }

    /// Follows from `a` through a graph of words such as `ab`: a waits for b.
    fn check(graph: &str, expected: Expect) {
        let needs = |from: char| -> Vec<Need> {
            let edges = graph.split_whitespace().filter(|edge| edge.starts_with(from));
            edges.filter_map(|edge| edge.chars().nth(1)).map(|to| Need::Event(id(to))).collect()
        };
        let look = |need: &Need| {
            let next = needs(letter(need));
            let state = if next.is_empty() { NeedState::Absent } else { NeedState::Held };
            let unmet = Unmet { need: need.clone(), state, waiting: 1, since: 0, hunted: None, needs: Vec::new() };
            Ok(Look { unmet, next })
        };
        let mut walk = Walk { look: &look, path: vec![id('a')], cycles: Vec::new(), left: NEEDS_MAX };
        let found: Vec<String> = walk.all(&needs('a')).expect("no fault").iter().map(show).collect();
        let name = |id: &String| char::from_u32(u32::from_str_radix(&id[..2], 16).expect("hex")).expect("a letter");
        let cycles: Vec<String> = walk.cycles.iter().map(|cycle| cycle.iter().map(name).collect()).collect();
        expected.assert_eq(&format!("{} | cycles: {}", found.join(" "), cycles.join(" ")));
    }

    #[test]
    fn chains_are_followed_to_what_is_absent() {
        check("ab ac bd", expect!["b:held(d:absent) c:absent | cycles: "]);
    }

    #[test]
    fn circles_are_named_and_not_followed() {
        check("ab bc ca", expect!["b:held(c:held(a:cycle)) | cycles: abca"]);
        check("ab bb bc", expect!["b:held(b:cycle c:absent) | cycles: bb"]);
    }

    #[test]
    fn long_chains_end_in_beyond() {
        let letters: Vec<char> = ('a'..='z').chain('A'..='Z').collect();
        let chain: Vec<String> = letters.windows(2).map(|pair| pair.iter().collect()).collect();
        let mut depth = 0;
        let look = |need: &Need| {
            let at = letters.iter().position(|other| *other == letter(need)).unwrap_or(0);
            let next = letters.get(at + 1).map(|next| Need::Event(id(*next)));
            let unmet = Unmet {
                need: need.clone(),
                state: NeedState::Held,
                waiting: 1,
                since: 0,
                hunted: None,
                needs: Vec::new(),
            };
            Ok(Look { unmet, next: next.into_iter().collect() })
        };
        let mut walk = Walk { look: &look, path: vec![id('a')], cycles: Vec::new(), left: NEEDS_MAX };
        let mut found = walk.all(&[Need::Event(id('b'))]).expect("no fault");
        while let Some(unmet) = found.pop() {
            depth += 1;
            if unmet.needs.is_empty() {
                assert_eq!(unmet.state, NeedState::Beyond);
            }
            found = unmet.needs;
        }
        assert!(depth == DEPTH_MAX && chain.len() > depth, "{depth}");
    }
}
