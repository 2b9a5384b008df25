//! A source that is away for an hour, with a virtual clock: it is asked patiently, and soon after it is back.

use super::super::schedule::{on_hunt_ended, on_new_need};
use super::super::{
    BackoffPolicy, DomainLimits, FetchReads, HuntDelays, HuntInput, HuntOutput, Hunts, Nanoseconds, NeedOrigin, SECOND,
    Source,
};

const HOUR: Nanoseconds = 3600 * SECOND;

/// One group with one source.
struct Waiting {
    is_pending: bool,
}

impl FetchReads<u8> for Waiting {
    fn pending(&self, _: &u8) -> bool {
        self.is_pending
    }

    fn sources(&self, _: &u8) -> Vec<Source> {
        vec![Source { url: "https://away.example/x.git".into(), domain: "away.example".into() }]
    }
}

#[test]
fn a_source_that_comes_back_after_an_hour_is_asked_within_two_minutes() {
    let (mut hunts, mut world) = (Hunts::<u8>::new(DomainLimits::default()), Waiting { is_pending: true });
    let delays = HuntDelays::default();
    let mut row = Some(on_new_need(None, BackoffPolicy::Git, NeedOrigin::LocalUser, delays, 0));
    let (mut asked, mut now) = (Vec::new(), 0);
    while let Some(due) = row {
        now = now.max(due.next);
        hunts.hear(&world, HuntInput::Due { group: 7, mark: due.mark() }, now);
        while let Some(output) = hunts.take(true, now) {
            match output {
                HuntOutput::Start { ticket, .. } => {
                    asked.push(now / SECOND);
                    // Whoever is away does not answer; whoever is back has everything.
                    world.is_pending = now < HOUR;
                    hunts.hear(&world, HuntInput::Ended { ticket }, now);
                }
                HuntOutput::HuntEnded { mark, started_at, .. } => {
                    let pending = world.is_pending;
                    row = on_hunt_ended(&due, mark, pending, BackoffPolicy::Git, started_at, now, 0);
                }
            }
        }
    }
    assert_eq!(asked[..6], [180, 200, 240, 320, 440, 560], "three minutes, then 20, 40, 80, 120, 120 seconds");
    let last = asked.last().copied().unwrap_or_default();
    assert!((3600..=3720).contains(&last), "it was asked last after {last} seconds");
    assert!(asked.len() < 40, "{} requests in an hour", asked.len());
    assert!(!world.is_pending);
}
