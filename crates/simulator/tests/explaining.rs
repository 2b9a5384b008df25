//! What is told of events that wait or do not count, as short texts.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use anteroom_simulator::fixture::play;
use expect_test::{Expect, expect};

fn check(text: &str, want: Expect) {
    want.assert_eq(&play(text));
}

#[test]
fn what_is_waited_for_is_listed_with_those_who_wait() {
    check(
        "t: thread | a: say t hi | b: say t ho | e: edit a hey | arrive a b e | held 9 | held 1 | arrive t | held 9",
        expect![[r#"
            3 held
            for event:a: e
            for event:t: a b
            for content: root
            3 held
            for event:a: e
            and more
            0 held
            for content: root
            for content: e
            for content: a
            for content: b
            for content: t
            t: applied missing
            a: applied missing
            b: applied missing
            e: applied missing
            thread t [a shows e: absent, b shows b: absent]
            references: [(1, false), (1, false), (1, false), (1, false), (1, false)]
        "#]],
    );
}

#[test]
fn why_something_does_not_count_is_told_up_to_what_ended_it() {
    check(
        "t: thread by root | g: grant cid member by ann | a: say t hi by cid | l: replace bob reader by root | b: say t ho by bob | r: remove ann by root at 4 | arrive t g a l b r | explain t g a b",
        expect![[r#"
            explain t: counts
            explain g: ann was ended by r
            explain a: g does not count: ann was ended by r
            explain b: bob was lessened to reader by l
            t: applied missing
            g: applied processed hidden
            a: applied missing hidden
            l: applied processed
            b: applied missing hidden
            r: applied processed
            thread t []
            references: [(1, false), (1, false), (1, false), (1, false)]
        "#]],
    );
}
