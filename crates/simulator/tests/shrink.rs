//! A run that fails is shrunk to a smaller one that fails too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use anteroom_simulator::run::{Cut, RunLog, run_without};
use anteroom_simulator::shrink::shrink;
use model::planted::{PlantedBug, plant};

#[test]
fn what_does_not_belong_to_a_failure_is_left_out() {
    plant(Some(PlantedBug::PlainInSealedSpace));
    let attempt = |seed: u64, cut: &Cut| run_without(seed, RunLog::default(), cut).err();
    let (seed, failure) = (0..200).find_map(|seed| Some((seed, attempt(seed, &Cut::default())?))).unwrap();
    let (cut, smallest) = shrink(&failure, |cut| attempt(seed, cut));
    let left = failure.events - cut.events.len();
    // The space, a membership, a thread, and the message that should not be there.
    assert!(left <= 5, "{left} of {} events", failure.events);
    assert_eq!(cut.steps.len() as u64, failure.steps, "no step is needed: everything is brought in the end");
    assert_eq!(attempt(seed, &cut).map(|failure| failure.what), Some(smallest.what));
    plant(None);
    assert!(attempt(seed, &cut).is_none(), "without the bug nothing is wrong");
}
