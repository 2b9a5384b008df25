//! The running node hunts for what is missing and applies what a source brings, and believes nothing else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use anteroom_simulator::disk::SimDisk;
use anteroom_simulator::protocol::space::cast::{Author, EventText, MadeEvent, Wrapping, write};
use anteroom_simulator::protocol::space::world::BEGINNING;
use engine::chains;
use engine::fetch::{self, DomainLimits};
use engine::reads::Reads as _;
use engine::rows::Origin;
use model::{Envelope, EventId, Group, Kind, Nanos, Need};
use node::fetch::hunter::{FetchError, FetchOrder, Fetched, Hunter, NoSources, SourceClient, SourceDirectory};
use node::node_commands::{Arrive, EndHunt, RestGroup, WakeGroups};
use node::{Clock, Node, NodeOptions, WriterCore};
use std::sync::Arc;
use std::time::Duration;
use store::tables::{Snapshot, TableReads as _};
use store::{Db, MasterKey, Store, StoreOptions};

#[derive(Debug)]
struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Nanos {
        Nanos(BEGINNING + 1_000_000_000_000)
    }
}

/// Two places: the first lies, the second has the content.
#[derive(Debug)]
struct TwoPlaces {
    made: MadeEvent,
}

impl SourceDirectory for TwoPlaces {
    fn places(&self, _db: &Db<Snapshot>, _group: &Group) -> Vec<fetch::Source> {
        ["liar", "honest"].map(|name| fetch::Source { url: name.into(), domain: name.into() }).to_vec()
    }
}

impl SourceClient for TwoPlaces {
    fn fetch(
        &self,
        _group: &Group,
        url: &str,
        needs: &[Need],
        deliver: &mut dyn FnMut(Fetched),
    ) -> Result<usize, FetchError> {
        let [Need::Content(space, hash)] = needs else { return Err(FetchError("asked for something else".into())) };
        let bytes = if url == "liar" { vec![1; self.made.wire.len()] } else { self.made.wire.clone() };
        deliver(Fetched::Content { space: *space, hash: *hash, bytes });
        Ok(0)
    }
}

#[test]
fn missing_content_is_fetched_from_the_one_who_has_it() {
    let author = Author::new(1);
    let place = Wrapping { space: author.home(), key: None };
    let text = format!("{{\"text\":\"{}\"}}", "x".repeat(3000));
    let made = write(&author, &place, 1024, EventText::new(Kind::Post, BEGINNING, &[], text.as_bytes()));
    let options = StoreOptions {
        cache_bytes: 4 << 20,
        reserve_bytes: 0,
        random: store::KeySource::Seed(1),
        ..StoreOptions::default()
    };
    let store = Store::open(Arc::new(SimDisk::new()), MasterKey::new(&[1; 32]), options).unwrap();
    let source = Arc::new(TwoPlaces { made: made.clone() });
    let node = Node::start(store, Arc::new(FixedClock), source, NodeOptions::default());
    node.ask(node.receive(made.blob.clone(), None, Origin::Import).unwrap()).unwrap();
    // One entry says that it was applied, the next that its content was processed.
    assert_eq!(node.wait_after(1, Duration::from_secs(60)), 2);
    let db = node.snapshot().unwrap();
    let row = db.event(db.seq(&made.id).unwrap().unwrap()).unwrap().unwrap();
    assert_eq!(row.content.word(), "processed");
    drop(db);
    node.stop();
    assert!(node.store().verify(FixedClock.now()).unwrap().problems.is_empty());
}

/// A node that waits for content, which nobody has.
fn waiting_node() -> WriterCore {
    let author = Author::new(1);
    let place = Wrapping { space: author.home(), key: None };
    let text = format!("{{\"text\":\"{}\"}}", "x".repeat(3000));
    let made = write(&author, &place, 1024, EventText::new(Kind::Post, BEGINNING, &[], text.as_bytes()));
    let options = StoreOptions { cache_bytes: 4 << 20, reserve_bytes: 0, ..StoreOptions::default() };
    let store = Store::open(Arc::new(SimDisk::new()), MasterKey::new(&[1; 32]), options).unwrap();
    let core = WriterCore::new(store);
    let keys = core.store().keys().clone();
    let arrival = chains::receive_blob(&*keys, core.store().policy(), made.blob, None, Origin::Import).unwrap();
    core.ask(Arrive(Box::new(arrival)), FixedClock.now()).unwrap();
    core
}

/// Somewhere to ask, or nowhere.
#[derive(Debug)]
struct Directory {
    places: usize,
}

impl SourceDirectory for Directory {
    fn places(&self, _db: &Db<Snapshot>, _group: &Group) -> Vec<fetch::Source> {
        (0..self.places).map(|number| fetch::Source { url: format!("here/{number}"), domain: "here".into() }).collect()
    }
}

impl SourceClient for Directory {
    fn fetch(
        &self,
        _group: &Group,
        _url: &str,
        _needs: &[Need],
        _deliver: &mut dyn FnMut(Fetched),
    ) -> Result<usize, FetchError> {
        Err(FetchError("nobody is at home".into()))
    }
}

/// What a hunter orders, in words.
fn orders(hunter: &mut Hunter, core: &WriterCore, places: usize, now: Nanos, requests_max: usize) -> Vec<String> {
    let db = core.store().snapshot().unwrap();
    let orders = hunter.take_orders(&db, &Directory { places }, now, requests_max).unwrap();
    orders.into_iter().map(|order| follow(hunter, core, places, order, now)).collect()
}

fn follow(hunter: &mut Hunter, core: &WriterCore, places: usize, order: FetchOrder, now: Nanos) -> String {
    let told = |done: bool, word: &str| if done { word.to_owned() } else { format!("{word} failed") };
    match order {
        FetchOrder::Ended { group, mark, started_at } => {
            let done = core.ask(EndHunt { group: group.clone(), mark, started_at, jitter_permille: 0 }, now).is_ok();
            hunter.settled(&group, done, now);
            told(done, "ended")
        }
        FetchOrder::Rest { group, mark } => {
            let done = core.ask(RestGroup { group: group.clone(), mark }, now).is_ok();
            hunter.settled(&group, done, now);
            told(done, "rest")
        }
        FetchOrder::Wake { groups } => told(core.ask(WakeGroups(groups), now).is_ok(), "wake"),
        FetchOrder::Fetch { ticket, url, .. } => {
            let db = core.store().snapshot().unwrap();
            hunter.ended(&db, &Directory { places }, ticket, now);
            format!("ask {url}")
        }
    }
}

#[test]
fn a_group_without_a_source_rests_without_a_commit_until_there_is_one() {
    let core = waiting_node();
    let mut hunter = Hunter::new(DomainLimits::default());
    let mut now = FixedClock.now();
    assert_eq!(orders(&mut hunter, &core, 0, now, 9), ["rest"]);
    for _ in 0..100 {
        now = now.plus(24 * 3600 * Nanos::SECOND);
        assert_eq!(orders(&mut hunter, &core, 0, now, 9), [""; 0]);
        let db = core.store().snapshot().unwrap();
        assert_ne!(hunter.wake_at(&db, now).unwrap(), Some(now), "nobody need look again");
    }
    // Somebody appears; so does a restart look for whoever appeared meanwhile.
    assert_eq!(orders(&mut hunter, &core, 1, now, 9), [""; 0], "nobody has said so yet");
    for mut hunter in [hunter, Hunter::new(DomainLimits::default())] {
        hunter.sources_changed();
        assert_eq!(orders(&mut hunter, &core, 1, now, 9), ["wake"]);
        assert_eq!(orders(&mut hunter, &core, 1, now, 9), ["ask here/0"]);
        assert_eq!(orders(&mut hunter, &core, 1, now, 9), ["ended"]);
        // Whoever it was is gone.
        now = now.plus(24 * 3600 * Nanos::SECOND);
        assert_eq!(orders(&mut hunter, &core, 0, now, 9), ["rest"]);
    }
}

#[test]
fn nothing_is_ordered_that_cannot_begin_and_nothing_is_lost_by_that() {
    let core = waiting_node();
    let (mut hunter, now) = (Hunter::new(DomainLimits::default()), FixedClock.now());
    assert_eq!(orders(&mut hunter, &core, 2, now, 0), [""; 0]);
    let later = now.plus(300 * Nanos::SECOND);
    assert_eq!(orders(&mut hunter, &core, 2, later, 1), ["ask here/0"]);
    assert_eq!(orders(&mut hunter, &core, 2, later, 1), ["ask here/1"]);
}

#[test]
fn a_group_whose_end_cannot_be_written_rests_and_is_hunted_again() {
    let core = waiting_node();
    let (mut hunter, now) = (Hunter::new(DomainLimits::default()), FixedClock.now());
    let db = core.store().snapshot().unwrap();
    let hunt = |hunter: &mut Hunter, now| match hunter.take_orders(&db, &NoSources, now, 9).unwrap().as_slice() {
        [] => None,
        [FetchOrder::Rest { group, .. }] => Some(group.clone()),
        other => panic!("{other:?}"),
    };
    let group = hunt(&mut hunter, now).expect("it is due, and there is nobody to ask");
    assert_eq!(hunt(&mut hunter, now), None, "its end is under way");
    hunter.settled(&group, false, now);
    assert_eq!(hunt(&mut hunter, now), None, "it rests");
    let wake_at = hunter.wake_at(&db, now).unwrap().expect("a time to look again");
    assert!(wake_at > now && wake_at <= now.plus(60 * Nanos::SECOND), "{wake_at:?}");
    assert_eq!(hunt(&mut hunter, wake_at), Some(group.clone()));
    hunter.settled(&group, true, wake_at);
    assert!(hunter.wake_at(&db, wake_at).unwrap().is_none(), "the schedule alone says when");
}

#[test]
fn the_hunter_wakes_when_the_next_group_is_due() {
    let core = waiting_node();
    let (mut hunter, now) = (Hunter::new(DomainLimits::default()), FixedClock.now());
    assert_eq!(orders(&mut hunter, &core, 1, now, 9), ["ask here/0"]);
    assert_eq!(orders(&mut hunter, &core, 1, now, 9), ["ended"]);
    let db = core.store().snapshot().unwrap();
    let (_, row) = db.schedule().unwrap().pop().expect("it is still missing");
    assert!(row.next > now.0, "{row:?}");
    assert_eq!(hunter.wake_at(&db, now).unwrap(), Some(Nanos(row.next)));
}

/// A post by an author that names a parent.
fn post_after(seed: u8, parent: EventId) -> (EventId, Vec<u8>, Vec<u8>) {
    let key = ed25519_dalek::SigningKey::from_bytes(&[seed; 32]);
    let identity = model::Identity(key.verifying_key().to_bytes());
    let mut envelope = Envelope::new(Kind::Post, Nanos(BEGINNING), model::crypto::public_space(&identity), identity);
    let content = br#"{"text":"hi"}"#.to_vec();
    envelope.parents = [parent, EventId::ZERO];
    envelope.content_len = content.len() as u64;
    envelope.content_hash = model::crypto::content_hash(&content);
    let blob = model::Blob::plain(&envelope.sign(&key).unwrap()).unwrap();
    (blob.id(), blob.bytes().to_vec(), content)
}

#[test]
fn a_parent_that_is_here_by_another_author_is_not_asked_for() {
    let options = StoreOptions { cache_bytes: 4 << 20, reserve_bytes: 0, ..StoreOptions::default() };
    let store = Store::open(Arc::new(SimDisk::new()), MasterKey::new(&[1; 32]), options).unwrap();
    let (core, now) = (WriterCore::new(store), FixedClock.now());
    let arrive = |(_, blob, content): (EventId, Vec<u8>, Vec<u8>)| {
        let (keys, policy) = (core.store().keys().clone(), *core.store().policy());
        let arrival = chains::receive_blob(&*keys, &policy, blob, Some(content), Origin::Import).unwrap();
        core.ask(Arrive(Box::new(arrival)), now).unwrap();
    };
    let parent = post_after(1, EventId::ZERO);
    arrive(post_after(2, parent.0));
    let mut hunter = Hunter::new(DomainLimits::default());
    let due = now.plus(Nanos::SECOND);
    assert_eq!(orders(&mut hunter, &core, 2, due, 1), ["ask here/0"], "it is not here");
    arrive(parent);
    assert_eq!(orders(&mut hunter, &core, 2, due, 1), ["ended"], "nobody else is asked");
    let db = core.store().snapshot().unwrap();
    assert_eq!(db.schedule().unwrap(), []);
    assert!(db.tables().gaps().is_empty().unwrap(), "and what was wanted is forgotten");
}

#[test]
fn a_source_that_appears_while_a_group_is_let_rest_is_not_missed() {
    let core = waiting_node();
    let (mut hunter, now) = (Hunter::new(DomainLimits::default()), FixedClock.now());
    let db = core.store().snapshot().unwrap();
    let ordered = hunter.take_orders(&db, &NoSources, now, 9).unwrap();
    drop(db);
    // It is looked for among those that rest, where it is not yet.
    hunter.sources_changed();
    assert_eq!(orders(&mut hunter, &core, 1, now, 9), [""; 0]);
    for order in ordered {
        assert_eq!(follow(&mut hunter, &core, 1, order, now), "rest");
    }
    assert_eq!(orders(&mut hunter, &core, 1, now, 9), ["wake"]);
    // One that cannot be woken now is looked at again after a while.
    hunter.waking_failed(now);
    let db = core.store().snapshot().unwrap();
    let at = hunter.wake_at(&db, now).unwrap();
    assert!(at.is_some_and(|at| at <= now.plus(60 * Nanos::SECOND)), "{at:?}");
}
