//! Flows as short texts: what arrives in which order, and what is shown then.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use anteroom_simulator::fixture::{play, play_with};
use engine::policy::Policy;
use expect_test::{Expect, expect};

fn check(text: &str, want: Expect) {
    want.assert_eq(&play(text));
}

#[test]
fn normal_arrival() {
    check(
        "t: thread | a: say t hi | arrive t a | content t a",
        expect![[r#"
        content t: Stored
        content a: Stored
        t: applied processed
        a: applied processed
        thread t [a shows a: {"text":"hi"}]
        references: [(1, false), (1, true), (1, true)]
    "#]],
    );
}

#[test]
fn events_without_content_are_processed_at_once() {
    check(
        "t: thread | a: say t hi | d: delete a | arrive t a d",
        expect![[r#"
        t: applied missing
        a: applied deleted
        d: applied processed
        thread t [a shows a: deleted by d]
        references: [(1, false), (1, false)]
    "#]],
    );
}

#[test]
fn event_before_content_and_needs_last() {
    check(
        "t: thread | a: say t hi | b: edit a hey | arrive b a t | content b",
        expect![[r#"
        content b: Stored
        t: applied missing
        a: applied missing
        b: applied processed
        thread t [a shows b: {"text":"hey"}]
        references: [(1, false), (1, false), (1, false), (1, true)]
    "#]],
    );
}

#[test]
fn content_before_its_event_is_not_wanted_yet() {
    check(
        "t: thread | a: say t hi | content a | arrive t a | content a a",
        expect![[r#"
        content a: Unwanted
        content a: Stored
        content a: Known
        t: applied missing
        a: applied processed
        thread t [a shows a: {"text":"hi"}]
        references: [(1, false), (1, false), (1, true)]
    "#]],
    );
}

#[test]
fn delete_before_target() {
    check(
        "t: thread | a: say t hi | d: delete a | arrive t d a | content a",
        expect![[r#"
        content a: Unwanted
        t: applied missing
        a: applied deleted
        d: applied processed
        thread t [a shows a: deleted by d]
        references: [(1, false), (1, false)]
    "#]],
    );
}

#[test]
fn delete_while_missing() {
    check(
        "t: thread | a: say t hi | d: delete a | arrive t a d | content a",
        expect![[r#"
        content a: Unwanted
        t: applied missing
        a: applied deleted
        d: applied processed
        thread t [a shows a: deleted by d]
        references: [(1, false), (1, false)]
    "#]],
    );
}

#[test]
fn a_delete_covers_edits_before_and_after() {
    check(
        "t: thread | a: say t hi | b: edit a hey | d: delete a | c: edit a hello | arrive t a b d c | content a b c",
        expect![[r#"
            content a: Unwanted
            content b: Unwanted
            content c: Unwanted
            t: applied missing
            a: applied deleted
            b: applied deleted
            d: applied processed
            c: applied deleted
            thread t [a shows c: deleted by d]
            references: [(1, false), (1, false)]
        "#]],
    );
}

#[test]
fn several_events_with_one_content() {
    check(
        "t: thread | a: say t same | b: say t same | arrive t a b | content a | d: delete a | arrive d",
        expect![[r#"
            content a: Stored
            t: applied missing
            a: applied deleted
            b: applied processed
            d: applied processed
            thread t [a shows a: deleted by d, b shows b: {"text":"same"}]
            references: [(1, false), (1, false), (1, true)]
        "#]],
    );
}

#[test]
fn the_last_reference_lets_the_content_go_after_its_grace() {
    check(
        "t: thread | a: say t same | b: say t same | d: delete a | e: delete b | arrive t a b | content a | arrive d e | collect | later 90000 | collect",
        expect![[r#"
            content a: Stored
            t: applied missing
            a: applied deleted
            b: applied deleted
            d: applied processed
            e: applied processed
            thread t [a shows a: deleted by d, b shows b: deleted by e]
            references: [(1, false), (1, false)]
        "#]],
    );
}

#[test]
fn invalid_content_and_its_delete() {
    check(
        "t: thread | a: raw t nonsense | arrive t a | content a | d: delete a | arrive d",
        expect![[r#"
        content a: Stored
        t: applied missing
        a: applied deleted
        d: applied processed
        thread t [a shows a: deleted by d]
        references: [(0, true), (1, false), (1, false)]
    "#]],
    );
}

#[test]
fn prune_then_delete_and_delete_then_prune() {
    check(
        "t: thread | a: say t one | b: say t two | d: delete a | e: delete b | arrive t a b | content a b | prune a | arrive d e | prune b",
        expect![[r#"
            content a: Stored
            content b: Stored
            prune a: Dropped
            prune b: Nothing("deleted")
            t: applied missing
            a: applied deleted
            b: applied deleted
            d: applied processed
            e: applied processed
            thread t [a shows a: deleted by d, b shows b: deleted by e]
            references: [(0, true), (0, true), (1, false), (1, false)]
        "#]],
    );
}

#[test]
fn pruned_content_can_be_wanted_back() {
    check(
        "t: thread | a: say t hi | arrive t a | content a | prune a | want a | content a",
        expect![[r#"
        content a: Stored
        prune a: Dropped
        content a: Known
        t: applied missing
        a: applied processed
        thread t [a shows a: {"text":"hi"}]
        references: [(1, false), (1, false), (1, true)]
    "#]],
    );
}

#[test]
fn two_deletes_of_one_target_the_least_counts() {
    check(
        "t: thread | a: say t hi | d: delete a | e: delete a | arrive t a e d",
        expect![[r#"
        t: applied missing
        a: applied deleted
        d: applied processed
        e: applied processed
        thread t [a shows a: deleted by d]
        references: [(1, false), (1, false)]
    "#]],
    );
}

#[test]
fn somebody_else_s_delete_does_nothing_unless_an_admin_s() {
    check(
        "t: thread | a: say t hi by ann | d: delete a by bob | b: say t ho by bob | e: delete b by ann | arrive t a d b e | content a b",
        expect![[r#"
            content a: Stored
            content b: Unwanted
            t: applied missing
            a: applied processed
            d: applied processed
            b: applied deleted
            e: applied processed
            thread t [a shows a: {"text":"hi"}, b shows b: deleted by e]
            references: [(1, false), (1, false), (1, true)]
        "#]],
    );
}

#[test]
fn what_a_removed_admin_did_afterwards_falls_and_what_stood_on_it() {
    check(
        "t: thread by root | g: grant cid member by ann | a: say t hi by cid | r: remove ann by root at 4 | arrive t g a | content a | arrive r",
        expect![[r#"
            content a: Stored
            t: applied missing
            g: applied processed hidden
            a: applied processed hidden
            r: applied processed
            thread t []
            references: [(1, false), (1, false), (1, true)]
        "#]],
    );
}

#[test]
fn a_removed_admin_s_delete_is_undone() {
    check(
        "t: thread by root | a: say t hi by bob | d: delete a by ann | r: remove ann by root at 4 | arrive t a | content a | arrive d r | content a",
        expect![[r#"
            content a: Stored
            content a: Known
            t: applied missing
            a: applied processed
            d: applied processed hidden
            r: applied processed
            thread t [a shows a: {"text":"hi"}]
            references: [(1, false), (1, false), (1, true)]
        "#]],
    );
}

#[test]
fn a_replacement_ends_only_what_the_new_role_lacks() {
    check(
        "t: thread by root | p: replace ann member by root | a: say t hi by ann | b: say t ho by bob | e: edit b changed by ann | arrive e b a p t | content a b e",
        expect![[r#"
            content a: Stored
            content b: Stored
            content e: Stored
            t: applied missing
            p: applied processed
            a: applied processed
            b: applied processed
            e: applied processed hidden
            thread t [a shows a: {"text":"hi"}, b shows b: {"text":"ho"}]
            references: [(1, false), (1, false), (1, true), (1, true), (1, true)]
        "#]],
    );
}

#[test]
fn the_greatest_version_shows_whatever_came_last() {
    check(
        "t: thread | a: say t 1 | b: edit a 2 | c: edit a 3 | arrive t a c b | content a b c",
        expect![[r#"
        content a: Stored
        content b: Stored
        content c: Stored
        t: applied missing
        a: applied processed
        b: applied processed
        c: applied processed
        thread t [a shows c: {"text":"3"}]
        references: [(1, false), (1, false), (1, true), (1, true), (1, true)]
    "#]],
    );
}

#[test]
fn reactions_replace_each_other_and_replies_count() {
    check(
        "t: thread | a: say t hi | x: react a + | y: react a ! | z: react a + by ann | u: unreact a by ann | r: reply t a yes | arrive r t u z y x a | content a",
        expect![[r#"
            content a: Stored
            t: applied missing
            a: applied processed
            x: applied missing
            y: applied missing
            z: applied missing
            u: applied processed
            r: applied missing
            thread t [a shows a: {"text":"hi"} +1 re1, r shows r: absent]
            references: [(1, false), (1, false), (1, false), (1, false), (1, true), (2, false)]
        "#]],
    );
}

#[test]
fn a_later_unfollow_wins_in_any_order() {
    check(
        "f: follow ann | u: unfollow ann | g: follow root | arrive u f g",
        expect![[r#"
        f: applied processed
        u: applied processed
        g: applied processed
        references: [(1, false)]
        bob follows root
    "#]],
    );
}

#[test]
fn needs_of_refused_events_are_refused() {
    check(
        "t: thread at 1 | a: say t hi | b: edit a hey | arrive b a t",
        expect![[r#"
        t: refused: a needed reference is not strictly earlier
        a: refused: it needs an event that was refused
        b: refused: it needs an event that was refused
        references: [(1, false)]
    "#]],
    );
}

#[test]
fn the_future_is_held() {
    check(
        "p: post soon at 1000400 | arrive p | later 90",
        expect![[r#"
        p: held missing
        references: [(1, false), (1, false)]
    "#]],
    );
}

#[test]
fn the_future_is_released_by_the_clock() {
    check(
        "p: post soon at 1000400 | arrive p | later 90 | later 20",
        expect![[r#"
        p: applied missing
        references: [(1, false), (1, false)]
    "#]],
    );
}

#[test]
fn a_wait_ends_and_the_event_may_come_again() {
    check(
        "t: thread | a: say t hi | arrive a | later 2592002 | arrive t a",
        expect![[r#"
        t: applied missing
        a: applied missing
        thread t [a shows a: absent]
        references: [(1, false), (1, false), (1, false)]
    "#]],
    );
}

#[test]
fn the_offender_s_own_go_first() {
    let policy = Policy { held_per_author_max: 2, ..Policy::default() };
    expect![[r#"
        t: not here
        a: not here
        b: held missing
        c: held missing
        x: held missing
    "#]]
    .assert_eq(&play_with(
        "t: thread | a: say t 1 | b: say t 2 | c: say t 3 | x: say t 4 by ann | arrive a b x c",
        policy,
    ));
}
