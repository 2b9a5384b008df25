//! What holds for all numbers and all seeds, and the proof that a planted bug would be seen.

use super::super::{
    BackoffPolicy, HuntDelays, Nanoseconds, NeedOrigin, ScheduleRow, backoff, driver, on_hunt_ended, on_new_need,
    shortened,
};
use proptest::prelude::*;

fn config() -> ProptestConfig {
    ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() }
}

fn rhythm() -> impl Strategy<Value = BackoffPolicy> {
    prop_oneof![Just(BackoffPolicy::Content), Just(BackoffPolicy::Git), Just(BackoffPolicy::Space)]
}

fn origin() -> impl Strategy<Value = NeedOrigin> {
    prop_oneof![Just(NeedOrigin::LocalUser), Just(NeedOrigin::PeerOrRelay)]
}

fn row() -> impl Strategy<Value = ScheduleRow> {
    (any::<u32>(), any::<Option<Nanoseconds>>(), any::<Nanoseconds>(), any::<Option<Nanoseconds>>(), any::<u32>())
        .prop_map(|(attempts, last, next, again, joined)| ScheduleRow { attempts, last, next, again, joined })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_seed_lives_by_the_rules(seed: u64) {
        prop_assert_eq!(driver::run(seed), Ok(()));
    }

    #[test]
    fn a_later_attempt_never_rests_less(rhythm in rhythm(), attempts: u32, more: u32) {
        prop_assert!(backoff(rhythm, attempts) <= backoff(rhythm, attempts.saturating_add(more)));
    }

    #[test]
    fn jitter_stays_within_a_tenth(delay: Nanoseconds, jitter: u16) {
        let short = shortened(delay, jitter);
        prop_assert!(short <= delay && delay - short <= delay / 10);
    }

    #[test]
    fn a_new_need_never_puts_a_hunt_off(row in row(), rhythm in rhythm(), origin in origin(), now: Nanoseconds) {
        let after = on_new_need(Some(row), rhythm, origin, HuntDelays::default(), now);
        prop_assert!(after.next <= row.next.max(now));
        prop_assert!(after.attempts <= row.attempts);
    }

    #[test]
    fn the_end_of_a_hunt_never_schedules_into_the_past(
        row in row(), before in row(), changed: bool, rhythm in rhythm(), now: Nanoseconds, jitter: u16,
    ) {
        let before = if changed { before } else { row };
        let after = on_hunt_ended(&row, before.mark(), true, rhythm, now, now, jitter);
        prop_assert!(after.is_some_and(|after| after.next >= now));
        prop_assert!(after.is_some_and(|after| after.attempts >= row.attempts));
        prop_assert_eq!(on_hunt_ended(&row, before.mark(), false, rhythm, now, now, jitter), None);
    }
}

#[cfg(feature = "simulation")]
mod planted {
    use super::driver;
    use model::planted::{PlantedBug, plant};

    /// Among a few hundred seeds, some see the bug; without it the same seeds see nothing.
    fn check(bug: PlantedBug) {
        let first_complaint = || (0..500).find_map(|seed| driver::run(seed).err());
        plant(Some(bug));
        let seen = first_complaint();
        plant(None);
        assert!(seen.is_some(), "no seed saw {}", bug.name());
        assert_eq!(first_complaint(), None);
    }

    #[test]
    fn content_backoff_off_by_one_is_seen() {
        check(PlantedBug::ContentBackoffOffByOne);
    }

    #[test]
    fn git_backoff_off_by_one_is_seen() {
        check(PlantedBug::GitBackoffOffByOne);
    }

    #[test]
    fn window_one_too_many_is_seen() {
        check(PlantedBug::WindowOneTooMany);
    }

    #[test]
    fn window_wakes_nobody_is_seen() {
        check(PlantedBug::WindowWakesNobody);
    }

    #[test]
    fn completion_finds_group_busy_is_seen() {
        check(PlantedBug::CompletionFindsGroupBusy);
    }

    #[test]
    fn tried_url_forgotten_is_seen() {
        check(PlantedBug::TriedUrlForgotten);
    }
}
