//! A group's row in the schedule, from its first need until nothing is pending.
//!
//! A row is made by the first need, brought forward by further needs and by people who ask, and moved on by the end of
//! each hunt. While a hunt runs, the row keeps the time at which it was due. A person who asks meanwhile sets a new time;
//! a need that joins meanwhile is counted, and says when another hunt is wanted. The end of the hunt compares both with
//! what the row said when it began ([`HuntMark`]), and moves the row on only if nothing has changed. A group without any
//! source rests until there is one. The functions here are pure: the caller reads the row and writes the answer in one
//! transaction.

use super::Nanoseconds;
use super::backoff::{BackoffPolicy, HuntDelays, NeedOrigin, backoff, first_delay, shortened};

/// What is remembered of a group between hunts. A group without a row has nothing pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleRow {
    /// How many hunts in a row left something unmet; it stays at its greatest value rather than wrap.
    pub attempts: u32,
    /// When the latest of those hunts began.
    pub last: Option<Nanoseconds>,
    /// When the group is hunted next; in the past while it is being hunted, [`NEVER`] while nobody can be asked.
    pub next: Nanoseconds,
    /// When another hunt is wanted, for needs that joined while one was due or under way.
    pub again: Option<Nanoseconds>,
    /// How many needs joined in that way; it starts again at zero rather than stop.
    pub joined: u32,
}

/// The time of a group that rests until a source appears.
pub const NEVER: Nanoseconds = Nanoseconds::MAX;

/// What the row of a group said when its hunt began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HuntMark {
    pub next: Nanoseconds,
    pub joined: u32,
}

impl ScheduleRow {
    /// The row of a group that is to be hunted for the first time.
    pub fn first(next: Nanoseconds) -> ScheduleRow {
        ScheduleRow { attempts: 0, last: None, next, again: None, joined: 0 }
    }

    /// What a hunt that begins now compares with at its end.
    pub fn mark(&self) -> HuntMark {
        HuntMark { next: self.next, joined: self.joined }
    }
}

/// The row after one more need has joined the group.
///
/// The next hunt may come sooner for it, never later, and the attempts start again: what was not there for the old
/// needs may be there for the new one. Not so for content, whose needs are all the same bytes: there a stranger who
/// repeats a reference could defeat the backoff.
///
/// A row that is due already stays as due as it was, and is perhaps being hunted. That hunt may have asked everywhere
/// before this need came: another one is wanted, after the delay that this need has by itself.
pub fn on_new_need(
    row: Option<ScheduleRow>,
    rhythm: BackoffPolicy,
    origin: NeedOrigin,
    delays: HuntDelays,
    now: Nanoseconds,
) -> ScheduleRow {
    let wanted = now.saturating_add(first_delay(rhythm, origin, delays));
    match (row, rhythm) {
        (None, BackoffPolicy::Content | BackoffPolicy::Git | BackoffPolicy::Space) => ScheduleRow::first(wanted),
        (Some(row), BackoffPolicy::Content) => row,
        (Some(row), BackoffPolicy::Git | BackoffPolicy::Space) if row.next <= now => ScheduleRow {
            attempts: 0,
            again: Some(row.again.map_or(wanted, |again| again.min(wanted))),
            joined: row.joined.wrapping_add(1),
            ..row
        },
        (Some(row), BackoffPolicy::Git | BackoffPolicy::Space) => {
            ScheduleRow { attempts: 0, next: row.next.min(wanted), ..row }
        }
    }
}

/// The row after a person has asked for a hunt now. The attempts are kept: nothing new is known about the sources.
pub fn on_retry(row: ScheduleRow, now: Nanoseconds) -> ScheduleRow {
    ScheduleRow { next: now, ..row }
}

/// The row of a group for which nobody can be asked. If it has changed since it was looked at, it is looked at again.
pub fn on_no_source(row: ScheduleRow, mark: HuntMark) -> ScheduleRow {
    if row.mark() == mark { ScheduleRow { next: NEVER, again: None, ..row } } else { row }
}

/// The row of a group after somebody has appeared who can be asked for it. One that is due may be about to rest, or its hunt
/// may have looked before: it is looked at again.
pub fn on_source(row: ScheduleRow, now: Nanoseconds) -> ScheduleRow {
    match row.next {
        NEVER => ScheduleRow { next: now, ..row },
        due if due <= now => ScheduleRow { again: Some(now), joined: row.joined.wrapping_add(1), ..row },
        _ => row,
    }
}

/// The row after a hunt that found it as `mark` says and began at `attempted_at` has ended, or `None` if nothing is
/// pending and the group leaves the schedule.
///
/// If somebody has set another time during the hunt, or a need has joined, that time stands and the hunt counts as no
/// attempt.
pub fn on_hunt_ended(
    row: &ScheduleRow,
    mark: HuntMark,
    pending: bool,
    rhythm: BackoffPolicy,
    attempted_at: Nanoseconds,
    now: Nanoseconds,
    jitter_permille: u16,
) -> Option<ScheduleRow> {
    if !pending {
        return None;
    }
    if row.next != mark.next {
        return Some(ScheduleRow { next: row.next.max(now), ..*row });
    }
    if let Some(again) = row.again
        && row.joined != mark.joined
    {
        return Some(ScheduleRow { next: again.max(now), again: None, ..*row });
    }
    let attempts = row.attempts.saturating_add(1);
    let rest = shortened(backoff(rhythm, attempts), jitter_permille);
    Some(ScheduleRow { attempts, last: Some(attempted_at), next: now.saturating_add(rest), again: None, ..*row })
}

#[cfg(test)]
mod tests {
    use super::super::SECOND;
    use super::*;
    use expect_test::{Expect, expect};

    /// Tells a story of `time:happening` words, times in seconds, and compares the row after each.
    fn check(rhythm: BackoffPolicy, story: &str, expected: Expect) {
        let mut row: Option<ScheduleRow> = None;
        let mut began: Option<(HuntMark, Nanoseconds)> = None;
        let mut lines = String::new();
        for word in story.split_whitespace() {
            let (seconds, happening) = word.split_once(':').unwrap_or(("0", word));
            let now = seconds.parse::<Nanoseconds>().unwrap_or_default() * SECOND;
            let (mark, attempted_at) = began.unwrap_or_default();
            let ended = |row: &ScheduleRow, pending| on_hunt_ended(row, mark, pending, rhythm, attempted_at, now, 0);
            row = match happening {
                "peer" => Some(on_new_need(row, rhythm, NeedOrigin::PeerOrRelay, HuntDelays::default(), now)),
                "local" => Some(on_new_need(row, rhythm, NeedOrigin::LocalUser, HuntDelays::default(), now)),
                "retry" => row.map(|row| on_retry(row, now)),
                "end" => row.and_then(|row| ended(&row, true)),
                "met" => row.and_then(|row| ended(&row, false)),
                "nobody" => row.map(|row| on_no_source(row, mark)),
                "source" => row.map(|row| on_source(row, now)),
                _hunt => {
                    began = row.map(|row| (row.mark(), now));
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
        let next = if row.next == NEVER { "never".to_owned() } else { seconds(row.next).to_string() };
        let again = row.again.map_or(String::new(), |at| format!(", again {}", seconds(at)));
        format!("{} attempts, last {last}, next {next}{again}", row.attempts)
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
                2:local -> 0 attempts, last never, next 1.5, again 182
                2:peer -> 0 attempts, last never, next 1.5, again 2.5
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
                3:peer -> 0 attempts, last never, next 0.5, again 3.5
                9:end -> 0 attempts, last never, next 9
                10:end -> 1 attempts, last 9, next 30
            "#]],
        );
    }

    #[test]
    fn a_need_during_the_hunt_keeps_its_own_delay() {
        check(
            BackoffPolicy::Git,
            "0:peer 1:hunt 3:local 9:end 183:hunt 184:end",
            expect![[r#"
                0:peer -> 0 attempts, last never, next 0.5
                3:local -> 0 attempts, last never, next 0.5, again 183
                9:end -> 0 attempts, last never, next 183
                184:end -> 1 attempts, last 183, next 204
            "#]],
        );
    }

    #[test]
    fn a_need_that_joins_before_the_hunt_begins_is_asked_for_by_it() {
        check(
            BackoffPolicy::Git,
            "0:peer 3:local 4:hunt 9:end 10:peer 11:hunt 12:peer 13:local 14:end",
            expect![[r#"
                0:peer -> 0 attempts, last never, next 0.5
                3:local -> 0 attempts, last never, next 0.5, again 183
                9:end -> 1 attempts, last 4, next 29
                10:peer -> 0 attempts, last 4, next 10.5
                12:peer -> 0 attempts, last 4, next 10.5, again 12.5
                13:local -> 0 attempts, last 4, next 10.5, again 12.5
                14:end -> 0 attempts, last 4, next 14
            "#]],
        );
    }

    #[test]
    fn a_group_without_a_source_rests_until_there_is_one_or_somebody_wants_it() {
        check(
            BackoffPolicy::Git,
            "0:peer 1:hunt 1:nobody 9:source 9:hunt 9:nobody 20:peer 30:source 30:hunt 31:peer 32:nobody 40:hunt \
             40:nobody 50:retry",
            expect![[r#"
                0:peer -> 0 attempts, last never, next 0.5
                1:nobody -> 0 attempts, last never, next never
                9:source -> 0 attempts, last never, next 9
                9:nobody -> 0 attempts, last never, next never
                20:peer -> 0 attempts, last never, next 20.5
                30:source -> 0 attempts, last never, next 20.5, again 30
                31:peer -> 0 attempts, last never, next 20.5, again 30
                32:nobody -> 0 attempts, last never, next 20.5, again 30
                40:nobody -> 0 attempts, last never, next never
                50:retry -> 0 attempts, last never, next 50
            "#]],
        );
    }

    #[test]
    fn a_source_that_appears_while_nobody_is_found_is_not_overlooked() {
        check(
            BackoffPolicy::Git,
            "0:peer 1:hunt 2:source 3:nobody 4:hunt 5:source 6:end 6:hunt 7:end",
            expect![[r#"
                0:peer -> 0 attempts, last never, next 0.5
                2:source -> 0 attempts, last never, next 0.5, again 2
                3:nobody -> 0 attempts, last never, next 0.5, again 2
                5:source -> 0 attempts, last never, next 0.5, again 5
                6:end -> 0 attempts, last never, next 6
                7:end -> 1 attempts, last 6, next 27
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
        let row = ScheduleRow { attempts: u32::MAX, ..ScheduleRow::first(Nanoseconds::MAX) };
        let ended = on_hunt_ended(&row, row.mark(), true, BackoffPolicy::Git, 0, Nanoseconds::MAX, 0);
        assert_eq!(ended, Some(ScheduleRow { last: Some(0), ..row }));
    }
}
