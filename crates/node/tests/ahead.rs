//! What was written while the clock was set a year ahead, after it is right again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use anteroom_node::commands::{AdminCommand, AdminRequest, UserCommand};
use anteroom_node::jobs::{SettleAhead, Settled, Settlement, events_ahead};
use anteroom_node::node_commands::Arrive;
use common::{Home, NOW, edit, message, react};
use engine::reads::{Reads as _, SpaceReads as _};
use engine::rows::{Origin, Outcome};
use model::content::seal_content;
use model::crypto::content_hash;
use model::payload::MemberRole;
use model::{Blob, Envelope, EventId, Kind, Nanos, Reference, Role, Stamp};
use store::views::messages::ShownContent;

const YEAR: u64 = 365 * 24 * 3600 * Nanos::SECOND;
const AHEAD: Nanos = Nanos(NOW.0 + YEAR);
const BACK: Nanos = Nanos(NOW.0 + 3600 * Nanos::SECOND);

fn texts(home: &Home) -> Vec<String> {
    let db = home.core.store().snapshot().unwrap();
    let threads = db.recent_threads(db.space_no(&home.space).unwrap().unwrap(), (Nanos(u64::MAX), model::Seq(0)), 9);
    let thread = threads.unwrap()[0].1;
    let shown = |content: ShownContent| match content {
        ShownContent::Here(bytes) => {
            let text = String::from_utf8(bytes).unwrap();
            text.split('"').nth(3).map_or(text.clone(), str::to_owned)
        }
        other => format!("{other:?}"),
    };
    db.timeline(thread, Stamp::LAST, 99).unwrap().into_iter().map(|message| shown(message.content)).collect()
}

/// The kinds of what is ahead.
fn ahead(home: &Home) -> Vec<(EventId, Kind)> {
    let db = home.core.store().snapshot().unwrap();
    events_ahead(&db, BACK, 99).unwrap().into_iter().map(|event| (event.id, event.kind)).collect()
}

fn settle(home: &Home, id: EventId, how: Settlement) -> Settled {
    // Each a moment later than the one before.
    let now = BACK.plus(home.position());
    let log = || home.core.store().snapshot().unwrap().audit_log(u64::MAX, 99).unwrap();
    let before = log().len();
    let settled = home.core.ask(SettleAhead { id, how }, now).unwrap();
    let is_done = !matches!(settled, Settled::NotHere | Settled::Stays);
    assert!(!is_done || log().len() > before, "{settled:?} is not in the audit log");
    home.core.settle(now).unwrap();
    settled
}

/// A home in which bob wrote before, and carol was admitted and wrote while the clock was ahead.
fn home() -> (Home, EventId, EventId) {
    let home = Home::new();
    home.post("bob", "before");
    let early = home.core.ask(home.posting("bob", "too early"), AHEAD).unwrap().shown;
    let (user, role, random) = ("carol".to_owned(), Some(MemberRole::Member), Box::new([9; 32]));
    let what = AdminCommand::SetRole { space: home.space, user, role, random };
    home.core.ask(AdminRequest::by("a test", what), AHEAD).unwrap();
    let later = AHEAD.plus(3600 * Nanos::SECOND);
    let hers = home.core.ask(home.posting("carol", "I am new"), later).unwrap().shown;
    (home, early, hers)
}

#[test]
fn everything_that_was_stamped_ahead_can_be_changed_at_once() {
    let (home, early, hers) = home();
    let ask =
        |user: &str, command| home.core.ask(home.by(user, command), BACK).map(drop).map_err(|why| why.to_string());
    assert_eq!(ask("bob", edit(early)), Ok(()));
    assert_eq!(ask("bob", edit(early)), Ok(()), "and again");
    assert_eq!(ask("bob", react(hers)), Ok(()));
    assert_eq!(ask("bob", UserCommand::Unreact(message(hers))), Ok(()));
    assert_eq!(ask("carol", UserCommand::DeleteMessage(message(hers))), Ok(()));
    home.core.ask(home.posting("bob", "at the right time"), BACK).unwrap();
    assert_eq!(texts(&home)[..3], ["before", "at the right time", "edited"]);
    // Whoever was admitted then can be demoted, removed and admitted again.
    for role in [Some(MemberRole::Reader), None, Some(MemberRole::Admin)] {
        let (user, random) = ("carol".to_owned(), Box::new([9; 32]));
        let what = AdminCommand::SetRole { space: home.space, user, role, random };
        home.core.ask(AdminRequest::by("a test", what), BACK).unwrap();
    }
    home.core.settle(BACK).unwrap();
    assert_eq!(home.core.store().verify(BACK).unwrap().problems, Vec::<String>::new());
}

#[test]
fn whoever_is_removed_or_gets_another_role_keeps_what_they_wrote_ahead() {
    for role in [None, Some(MemberRole::Reader)] {
        let (home, ..) = home();
        let (user, random) = ("carol".to_owned(), Box::new([9; 32]));
        let what = AdminCommand::SetRole { space: home.space, user, role, random };
        home.core.ask(AdminRequest::by("a test", what), BACK).unwrap();
        home.core.settle(BACK).unwrap();
        assert_eq!(texts(&home), ["before", "too early", "I am new"], "{role:?}");
        assert!(home.core.ask(home.posting("carol", "after it"), AHEAD.plus(2 * 3600 * Nanos::SECOND)).is_err());
    }
}

#[test]
fn what_an_author_wrote_ahead_does_not_take_what_they_write_now_with_it() {
    let (home, ..) = home();
    let lobby = home.core.ask(home.posting("bob", "now"), BACK).unwrap().seq;
    let at = home.core.store().snapshot().unwrap().event(lobby).unwrap().unwrap().meta.unwrap().at;
    assert!(at < Nanos(BACK.0 + Nanos::SECOND));
}

/// Arrives as from another node: an edit of bob's at a time.
fn edit_at(home: &Home, target: EventId, at: Nanos) -> Outcome {
    let store = home.core.store();
    let db = store.snapshot().unwrap();
    let bob = db.user(&home.space, "bob").unwrap().unwrap();
    let key = db.signing_key(&bob.identity).unwrap().unwrap();
    let space_key = db.current_space_key(&home.space).unwrap().unwrap();
    let mut envelope = Envelope::new(Kind::Edit, at, home.space, bob.identity);
    envelope.key = space_key.id();
    envelope.references =
        vec![Reference { role: Role::Authority, id: bob.membership }, Reference { role: Role::Target, id: target }];
    let wire = seal_content(&space_key, br#"{"body":"x"}"#, 1024, bob.identity, at);
    envelope.content_len = wire.len() as u64;
    envelope.content_hash = content_hash(&wire);
    let blob = Blob::seal(&envelope.sign(&key).unwrap(), &space_key).unwrap().bytes().to_vec();
    let arrival = engine::chains::receive_blob(&**store.keys(), store.policy(), blob, Some(wire), Origin::Import);
    home.core.ask(Arrive(Box::new(arrival.unwrap())), BACK).unwrap().1
}

#[test]
fn only_what_comes_right_after_something_ahead_does_not_wait() {
    let (home, early, _) = home();
    let db = home.core.store().snapshot().unwrap();
    let at = db.event(db.seq(&early).unwrap().unwrap()).unwrap().unwrap().meta.unwrap().at;
    drop(db);
    let is_held = |outcome: Outcome| matches!(outcome, Outcome::Held(..));
    assert!(is_held(edit_at(&home, early, at.plus(2 * Nanos::SECOND))), "two seconds after it");
    assert!(!is_held(edit_at(&home, early, at.plus(Nanos::SECOND))), "right after it");
    assert!(!is_held(edit_at(&home, early, at.plus(Nanos::SECOND + 500))), "and after that");
    let before = BACK.plus(400 * Nanos::SECOND);
    let now = home.core.ask(home.posting("bob", "now"), BACK).unwrap().shown;
    assert!(is_held(edit_at(&home, now, before)), "before something that is ahead, not after it");
    // Nobody gets ahead five minutes at a time.
    let soon = BACK.plus(300 * Nanos::SECOND - 1);
    let now = home.core.ask(home.posting("bob", "now"), BACK).unwrap().shown;
    assert!(!is_held(edit_at(&home, now, soon)));
    assert!(is_held(edit_at(&home, now, soon.plus(Nanos::SECOND / 2))));
}

#[test]
fn messages_and_memberships_get_the_right_time() {
    let (home, early, hers) = home();
    assert_eq!(ahead(&home).len(), 3);
    let (membership, _) = *ahead(&home).iter().find(|(_, kind)| *kind == Kind::Member).unwrap();
    home.core.ask(home.by("bob", edit(early)), BACK).unwrap();
    // She acts on a membership that is ahead: what she wrote cannot come before it.
    assert_eq!(settle(&home, hers, Settlement::Reissue), Settled::NotHere);
    let Settled::Reissued(now) = settle(&home, membership, Settlement::Reissue) else { panic!("a new membership") };
    let db = home.core.store().snapshot().unwrap();
    assert_eq!(db.user(&home.space, "carol").unwrap().unwrap().membership, now);
    drop(db);
    assert_eq!(settle(&home, membership, Settlement::End), Settled::NotHere, "what she wrote stands on it");
    assert!(matches!(settle(&home, hers, Settlement::Reissue), Settled::Reissued(_)));
    assert!(matches!(settle(&home, early, Settlement::Reissue), Settled::Reissued(_)));
    assert_eq!(settle(&home, membership, Settlement::End), Settled::Purged);
    home.core.ask(home.posting("carol", "after"), Nanos(BACK.0 + Nanos::SECOND)).unwrap();
    let shown: Vec<_> = texts(&home).into_iter().filter(|text| !text.contains("Deleted")).collect();
    assert_eq!(shown, ["before", "I am new", "edited", "after"]);
    assert_eq!(ahead(&home), [], "nothing is left to settle");
    assert_eq!(settle(&home, early, Settlement::Reissue), Settled::Stays, "once is enough");
    home.core.settle(BACK).unwrap();
    assert_eq!(home.core.store().verify(BACK).unwrap().problems, Vec::<String>::new());
}

#[test]
fn what_was_stamped_ahead_can_be_purged_instead() {
    let (home, early, hers) = home();
    assert_eq!(settle(&home, early, Settlement::Purge), Settled::Purged);
    assert_eq!(settle(&home, hers, Settlement::Purge), Settled::Purged);
    let left = home.core.store().snapshot().unwrap();
    assert!(left.membership(left.seq(&ahead(&home)[0].0).unwrap().unwrap()).unwrap().is_some());
    assert!(texts(&home).iter().all(|text| !text.contains("early") && !text.contains("new")), "{:?}", texts(&home));
}
