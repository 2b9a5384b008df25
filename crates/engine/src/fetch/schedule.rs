//! A group's row in the schedule, from its first need until nothing is pending.
//!
//! A row is made by the first need, brought forward by further needs and by people who ask, and moved on by the end of
//! each hunt. While a hunt runs, the row keeps the time at which it was due; whoever wants another hunt meanwhile sets
//! a new time. The end of the hunt tells the two apart by comparing: it moves the row on only if the time is still the
//! one it set out with. The functions here are pure: the caller reads the row and writes the answer in one transaction.

use super::Nanoseconds;
use super::backoff::{BackoffPolicy, NeedOrigin, backoff, first_delay, shortened};

/// What is remembered of a group between hunts. A group without a row has nothing pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleRow {
    /// How many hunts in a row left something unmet; it stays at its greatest value rather than wrap.
    pub attempts: u32,
    /// When the latest of those hunts began.
    pub last: Option<Nanoseconds>,
    /// When the group is hunted next; in the past while it is being hunted.
    pub next: Nanoseconds,
}

/// The row after one more need has joined the group.
///
/// The next hunt may come sooner for it, never later, and the attempts start again: what was not there for the old
/// needs may be there for the new one. Not so for content, whose needs are all the same bytes: there a stranger who
/// repeats a reference could defeat the backoff.
///
/// A row that is due already is set to now. It stays as due as it was, and a hunt that is under way, and may have asked
/// everywhere before this need came, finds at its end that another one is wanted.
pub fn on_new_need(
    row: Option<ScheduleRow>,
    rhythm: BackoffPolicy,
    origin: NeedOrigin,
    now: Nanoseconds,
) -> ScheduleRow {
    let wanted = now.saturating_add(first_delay(rhythm, origin));
    match (row, rhythm) {
        (None, BackoffPolicy::Content | BackoffPolicy::Git | BackoffPolicy::Space) => {
            ScheduleRow { attempts: 0, last: None, next: wanted }
        }
        (Some(row), BackoffPolicy::Content) => row,
        (Some(row), BackoffPolicy::Git | BackoffPolicy::Space) => {
            ScheduleRow { attempts: 0, last: row.last, next: row.next.clamp(now, wanted) }
        }
    }
}

/// The row after a person has asked for a hunt now. The attempts are kept: nothing new is known about the sources.
pub fn on_retry(row: ScheduleRow, now: Nanoseconds) -> ScheduleRow {
    ScheduleRow { next: now, ..row }
}

/// The row after a hunt that set out at `expected_next` and began at `attempted_at` has ended, or `None` if nothing is
/// pending and the group leaves the schedule.
///
/// If somebody has set another time during the hunt, that time stands and the hunt counts as no attempt.
pub fn on_hunt_ended(
    row: &ScheduleRow,
    expected_next: Nanoseconds,
    pending: bool,
    rhythm: BackoffPolicy,
    attempted_at: Nanoseconds,
    now: Nanoseconds,
    jitter_permille: u16,
) -> Option<ScheduleRow> {
    if !pending {
        return None;
    }
    if row.next != expected_next {
        return Some(ScheduleRow { next: row.next.max(now), ..*row });
    }
    let attempts = row.attempts.saturating_add(1);
    let rest = shortened(backoff(rhythm, attempts), jitter_permille);
    Some(ScheduleRow { attempts, last: Some(attempted_at), next: now.saturating_add(rest) })
}

#[cfg(test)]
mod tests {
    use super::super::SECOND;
    use super::*;
    use expect_test::{Expect, expect};

    /// Tells a story of `time:happening` words, times in seconds, and compares the row after each.
    fn check(rhythm: BackoffPolicy, story: &str, expected: Expect) {
        let mut row: Option<ScheduleRow> = None;
        let mut began: Option<(Nanoseconds, Nanoseconds)> = None;
        let mut lines = String::new();
        for word in story.split_whitespace() {
            let (seconds, happening) = word.split_once(':').unwrap_or(("0", word));
            let now = seconds.parse::<Nanoseconds>().unwrap_or_default() * SECOND;
            let (expected_next, attempted_at) = began.unwrap_or_default();
            let ended =
                |row: &ScheduleRow, pending| on_hunt_ended(row, expected_next, pending, rhythm, attempted_at, now, 0);
            row = match happening {
                "peer" => Some(on_new_need(row, rhythm, NeedOrigin::PeerOrRelay, now)),
                "local" => Some(on_new_need(row, rhythm, NeedOrigin::LocalUser, now)),
                "retry" => row.map(|row| on_retry(row, now)),
                "end" => row.and_then(|row| ended(&row, true)),
                "met" => row.and_then(|row| ended(&row, false)),
                _hunt => {
                    began = row.map(|row| (row.next, now));
                    continue;
                }
            };
            lines += &format!("{word} -> {}\n", row.map_or("no row".to_owned(), show));
        }
        expected.assert_eq(&lines);
    }

    fn show(row: ScheduleRow) -> String {
        let seconds = |at: Nanoseconds| at as f64 / SECOND as f64;
        let last = row.last.map_or("never".to_owned(), |at| seconds(at).to_string());
        format!("{} attempts, last {last}, next {}", row.attempts, seconds(row.next))
    }

    #[test]
    fn hunts_that_leave_something_rest_ever_longer() {
        check(
            BackoffPolicy::Git,
            "0:peer 1:hunt 5:end 25:hunt 26:end 66:hunt 70:met",
            expect![[r#"
                0:peer -> 0 attempts, last never, next 0.5
                5:end -> 1 attempts, last 1, next 25
                26:end -> 2 attempts, last 25, next 66
                70:met -> no row
            "#]],
        );
    }

    #[test]
    fn a_new_need_brings_the_hunt_forward_but_never_puts_it_off() {
        check(
            BackoffPolicy::Space,
            "0:local 1:peer 2:local 2:peer",
            expect![[r#"
                0:local -> 0 attempts, last never, next 180
                1:peer -> 0 attempts, last never, next 1.5
                2:local -> 0 attempts, last never, next 2
                2:peer -> 0 attempts, last never, next 2
            "#]],
        );
    }

    #[test]
    fn a_new_need_starts_the_attempts_again() {
        check(
            BackoffPolicy::Git,
            "0:peer 1:hunt 1:end 30:hunt 30:end 31:peer",
            expect![[r#"
                0:peer -> 0 attempts, last never, next 0.5
                1:end -> 1 attempts, last 1, next 21
                30:end -> 2 attempts, last 30, next 70
                31:peer -> 0 attempts, last 30, next 31.5
            "#]],
        );
    }

    #[test]
    fn content_keeps_its_backoff_whoever_repeats_the_need() {
        check(
            BackoffPolicy::Content,
            "0:peer 0:hunt 1:end 2:peer 3:local",
            expect![[r#"
                0:peer -> 0 attempts, last never, next 0
                1:end -> 1 attempts, last 0, next 61
                2:peer -> 1 attempts, last 0, next 61
                3:local -> 1 attempts, last 0, next 61
            "#]],
        );
    }

    #[test]
    fn a_need_during_the_hunt_is_neither_overwritten_nor_counted_against_it() {
        check(
            BackoffPolicy::Git,
            "0:peer 1:hunt 3:peer 9:end 9:hunt 10:end",
            expect![[r#"
                0:peer -> 0 attempts, last never, next 0.5
                3:peer -> 0 attempts, last never, next 3
                9:end -> 0 attempts, last never, next 9
                10:end -> 1 attempts, last 9, next 30
            "#]],
        );
    }

    #[test]
    fn a_person_who_asks_is_served_now_and_the_attempts_are_kept() {
        check(
            BackoffPolicy::Content,
            "0:peer 0:hunt 1:end 5:retry 5:hunt 6:retry 8:end",
            expect![[r#"
                0:peer -> 0 attempts, last never, next 0
                1:end -> 1 attempts, last 0, next 61
                5:retry -> 1 attempts, last 0, next 5
                6:retry -> 1 attempts, last 0, next 6
                8:end -> 1 attempts, last 0, next 8
            "#]],
        );
    }

    #[test]
    fn attempts_and_times_stay_at_their_greatest_value() {
        let row = ScheduleRow { attempts: u32::MAX, last: None, next: Nanoseconds::MAX };
        let ended = on_hunt_ended(&row, Nanoseconds::MAX, true, BackoffPolicy::Git, 0, Nanoseconds::MAX, 0);
        assert_eq!(ended, Some(ScheduleRow { attempts: u32::MAX, last: Some(0), next: Nanoseconds::MAX }));
    }
}
