//! The stages of an event and the states of its content: two enums, one transition function each.
//!
//! Every stage has a name, and every pair of stage and input is spelled out; a forbidden edge is a bug, reported as
//! [`ForbiddenEdge`] and never taken.

mod refusal;

pub use refusal::RefusalReason;

use crate::ids::{Nanos, Stamp};
use crate::need::Need;
use std::fmt;

/// Where an event stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Waiting for at least one need.
    Held {
        /// What it waits for, sorted.
        unmet: Vec<Need>,
        /// Since when.
        since: Nanos,
        /// When the wait ends, unless it is renewed.
        until: Nanos,
    },
    /// Its last need was met; POST will look at it again.
    Ready,
    /// Its effects are in the views.
    Applied {
        /// The number of its journal entry.
        position: u64,
    },
    /// Never valid.
    Refused {
        /// For this reason.
        why: RefusalReason,
    },
    /// Waited too long, or had to make room. Nothing of it is kept.
    Expired,
    /// Kept for others, by quota.
    Carried,
    /// A step broke an invariant on it. It is left alone until somebody asks for another look.
    Parked {
        /// What was wrong.
        why: String,
    },
}

/// What can happen to an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StageInput {
    /// POST found needs unmet.
    Hold {
        /// What it waits for.
        unmet: Vec<Need>,
        /// From when on.
        since: Nanos,
        /// When the wait ends.
        until: Nanos,
    },
    /// It was submitted again, and its kind prolongs the wait then.
    Renew(Nanos),
    /// A need was met.
    Met(Need),
    /// POST applied it.
    Apply(u64),
    /// POST refused it.
    Refuse(RefusalReason),
    /// Its time is up.
    Expire,
    /// Nobody here can open it.
    Carry,
    /// The space of a carried event was joined, its key came, or somebody asks for another look: POST looks at it.
    Wake,
    /// A step broke an invariant on it, for this reason.
    Park(String),
}

/// An edge that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no edge from {from} on {input}")]
pub struct ForbiddenEdge {
    from: String,
    input: String,
}

impl Stage {
    /// The stage after an input. An event that was just stored is [`Stage::Ready`].
    pub fn next(self, input: StageInput) -> Result<Stage, ForbiddenEdge> {
        use Stage::*;
        use StageInput as In;
        match (self, input) {
            (Ready | Held { .. }, In::Hold { unmet, since, until }) if !unmet.is_empty() => {
                Ok(Held { unmet, since, until })
            }
            (Held { unmet, since, .. }, In::Renew(until)) => Ok(Held { unmet, since, until }),
            (Held { mut unmet, since, until }, In::Met(need)) => {
                unmet.retain(|other| *other != need);
                Ok(if unmet.is_empty() { Ready } else { Held { unmet, since, until } })
            }
            // A need met twice, or met for what is past waiting, is normal: arrivals repeat.
            (stage @ (Ready | Applied { .. } | Carried | Parked { .. }), In::Met(_)) => Ok(stage),
            (Ready | Held { .. } | Carried | Parked { .. }, In::Park(why)) => Ok(Parked { why }),
            (Parked { .. }, In::Wake) => Ok(Ready),
            (Ready, In::Apply(position)) => Ok(Applied { position }),
            (Ready | Held { .. } | Carried, In::Refuse(why)) => Ok(Refused { why }),
            (Held { .. } | Carried, In::Expire) => Ok(Expired),
            (Ready, In::Carry) => Ok(Carried),
            (Carried | Held { .. }, In::Wake) => Ok(Ready),
            (stage @ (Ready | Applied { .. }), In::Wake) => Ok(stage),
            (stage @ (Ready | Held { .. }), input @ In::Hold { .. }) => forbidden(&stage, &input),
            (stage @ (Applied { .. } | Carried), input @ In::Hold { .. }) => forbidden(&stage, &input),
            (stage @ (Held { .. } | Applied { .. } | Carried), input @ In::Apply(_)) => forbidden(&stage, &input),
            (stage @ (Ready | Applied { .. } | Carried), input @ In::Renew(_)) => forbidden(&stage, &input),
            (stage @ Applied { .. }, input @ (In::Refuse(_) | In::Park(_))) => forbidden(&stage, &input),
            (stage @ (Ready | Applied { .. }), input @ In::Expire) => forbidden(&stage, &input),
            (stage @ (Held { .. } | Applied { .. } | Carried), input @ In::Carry) => forbidden(&stage, &input),
            (
                stage @ Parked { .. },
                input @ (In::Hold { .. } | In::Renew(_) | In::Apply(_) | In::Refuse(_) | In::Expire | In::Carry),
            ) => forbidden(&stage, &input),
            (
                stage @ (Refused { .. } | Expired),
                input @ (In::Hold { .. }
                | In::Renew(_)
                | In::Met(_)
                | In::Apply(_)
                | In::Refuse(_)
                | In::Expire
                | In::Carry
                | In::Wake
                | In::Park(_)),
            ) => forbidden(&stage, &input),
        }
    }

    /// The word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Stage::Held { .. } => "held",
            Stage::Ready => "ready",
            Stage::Applied { .. } => "applied",
            Stage::Refused { .. } => "refused",
            Stage::Expired => "expired",
            Stage::Carried => "carried",
            Stage::Parked { .. } => "parked",
        }
    }
}

fn forbidden<T>(stage: &Stage, input: &impl fmt::Debug) -> Result<T, ForbiddenEdge> {
    Err(ForbiddenEdge { from: stage.word().to_owned(), input: format!("{input:?}") })
}

/// Where the content of an event stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ContentState {
    /// Wanted, not processed yet.
    Missing,
    /// Its effects were applied, once.
    Processed,
    /// Failed validation for this event.
    Invalid,
    /// Deleted by its author or an admin.
    Deleted {
        /// The least delete that counts.
        by: Stamp,
    },
    /// Dropped here, by local policy.
    Pruned,
}

/// What can happen to the content of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContentInput {
    /// The bytes are here and valid for this event.
    Arrived,
    /// The bytes are here and not valid for this event.
    Unfit,
    /// A delete counts; it is the least of those that do.
    Delete(Stamp),
    /// No delete counts any more.
    Undelete,
    /// Local policy drops it.
    Prune,
    /// A local request wants it back.
    Want,
}

/// What a transition does to the count of references.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefChange {
    /// Nothing.
    Keep,
    /// Takes one.
    Take,
    /// Gives one back.
    GiveBack,
}

impl ContentState {
    /// The state after an input and what becomes of the reference, or `None` where the input changes nothing.
    pub fn next(self, input: ContentInput) -> Option<(ContentState, RefChange)> {
        use ContentInput as In;
        use ContentState::*;
        use RefChange::*;
        match (self, input) {
            (Missing, In::Arrived) => Some((Processed, Keep)),
            (Missing, In::Unfit) => Some((Invalid, GiveBack)),
            (Missing | Processed, In::Delete(by)) => Some((Deleted { by }, GiveBack)),
            (Invalid | Pruned, In::Delete(by)) => Some((Deleted { by }, Keep)),
            (Deleted { by: old }, In::Delete(by)) if by != old => Some((Deleted { by }, Keep)),
            (Deleted { .. }, In::Undelete) => Some((Missing, Take)),
            (Missing | Processed, In::Prune) => Some((Pruned, GiveBack)),
            (Pruned, In::Want) => Some((Missing, Take)),
            // Late and repeated input is normal and changes nothing.
            (Processed | Invalid | Deleted { .. } | Pruned, In::Arrived | In::Unfit) => None,
            (Deleted { .. }, In::Delete(_) | In::Prune | In::Want) => None,
            (Missing | Processed | Invalid | Pruned, In::Undelete) => None,
            (Invalid | Pruned, In::Prune) => None,
            (Missing | Processed | Invalid, In::Want) => None,
        }
    }

    /// Whether an event in this state has a reference taken.
    pub fn holds_reference(self) -> bool {
        match self {
            ContentState::Missing | ContentState::Processed => true,
            ContentState::Invalid | ContentState::Deleted { .. } | ContentState::Pruned => false,
        }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            ContentState::Missing => "missing",
            ContentState::Processed => "processed",
            ContentState::Invalid => "invalid",
            ContentState::Deleted { .. } => "deleted",
            ContentState::Pruned => "pruned",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::EventId;
    use proptest::prelude::*;

    fn stages() -> Vec<Stage> {
        vec![
            Stage::Held { unmet: vec![Need::Time(Nanos(1)), Need::Time(Nanos(2))], since: Nanos(0), until: Nanos(9) },
            Stage::Ready,
            Stage::Applied { position: 1 },
            Stage::Refused { why: RefusalReason::Role },
            Stage::Expired,
            Stage::Carried,
        ]
    }

    fn edges(input: &StageInput) -> String {
        let each = stages().into_iter().map(|stage| {
            let from = stage.word();
            match stage.next(input.clone()) {
                Ok(next) => format!("{from}>{}", next.word()),
                Err(_) => format!("{from}|"),
            }
        });
        each.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_edge_of_an_event() {
        let need = || Need::Time(Nanos(1));
        let check = |input, want: &str| assert_eq!(edges(&input), want, "{input:?}");
        let hold = StageInput::Hold { unmet: vec![need()], since: Nanos(0), until: Nanos(9) };
        check(hold, "held>held ready>held applied| refused| expired| carried|");
        check(StageInput::Renew(Nanos(20)), "held>held ready| applied| refused| expired| carried|");
        check(StageInput::Met(need()), "held>held ready>ready applied>applied refused| expired| carried>carried");
        check(StageInput::Apply(7), "held| ready>applied applied| refused| expired| carried|");
        check(
            StageInput::Refuse(RefusalReason::Role),
            "held>refused ready>refused applied| refused| expired| carried>refused",
        );
        check(StageInput::Expire, "held>expired ready| applied| refused| expired| carried>expired");
        check(StageInput::Carry, "held| ready>carried applied| refused| expired| carried|");
        check(StageInput::Wake, "held>ready ready>ready applied>applied refused| expired| carried>ready");
    }

    #[test]
    fn a_renewed_hold_keeps_what_it_waits_for() {
        let held = |until| Stage::Held { unmet: vec![Need::Time(Nanos(1))], since: Nanos(0), until: Nanos(until) };
        assert_eq!(held(9).next(StageInput::Renew(Nanos(20))), Ok(held(20)));
    }

    #[test]
    fn the_last_need_makes_it_ready() {
        let held = Stage::Held { unmet: vec![Need::Time(Nanos(1))], since: Nanos(0), until: Nanos(9) };
        assert_eq!(held.next(StageInput::Met(Need::Time(Nanos(1)))), Ok(Stage::Ready));
    }

    #[test]
    fn reasons_have_codes() {
        for why in RefusalReason::ALL {
            assert_eq!(RefusalReason::from_code(why.code()), Some(why));
        }
        assert_eq!(RefusalReason::from_code(200), None);
    }

    fn content_input() -> impl Strategy<Value = ContentInput> {
        let by = (1..4u64).prop_map(|at| Stamp { at: Nanos(at), id: EventId([0; 16]) });
        prop_oneof![
            Just(ContentInput::Arrived),
            Just(ContentInput::Unfit),
            by.prop_map(ContentInput::Delete),
            Just(ContentInput::Undelete),
            Just(ContentInput::Prune),
            Just(ContentInput::Want),
        ]
    }

    proptest! {
        #[test]
        fn a_reference_is_taken_and_given_back_in_turn(inputs in proptest::collection::vec(content_input(), 0..40)) {
            let mut state = ContentState::Missing;
            let mut count = 1;
            for input in inputs {
                if let Some((next, change)) = state.next(input) {
                    prop_assert_ne!(next, state);
                    state = next;
                    count += match change { RefChange::Keep => 0, RefChange::Take => 1, RefChange::GiveBack => -1 };
                }
                prop_assert_eq!(count, i32::from(state.holds_reference()));
            }
        }
    }
}
