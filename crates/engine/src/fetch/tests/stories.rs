//! Hunts told as short stories, in the language of the [teller](super::teller).

use super::teller::Teller;
use expect_test::{Expect, expect};

pub(super) fn check(story: &str, expected: Expect) {
    let mut teller = Teller::default();
    for sentence in story.split('|') {
        teller.tell(sentence.trim());
    }
    expected.assert_eq(&teller.transcript);
}

#[test]
fn a_hunt_asks_each_source_once_and_one_at_a_time() {
    check(
        "a: x/1 x/2 x/1 y/1 | due a | end 1 | end 2 | end 3",
        expect![[r#"
            due a -> 1: a x/1
            end 1 -> 2: a x/2
            end 2 -> 3: a y/1
            end 3 -> hunt for a over
        "#]],
    );
}

#[test]
fn a_hunt_stops_as_soon_as_nothing_is_unmet() {
    check(
        "a: x/1 x/2 | due a | met a | end 1",
        expect![[r#"
            due a -> 1: a x/1
            end 1 -> hunt for a over
        "#]],
    );
}

#[test]
fn a_hunt_for_nothing_or_nowhere_ends_at_once() {
    check(
        "a: x/1 | met a | due a | b: | due b",
        expect![[r#"
            due a -> hunt for a over
            due b -> hunt for b over
        "#]],
    );
}

#[test]
fn a_group_is_hunted_once_at_a_time() {
    check(
        "a: x/1 y/1 | due a | due a | end 1 | due a | end 2 | due a",
        expect![[r#"
            due a -> 1: a x/1
            due a -> nothing
            end 1 -> 2: a y/1
            due a -> nothing
            end 2 -> hunt for a over
            due a -> 3: a x/1
        "#]],
    );
}

#[test]
fn late_and_repeated_ends_change_nothing() {
    check(
        "a: x/1 x/2 x/3 | due a | end 1 | end 1 | end 2 | end 1",
        expect![[r#"
            due a -> 1: a x/1
            end 1 -> 2: a x/2
            end 1 -> nothing
            end 2 -> 3: a x/3
            end 1 -> nothing
        "#]],
    );
}

#[test]
fn free_domains_come_first_and_busy_ones_are_left_to_their_queue() {
    check(
        "limits 1 30 | a: x/1 | b: x/2 y/1 x/3 | due a | due b | end 2 | queued | end 1 | end 3 | end 4 | queued",
        expect![[r#"
            due a -> 1: a x/1
            due b -> 2: b y/1
            end 2 -> hunt for b over
            queued -> b at x
            end 1 -> 3: b x/2, hunt for a over
            end 3 -> 4: b x/3
            end 4 -> nothing
            queued -> nobody
        "#]],
    );
}

#[test]
fn a_full_window_frees_its_slots_one_by_one() {
    check(
        "limits 5 2 | a: x/1 x/2 x/3 x/4 | due a | at 10 | end 1 | wake | at 20 | end 2 | wake | at 59 | at 60 | end 3 \
         | wake | at 70 | end 4 | wake | queued",
        expect![[r#"
            due a -> 1: a x/1
            at 10 -> nothing
            end 1 -> 2: a x/2
            wake -> never
            at 20 -> nothing
            end 2 -> hunt for a over
            wake -> 60
            at 59 -> nothing
            at 60 -> 3: a x/3
            end 3 -> nothing
            wake -> 70
            at 70 -> 4: a x/4
            end 4 -> nothing
            wake -> 120
            queued -> a at x
        "#]],
    );
}

#[test]
fn what_the_hunt_tried_is_not_tried_again_by_the_queue() {
    check(
        "limits 1 1 | a: x/1 x/2 | due a | end 1 | queued | at 60 | end 2 | at 120 | queued",
        expect![[r#"
            due a -> 1: a x/1
            end 1 -> hunt for a over
            queued -> a at x
            at 60 -> 2: a x/2
            end 2 -> nothing
            at 120 -> nothing
            queued -> nobody
        "#]],
    );
}

#[test]
fn queued_groups_take_turns() {
    check(
        "limits 1 30 | z: x/9 | a: x/1 x/2 | b: x/3 x/4 | due z | due a | due b \
         | end 1 | end 2 | end 3 | end 4 | end 5",
        expect![[r#"
            due z -> 1: z x/9
            due a -> hunt for a over
            due b -> hunt for b over
            end 1 -> 2: a x/1, hunt for z over
            end 2 -> 3: b x/3
            end 3 -> 4: a x/2
            end 4 -> 5: b x/4
            end 5 -> nothing
        "#]],
    );
}

#[test]
fn a_queued_group_has_one_request_per_domain_in_flight() {
    check(
        "limits 2 30 | y: x/8 | z: x/9 | a: x/1 x/2 | due y | due z | due a | end 1 | end 2 | end 3 | end 4",
        expect![[r#"
            due y -> 1: y x/8
            due z -> 2: z x/9
            due a -> hunt for a over
            end 1 -> 3: a x/1, hunt for y over
            end 2 -> hunt for z over
            end 3 -> 4: a x/2
            end 4 -> nothing
        "#]],
    );
}

#[test]
fn a_group_without_needs_leaves_the_queue_and_the_next_is_taken_at_once() {
    check(
        "limits 1 30 | z: x/9 | a: x/1 | b: x/2 | due z | due a | due b | met a | end 1 | queued",
        expect![[r#"
            due z -> 1: z x/9
            due a -> hunt for a over
            due b -> hunt for b over
            end 1 -> 2: b x/2, hunt for z over
            queued -> b at x
        "#]],
    );
}

#[test]
fn queued_groups_come_before_the_hunt_that_frees_the_domain() {
    check(
        "limits 1 30 | a: x/1 x/2 | b: x/3 | due a | due b | end 1 | end 2 | end 3",
        expect![[r#"
            due a -> 1: a x/1
            due b -> hunt for b over
            end 1 -> 2: b x/3, hunt for a over
            end 2 -> 3: a x/2
            end 3 -> nothing
        "#]],
    );
}

#[test]
fn a_new_hunt_leaves_a_domain_to_the_queue_that_asks_there_and_repeats_nothing() {
    check(
        "limits 2 2 | a: x/1 x/2 x/3 | y: x/8 | due y | due a | end 2 | at 60 | due a | end 3 | end 4 | queued \
         | at 120 | queued",
        expect![[r#"
            due y -> 1: y x/8
            due a -> 2: a x/1
            end 2 -> hunt for a over
            at 60 -> 3: a x/2
            due a -> hunt for a over
            end 3 -> 4: a x/3
            end 4 -> nothing
            queued -> a at x
            at 120 -> nothing
            queued -> nobody
        "#]],
    );
}

#[test]
fn needs_that_come_back_are_asked_for_everywhere_again() {
    check(
        "limits 1 1 | a: x/1 x/2 | due a | met a | end 1 | need a | due a | at 60 | end 2 | at 120",
        expect![[r#"
            due a -> 1: a x/1
            end 1 -> hunt for a over
            due a -> hunt for a over
            at 60 -> 2: a x/1
            end 2 -> nothing
            at 120 -> 3: a x/2
        "#]],
    );
}

#[test]
fn a_clock_that_was_set_back_delays_a_queue_by_one_window_only() {
    check(
        "limits 1 1 | a: x/1 x/2 | at 900 | due a | end 1 | wake | at 5 | wake | at 65",
        expect![[r#"
            at 900 -> nothing
            due a -> 1: a x/1
            end 1 -> hunt for a over
            wake -> 960
            at 5 -> nothing
            wake -> 65
            at 65 -> 2: a x/2
        "#]],
    );
}

#[test]
fn a_hunt_after_the_stay_begins_afresh() {
    check(
        "limits 1 1 | a: x/1 | due a | end 1 | at 60 | due a | end 2",
        expect![[r#"
            due a -> 1: a x/1
            end 1 -> hunt for a over
            at 60 -> nothing
            due a -> 2: a x/1
            end 2 -> hunt for a over
        "#]],
    );
}

#[test]
fn idle_domains_are_forgotten_when_their_window_is_empty() {
    check(
        "a: x/1 y/1 | due a | end 1 | end 2 | domains | at 59 | domains | at 60 | domains",
        expect![[r#"
            due a -> 1: a x/1
            end 1 -> 2: a y/1
            end 2 -> hunt for a over
            domains -> 2
            at 59 -> nothing
            domains -> 2
            at 60 -> nothing
            domains -> 0
        "#]],
    );
}

#[test]
fn a_long_list_of_sources_is_cut() {
    let urls: Vec<String> = (0..70).map(|number| format!("d{number}/1")).collect();
    let ends: Vec<String> = (1..=64).map(|ticket| format!("end {ticket}")).collect();
    let mut teller = Teller::default();
    for sentence in [format!("a: {}", urls.join(" ")), "due a".to_owned()].iter().chain(&ends) {
        teller.tell(sentence);
    }
    let last_line = teller.transcript.lines().last().unwrap_or_default();
    expect!["end 64 -> hunt for a over"].assert_eq(last_line);
}

#[test]
fn requests_that_nobody_could_begin_are_counted_from_when_they_begin() {
    check(
        "limits 5 2 | a: x/1 | b: x/2 | c: x/3 | occupied | due a | due b | due c | wake | at 70 | idle | at 75 | wake | \
         at 134 | at 135",
        expect![[r#"
            due a -> nothing
            due b -> nothing
            due c -> hunt for c over
            wake -> 60
            at 70 -> nothing
            at 75 -> 1: a x/1, 2: b x/2
            wake -> 135
            at 134 -> nothing
            at 135 -> 3: c x/3
        "#]],
    );
}
