//! What strangers leave behind when their events are gone: nothing; and what is collected stays until that is certain.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use anteroom_simulator::disk::SimDisk;
use anteroom_simulator::protocol::space::cast::{Author, EventText, MadeEvent, Wrapping, write};
use anteroom_simulator::protocol::space::world::BEGINNING;
use anteroom_simulator::requests::SimRequest;
use anteroom_simulator::staging::{remove_objects, stage};
use engine::Policy;
use engine::chains;
use engine::reads::Reads as _;
use engine::rows::{Origin, Outcome};
use model::{EventId, Kind, Nanos, Role};
use node::WriterCore;
use node::node_commands::{Arrive, Collect, Purge, Tick};
use objects::{ContentWriter, WriteForm};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use store::events::content::DeliverResult;
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
fn what_is_forgotten_is_removed_after_the_commit_that_says_so() {
    let core = empty();
    let author = Author::new(1);
    let made = post(&author, &format!(r#"{{"text":"{}"}}"#, "x".repeat(20_000)));
    assert!(matches!(arrive(&core, &made, NOW), Outcome::Applied(_)));
    let (space, hash) = (author.home(), made.hash());
    let delivered = stage(&core, SimRequest::deliver(space, hash, made.wire.clone()), NOW).unwrap();
    core.ask(delivered, NOW).unwrap();
    core.settle(NOW).unwrap();
    let (_, objects) = core.store().snapshot().unwrap().unused_and_objects().unwrap();
    let [object] = objects[..] else { panic!("one object: {objects:?}") };
    let is_there = || core.store().disk().objects().open(object).is_ok();
    core.ask(Purge { space, targets: vec![made.id], audit_name: "test".into() }, NOW).unwrap();
    core.settle(NOW).unwrap();
    let later = NOW.plus(40 * DAY);
    // A batch that is not committed after all.
    let ended = core.store().write_unless(later, |batch| {
        batch.forget_unused(9)?;
        Ok(ControlFlow::<(), ()>::Break(()))
    });
    assert_eq!(ended.unwrap(), ControlFlow::Break(()));
    remove_objects(&core, NOW).unwrap();
    assert!(is_there());
    core.ask(Collect, later).unwrap();
    assert!(is_there(), "a commit removes nothing");
    check(&core, later);
    remove_objects(&core, later).unwrap();
    assert!(!is_there());
    assert_eq!(core.store().snapshot().unwrap().object_count().unwrap(), 0);
    check(&core, later);
}

#[test]
fn an_object_that_nobody_finishes_goes_when_its_time_is_over_and_one_that_nobody_wants_at_once() {
    let core = empty();
    let author = Author::new(1);
    let made = post(&author, &format!(r#"{{"text":"{}"}}"#, "x".repeat(20_000)));
    arrive(&core, &made, NOW);
    let (space, hash) = (author.home(), made.hash());
    let until = NOW.plus(DAY);
    let begin = || core.store().write(NOW, |batch| batch.begin_object(&space, true, until)).unwrap();
    let (given_up, late, unwanted) = (begin(), begin(), begin());
    assert_eq!(core.store().snapshot().unwrap().next_by_clock(0).unwrap(), Some(until));
    let enter = |name| core.store().write(NOW, |batch| batch.enter_object(&space, &hash, 20_011, name)).unwrap();
    let nobody = core
        .store()
        .write(NOW, |batch| batch.enter_object(&space, &model::ContentHash([9; 32]), 20_011, unwanted.name));
    assert_eq!(nobody.unwrap(), DeliverResult::Unwanted);
    let backend = core.store().disk().objects();
    let mut writer =
        ContentWriter::new(backend.as_ref(), late.name, WriteForm::Encrypted(late.key.unwrap()), u64::MAX).unwrap();
    writer.write(&made.wire).unwrap();
    writer.finish().unwrap();
    assert_eq!(enter(late.name), DeliverResult::Stored);
    let second = begin();
    assert_eq!(enter(second.name), DeliverResult::Known);
    let forgotten = || core.store().snapshot().unwrap().forgotten_objects(9).unwrap();
    let both: BTreeSet<_> = [unwanted.name, second.name].into();
    assert_eq!(forgotten().into_iter().collect::<BTreeSet<_>>(), both);
    core.ask(Tick, until.minus(1)).unwrap();
    assert!(!forgotten().contains(&given_up.name));
    core.ask(Tick, until).unwrap();
    assert!(forgotten().contains(&given_up.name));
    core.settle(until).unwrap();
    remove_objects(&core, until).unwrap();
    assert_eq!(core.store().snapshot().unwrap().object_count().unwrap(), 1);
    check(&core, until);
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
