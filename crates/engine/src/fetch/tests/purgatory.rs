//! What the design of purgatory sync (ngit-grasp) asks of queue, throttle and hunt, test by test, under the names it gives
//! them. Those about whole nodes are in `crates/cli/tests/hunt`, those about identifiers beside the code that reads them.

use super::super::schedule::{HuntMark, ScheduleRow, on_hunt_ended, on_new_need};
use super::super::{BackoffPolicy, HuntDelays, MILLISECOND, NeedOrigin, SECOND, backoff};
use super::stories::check;
use expect_test::expect;

const GIT: BackoffPolicy = BackoffPolicy::Git;

#[test]
fn backoff_doubles_up_to_cap() {
    let seconds: Vec<u64> = (1..=6).map(|attempt| backoff(GIT, attempt) / SECOND).collect();
    assert_eq!(seconds, [20, 40, 80, 120, 120, 120]);
}

#[test]
fn new_event_resets_attempt_count() {
    let row = ScheduleRow { attempts: 4, last: Some(1), ..ScheduleRow::first(100 * SECOND) };
    let after = on_new_need(Some(row), GIT, NeedOrigin::LocalUser, HuntDelays::default(), SECOND);
    assert_eq!((after.attempts, after.next), (0, 100 * SECOND), "and it is never put off");
    let sooner = on_new_need(Some(row), GIT, NeedOrigin::PeerOrRelay, HuntDelays::default(), SECOND);
    assert_eq!(sooner.next, SECOND + 500 * MILLISECOND);
}

#[test]
fn concurrent_limit_blocks_when_saturated() {
    check(
        "limits 2 30 | a: x/1 | b: x/2 | c: x/3 | due a | due b | due c | queued | end 1",
        expect![[r#"
            due a -> 1: a x/1
            due b -> 2: b x/2
            due c -> hunt for c over
            queued -> c at x
            end 1 -> 3: c x/3, hunt for a over
        "#]],
    );
}

#[test]
fn rate_limit_blocks_when_window_full() {
    check(
        "limits 5 2 | a: x/1 x/2 x/3 | due a | end 1 | at 10 | end 2 | queued | wake | at 59 | at 60",
        expect![[r#"
            due a -> 1: a x/1
            end 1 -> 2: a x/2
            at 10 -> nothing
            end 2 -> hunt for a over
            queued -> a at x
            wake -> 60
            at 59 -> nothing
            at 60 -> 3: a x/3
        "#]],
    );
}

#[test]
fn round_robin_processes_identifiers_fairly() {
    check(
        "limits 1 30 | z: x/0 | a: x/1 x/2 | b: x/3 x/4 | c: x/5 x/6 | due z | due a | due b | due c | end 1 | end 2 | \
         end 3 | end 4 | end 5 | end 6",
        expect![[r#"
            due z -> 1: z x/0
            due a -> hunt for a over
            due b -> hunt for b over
            due c -> hunt for c over
            end 1 -> 2: a x/1, hunt for z over
            end 2 -> 3: b x/3
            end 3 -> 4: c x/5
            end 4 -> 5: a x/2
            end 5 -> 6: b x/4
            end 6 -> 7: c x/6
        "#]],
    );
}

#[test]
fn skips_in_progress_identifiers() {
    // Two slots are free, and only one group waits: it gets one of them at a time.
    check(
        "limits 2 30 | y: x/8 | z: x/9 | a: x/1 x/2 | due y | due z | due a | end 1 | end 2 | end 3",
        expect![[r#"
            due y -> 1: y x/8
            due z -> 2: z x/9
            due a -> hunt for a over
            end 1 -> 3: a x/1, hunt for y over
            end 2 -> hunt for z over
            end 3 -> 4: a x/2
        "#]],
    );
}

#[test]
fn is_throttled_reflects_domain_capacity() {
    check(
        "limits 1 30 | a: x/1 | b: x/2 y/2 | due a | due b | end 2 | end 1 | domains",
        expect![[r#"
            due a -> 1: a x/1
            due b -> 2: b y/2
            end 2 -> hunt for b over
            end 1 -> 3: b x/2, hunt for a over
            domains -> 2
        "#]],
    );
}

#[test]
fn next_url_skips_throttled_domains() {
    check(
        "limits 1 30 | a: x/1 | b: x/2 y/2 | due a | due b",
        expect![[r#"
            due a -> 1: a x/1
            due b -> 2: b y/2
        "#]],
    );
}

#[test]
fn next_url_skips_tried_urls() {
    check(
        "a: x/1 y/1 | due a | end 1 | end 2",
        expect![[r#"
            due a -> 1: a x/1
            end 1 -> 2: a y/1
            end 2 -> hunt for a over
        "#]],
    );
}

#[test]
fn tries_multiple_urls_until_complete() {
    check(
        "a: x/1 y/1 z/1 w/1 | due a | end 1 | end 2 | met a | end 3",
        expect![[r#"
            due a -> 1: a x/1
            end 1 -> 2: a y/1
            end 2 -> 3: a z/1
            end 3 -> hunt for a over
        "#]],
    );
}

#[test]
fn enqueues_throttled_domains_when_incomplete() {
    check(
        "limits 1 30 | b: x/9 | a: y/1 x/1 x/2 | due b | due a | end 2 | queued | end 1 | end 3 | met a | end 4 | queued",
        expect![[r#"
            due b -> 1: b x/9
            due a -> 2: a y/1
            end 2 -> hunt for a over
            queued -> a at x
            end 1 -> 3: a x/1, hunt for b over
            end 3 -> 4: a x/2
            end 4 -> nothing
            queued -> nobody
        "#]],
    );
}

#[test]
fn enqueue_sync_debounces_rapid_calls() {
    let mut row = None;
    for number in 0..100 {
        let now = number * MILLISECOND;
        row = Some(on_new_need(row, GIT, NeedOrigin::PeerOrRelay, HuntDelays::default(), now));
    }
    assert_eq!(row, Some(ScheduleRow::first(500 * MILLISECOND)), "one row, due as the first of them says");
    let ended = on_hunt_ended(
        &row.unwrap_or(ScheduleRow::first(0)),
        HuntMark { next: 500 * MILLISECOND, joined: 0 },
        false,
        GIT,
        0,
        SECOND,
        0,
    );
    assert_eq!(ended, None, "and it goes when nothing is pending");
}
