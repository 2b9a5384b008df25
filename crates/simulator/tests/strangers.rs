//! What strangers leave behind when their events are gone: nothing; and what is collected stays until that is certain.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use anteroom_simulator::disk::SimDisk;
use anteroom_simulator::protocol::space::cast::{Author, EventText, MadeEvent, Wrapping, write};
use anteroom_simulator::protocol::space::world::BEGINNING;
use engine::Policy;
use engine::chains;
use engine::reads::Reads as _;
use engine::rows::{Origin, Outcome};
use model::{EventId, Kind, Nanos, Role};
use node::WriterCore;
use node::node_commands::{Arrive, Collect, Deliver, Purge, Tick};
use std::ops::ControlFlow;
use std::sync::Arc;
use store::tables::TableReads as _;
use store::{MasterKey, Store, StoreOptions};

const DAY: u64 = 24 * 3600 * Nanos::SECOND;
const NOW: Nanos = Nanos(BEGINNING + DAY);

fn empty() -> WriterCore {
    let policy = Policy { row_content_bytes_max: 2000, ..Policy::default() };
    let options = StoreOptions { policy, cache_bytes: 4 << 20, reserve_bytes: 0, ..StoreOptions::default() };
    WriterCore::new(Store::open(Arc::new(SimDisk::new()), MasterKey::new(&[1; 32]), options).unwrap())
}

fn arrive(core: &WriterCore, made: &MadeEvent, now: Nanos) -> Outcome {
    let keys = core.store().keys().clone();
    let inline = made.inline(1024);
    let arrival =
        chains::receive_blob(&*keys, core.store().policy(), made.blob.clone(), inline, Origin::Import).unwrap();
    core.ask(Arrive(Box::new(arrival)), now).unwrap().1
}

/// A message of somebody nobody knows, in a space of their own, whose thread is not here.
fn held_message(author: &Author) -> MadeEvent {
    let place = Wrapping { space: author.home(), key: None };
    let references = [(Role::Authority, EventId([8; 16])), (Role::Thread, EventId([9; 16]))];
    write(author, &place, 1024, EventText::new(Kind::Message, BEGINNING, &references, br#"{"text":"hi"}"#))
}

fn post(author: &Author, text: &str) -> MadeEvent {
    let place = Wrapping { space: author.home(), key: None };
    write(author, &place, 1024, EventText::new(Kind::Post, BEGINNING, &[], text.as_bytes()))
}

/// How many spaces and authors have a number.
fn numbers(core: &WriterCore) -> (u64, u64) {
    let db = core.store().snapshot().unwrap();
    (db.tables().space_ids().len().unwrap(), db.tables().author_ids().len().unwrap())
}

fn check(core: &WriterCore, now: Nanos) {
    let problems = core.store().verify(now).unwrap().problems;
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn a_stranger_whose_events_expired_has_no_number_and_nobody_gets_it_again() {
    let core = empty();
    let known = Author::new(1);
    assert!(matches!(arrive(&core, &post(&known, r#"{"text":"I am here"}"#), NOW), Outcome::Applied(_)));
    for seed in 1..=5 {
        assert!(matches!(arrive(&core, &held_message(&Author::new(seed)), NOW), Outcome::Held(..)));
    }
    assert_eq!(numbers(&core), (5, 5));
    check(&core, NOW);
    let number = |seed| core.store().snapshot().unwrap().author_no(&Author::new(seed).identity).unwrap();
    let given = [number(4), number(5)];
    let later = NOW.plus(40 * DAY);
    core.ask(Tick, later).unwrap();
    core.settle(later).unwrap();
    assert_eq!(numbers(&core), (1, 1), "of those who have nothing here only the known author is left");
    check(&core, later);
    assert_eq!(number(5), None);
    assert!(matches!(arrive(&core, &held_message(&Author::new(4)), later), Outcome::Held(..)));
    assert!(!given.contains(&number(4)), "readers may remember whose numbers those were");
    check(&core, later);
}

#[test]
fn what_is_forgotten_in_a_batch_is_deleted_only_by_a_later_one() {
    let core = empty();
    let author = Author::new(1);
    let made = post(&author, &format!(r#"{{"text":"{}"}}"#, "x".repeat(20_000)));
    assert!(matches!(arrive(&core, &made, NOW), Outcome::Applied(_)));
    let (space, hash) = (author.home(), made.hash());
    core.ask(Deliver { space, hash, bytes: made.wire.clone() }, NOW).unwrap();
    assert_eq!(core.store().content_files().unwrap().len(), 1);
    core.ask(Purge { space, targets: vec![made.id], audit_name: "test".into() }, NOW).unwrap();
    core.settle(NOW).unwrap();
    let later = NOW.plus(40 * DAY);
    let files = || core.store().content_files().unwrap().len();
    // Two collections in one batch that is not committed after all.
    let ended = core.store().write_unless(later, |batch| {
        for _ in 0..2 {
            batch.delete_forgotten(9)?;
            batch.forget_unused(9)?;
        }
        batch.delete_strays(&core.store().content_files()?)?;
        Ok(ControlFlow::<(), ()>::Break(()))
    });
    assert_eq!((ended.unwrap(), files()), (ControlFlow::Break(()), 1));
    core.run(vec![Collect, Collect], later).unwrap();
    assert_eq!(files(), 1, "the row was forgotten in the same commit");
    core.ask(Collect, later).unwrap();
    assert_eq!(files(), 0);
    check(&core, later);
}

#[test]
fn whoever_leaves_one_space_and_comes_into_another_in_one_batch_keeps_the_number() {
    let core = empty();
    let (author, other) = (Author::new(1), Author::new(2));
    let elsewhere = Wrapping { space: other.home(), key: None };
    let references = [(Role::Authority, EventId([8; 16])), (Role::Thread, EventId([9; 16]))];
    let text = EventText::new(Kind::Message, BEGINNING, &references, br#"{"text":"hi"}"#);
    assert!(matches!(arrive(&core, &write(&author, &elsewhere, 1024, text), NOW), Outcome::Held(..)));
    // The wait ends in the batch with which their post comes.
    let later = NOW.plus(40 * DAY);
    assert!(matches!(arrive(&core, &post(&author, r#"{"text":"I am elsewhere"}"#), later), Outcome::Applied(_)));
    core.settle(later).unwrap();
    assert_eq!(numbers(&core), (1, 1));
    check(&core, later);
}

#[test]
fn who_comes_and_goes_in_one_batch_leaves_no_number() {
    let core = empty();
    let first = post(&Author::new(1), r#"{"text":"mine"}"#);
    arrive(&core, &first, NOW);
    let place = Wrapping { space: Author::new(1).home(), key: None };
    let edit = |seed, target| {
        let text = EventText::new(Kind::Edit, BEGINNING + seed, &[(Role::Target, target)], br#"{"text":"yours"}"#);
        write(&Author::new(seed), &place, 1024, text)
    };
    // Somebody edits what is not theirs, which is refused; and somebody else, in a space of their own, needs that.
    let refused = edit(2, first.id);
    let elsewhere = Wrapping { space: Author::new(3).home(), key: None };
    let text = EventText::new(Kind::Edit, BEGINNING + 9, &[(Role::Target, refused.id)], br#"{"text":"theirs"}"#);
    let waiting = write(&Author::new(3), &elsewhere, 1024, text);
    let keys = core.store().keys().clone();
    let arrivals = [&waiting, &refused].map(|made| {
        let (blob, inline) = (made.blob.clone(), made.inline(1024));
        Arrive(Box::new(chains::receive_blob(&*keys, core.store().policy(), blob, inline, Origin::Import).unwrap()))
    });
    core.run(arrivals.to_vec(), NOW).unwrap();
    core.settle(NOW).unwrap();
    let db = core.store().snapshot().unwrap();
    assert!(db.refused(&refused.id).unwrap().is_some() && db.refused(&waiting.id).unwrap().is_some());
    drop(db);
    assert_eq!(numbers(&core), (1, 1));
    check(&core, NOW);
}

#[test]
fn a_stranger_who_promised_content_leaves_nothing() {
    let core = empty();
    let author = Author::new(1);
    let place = Wrapping { space: author.home(), key: None };
    let references = [(Role::Authority, EventId([8; 16])), (Role::Thread, EventId([9; 16]))];
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(5000));
    let text = EventText::new(Kind::Message, BEGINNING, &references, long.as_bytes());
    assert!(matches!(arrive(&core, &write(&author, &place, 1024, text), NOW), Outcome::Held(..)));
    let later = NOW.plus(40 * DAY);
    core.ask(Tick, later).unwrap();
    assert_eq!(numbers(&core), (0, 0));
    check(&core, later);
}
