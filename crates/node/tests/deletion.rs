//! The rule of deletion, as users meet it: what was deleted stays so, its author or an admin deletes, and a purge takes
//! every version along.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use anteroom_node::AskError;
use anteroom_node::commands::{AdminCommand, CommandError, NameOrId, UserCommand, is_deleted};
use anteroom_node::jobs::PurgeResult;
use anteroom_node::node_commands::Purge;
use common::{Answer, Home, NOW, edit, message, react};
use engine::access::Decision;
use engine::reads::{Reads as _, SpaceReads as _};
use model::stage::ContentState;
use model::{EventId, Nanos, Seq, Stamp};
use store::shared::retention::Retention;

fn is_refused_as_deleted(answer: &Answer) -> bool {
    matches!(answer, Err(AskError::Refused(CommandError::Deleted)))
}

fn is_forbidden(answer: &Answer) -> bool {
    matches!(answer, Err(AskError::Refused(CommandError::Denied(Decision::Forbidden(_)))))
}

fn seq(home: &Home, id: EventId) -> Seq {
    home.core.store().snapshot().unwrap().seq(&id).unwrap().unwrap()
}

fn is_gone(home: &Home, id: EventId) -> bool {
    is_deleted(&home.core.store().snapshot().unwrap(), seq(home, id)).unwrap()
}

fn delete(id: EventId) -> UserCommand {
    UserCommand::DeleteMessage(message(id))
}

/// Softly, by a version that says so, or for ever.
const DELETIONS: [fn(EventId) -> UserCommand; 2] = [delete, UserCommand::Purge];

#[test]
fn a_deleted_message_is_neither_edited_nor_reacted_to() {
    for deletion in DELETIONS {
        let home = Home::new();
        let id = home.post("alice", "hello");
        home.ask("bob", react(id)).unwrap();
        home.ask("alice", deletion(id)).unwrap();
        home.core.settle(NOW).unwrap();
        assert!(is_gone(&home, id));
        let answers = [home.ask("alice", edit(id)), home.ask("bob", react(id))];
        assert!(answers.iter().all(is_refused_as_deleted), "{answers:?}");
        home.ask("bob", UserCommand::Unreact(message(id))).expect("a reaction can be taken back");
        home.verify();
    }
}

#[test]
fn deleting_again_changes_nothing() {
    let home = Home::new();
    let id = home.post("alice", "hello");
    assert!(home.ask("alice", delete(id)).unwrap().is_new);
    let before = home.position();
    assert!(!home.ask("alice", delete(id)).unwrap().is_new);
    assert_eq!(home.position(), before);
}

#[test]
fn purging_again_changes_nothing_however_often() {
    let home = Home::new();
    let id = home.post("alice", "hello");
    assert!(home.ask("alice", UserCommand::Purge(id)).unwrap().is_new);
    home.core.settle(NOW).unwrap();
    let before = home.position();
    for _ in 0..3 {
        assert!(!home.ask("alice", UserCommand::Purge(id)).unwrap().is_new);
    }
    assert_eq!(home.position(), before);
    assert!(is_forbidden(&home.ask("bob", UserCommand::Purge(id))), "and only for those who may");
}

#[test]
fn a_message_that_only_looks_like_a_deletion_is_not_deleted() {
    let home = Home::new();
    let id = home.post("alice", r#"{"deleted":true}"#);
    assert!(!is_gone(&home, id));
}

#[test]
fn the_author_or_an_admin_deletes_and_nobody_else() {
    for deletion in DELETIONS {
        let home = Home::new();
        let (first, second) = (home.post("alice", "first"), home.post("alice", "second"));
        home.post("bob", "third");
        home.make_admin("carol");
        let answer = home.ask("bob", deletion(first));
        assert!(is_forbidden(&answer), "{answer:?}");
        home.ask("alice", deletion(first)).unwrap();
        home.ask("carol", deletion(second)).unwrap();
        home.core.settle(NOW).unwrap();
        assert_eq!([first, second].map(|id| is_gone(&home, id)), [true, true]);
    }
}

#[test]
fn a_deleted_thread_takes_no_more_messages() {
    let home = Home::new();
    home.post("alice", "hello");
    home.ask("alice", UserCommand::DeleteThread(NameOrId::Chosen("lobby".to_owned()))).unwrap();
    let answer = home.core.ask(home.posting("bob", "anybody?"), NOW);
    assert!(matches!(&answer, Err(AskError::Refused(CommandError::Unknown(what))) if what.contains("deleted")));
}

#[test]
fn a_purge_reaches_every_version() {
    let home = Home::new();
    let id = home.post("alice", "hello");
    home.ask("alice", edit(id)).unwrap();
    home.ask("alice", UserCommand::Purge(id)).unwrap();
    home.core.settle(NOW).unwrap();
    let db = home.core.store().snapshot().unwrap();
    let versions = db.versions(seq(&home, id), Stamp::FIRST, 10).unwrap();
    assert_eq!(versions.len(), 1);
    for seq in [seq(&home, id), versions[0].1] {
        let content = db.event(seq).unwrap().unwrap().content;
        assert!(matches!(content, ContentState::Deleted { .. }), "{content:?}");
    }
}

#[test]
fn a_space_keeps_the_content_of_its_founding_and_what_is_empty_is_not_purged() {
    let home = Home::new();
    home.post("alice", "hello");
    let (founding, membership) = {
        let db = home.core.store().snapshot().unwrap();
        let founding = db.hosted_space(&home.space).unwrap().unwrap().founding;
        (founding, db.user(&home.space, "alice").unwrap().unwrap().membership)
    };
    let purge = Purge { space: home.space, targets: vec![founding, membership], audit_name: "a test".to_owned() };
    let purged = home.core.ask(purge, NOW).unwrap();
    assert!(purged.iter().all(|(_, result)| matches!(result, PurgeResult::Nothing(_))), "{purged:?}");
}

#[test]
fn retention_counts_what_is_posted_in_the_same_commit() {
    let home = Home::new();
    let one = home.post("ada", "one");
    let rule = Retention { count: Some(1), ..Retention::default() };
    home.administer(AdminCommand::Retain(home.space, None, Some(rule)));
    home.core.settle(NOW).unwrap();
    // The rule is due with the commit that brings the second message.
    let later = NOW.plus(3 * 24 * 3600 * Nanos::SECOND);
    let two = home.core.ask(home.posting("ada", "two"), later).unwrap().shown;
    home.core.settle(later).unwrap();
    let db = home.core.store().snapshot().unwrap();
    let state = |id| db.event(db.seq(&id).unwrap().unwrap()).unwrap().unwrap().content;
    assert!(matches!(state(one), ContentState::Deleted { .. }), "{:?}", state(one));
    assert_eq!(state(two), ContentState::Processed);
}
