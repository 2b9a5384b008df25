//! A purge reaches everything it covers, whatever came last.

use anteroom_simulator::fixture::play;

#[test]
fn a_purge_reaches_edits_that_do_not_count_whatever_comes_last() {
    let made = "t: thread | a: say t hi | s: remove ann by root at 50 | r: remove bob by ann at 60 | \
                e: edit a SECRET at 70 | d: delete a by root at 80";
    let one = play(&format!("{made} | arrive t a r e | content t a e | arrive d s"));
    let other = play(&format!("{made} | arrive t a s r e | content t a e | arrive d"));
    let shown = |text: &str| text.lines().find(|line| line.starts_with("thread")).map(str::to_owned);
    assert_eq!(shown(&one), shown(&other));
    assert_eq!(shown(&one).as_deref(), Some("thread t [a shows e: deleted by d]"));
}
