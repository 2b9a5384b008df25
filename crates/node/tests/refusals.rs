//! A command that is refused changes nothing, wherever it stood in its batch.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use anteroom_node::AskError;
use anteroom_node::commands::CommandError;
use common::{Answer, Home, NOW, react};
use engine::reads::Reads as _;
use model::{EventId, Stamp};

/// A message that is not there. A first command admits a user before it is looked for.
const NOTHING: EventId = EventId([9; 16]);

fn is_unknown(answer: &Answer) -> bool {
    matches!(answer, Err(AskError::Refused(CommandError::Unknown("message"))))
}

#[test]
fn a_refused_command_admits_nobody() {
    let home = Home::new();
    let before = home.position();
    let answer = home.ask("mallory", react(NOTHING));
    assert!(is_unknown(&answer), "{answer:?}");
    assert_eq!((home.is_user("mallory"), home.position()), (false, before));
    home.verify();
}

#[test]
fn the_commands_around_a_refused_one_are_done_once_and_in_order() {
    let home = Home::new();
    let commands = vec![
        home.posting("alice", "first"),
        home.by("mallory", react(NOTHING)),
        home.by("alice", react(NOTHING)),
        home.posting("bob", "second"),
        home.by("trudy", react(NOTHING)),
    ];
    let answers = home.core.run(commands, NOW).unwrap().answers;
    let seqs: Vec<Option<u64>> = answers.iter().map(|answer| answer.as_ref().ok().map(|done| done.seq.0)).collect();
    assert!([1, 2, 4].iter().all(|number: &usize| is_unknown(&answers[*number])), "{answers:?}");
    assert!(seqs[0].is_some() && seqs[0] < seqs[3], "{answers:?}");
    assert_eq!(["alice", "bob", "mallory", "trudy"].map(|user| home.is_user(user)), [true, true, false, false]);
    let db = home.core.store().snapshot().unwrap();
    let no = db.space_no(&home.space).unwrap().unwrap();
    let (_, thread) = db.chosen(no, "lobby").unwrap().unwrap();
    assert_eq!(db.timeline(thread, Stamp::LAST, 10).unwrap().len(), 2, "each message is there once");
    drop(db);
    home.verify();
}
