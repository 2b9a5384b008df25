//! From a run that fails to a smaller one that fails too.

use crate::run::{Cut, Failure};
use std::collections::BTreeSet;

/// More rounds find little.
const ROUNDS_MAX: usize = 4;

/// Leaves out as much as it can of a run so that it still fails: halves first, then smaller parts.
pub fn shrink(first: &Failure, mut fails: impl FnMut(&Cut) -> Option<Failure>) -> (Cut, Failure) {
    let (mut cut, mut failure) = (Cut { steps_max: Some(first.steps), ..Cut::default() }, first.clone());
    for _ in 0..ROUNDS_MAX {
        let before = (cut.events.len(), cut.steps.len());
        shrink_one(first.events, &mut |out| {
            let events: BTreeSet<usize> = cut.events.iter().copied().chain(out).collect();
            try_cut(&mut cut, |cut| Cut { events, ..cut }, &mut failure, &mut fails);
        });
        shrink_one(usize::try_from(first.steps).unwrap_or(usize::MAX), &mut |out| {
            let steps = cut.steps.iter().copied().chain(out.into_iter().map(|step| step as u64)).collect();
            try_cut(&mut cut, |cut| Cut { steps, ..cut }, &mut failure, &mut fails);
        });
        if before == (cut.events.len(), cut.steps.len()) {
            break;
        }
    }
    (cut, failure)
}

fn try_cut(
    cut: &mut Cut,
    more: impl FnOnce(Cut) -> Cut,
    failure: &mut Failure,
    fails: &mut impl FnMut(&Cut) -> Option<Failure>,
) {
    let tried = more(cut.clone());
    if tried.events.len() == cut.events.len() && tried.steps.len() == cut.steps.len() {
        return;
    }
    if let Some(still) = fails(&tried) {
        (*cut, *failure) = (tried, still);
    }
}

/// Tries to leave out parts of `0..count`, each half as large as the one before.
fn shrink_one(count: usize, leave_out: &mut dyn FnMut(BTreeSet<usize>)) {
    let mut part = count.div_ceil(2).max(1);
    loop {
        for from in (0..count).step_by(part) {
            leave_out((from..(from + part).min(count)).collect());
        }
        if part == 1 {
            return;
        }
        part = part.div_ceil(2);
    }
}
