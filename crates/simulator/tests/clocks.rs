//! A clock that is set wrong, on a running node and between two runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use anteroom_simulator::disk::SimDisk;
use anteroom_simulator::protocol::space::cast::{Author, EventText, Wrapping, write};
use engine::rows::{Origin, Outcome};
use model::{EventId, Kind, Nanos, Role};
use node::clock::CLOCK_TRUST_NANOS;
use node::fetch::hunter::NoSources;
use node::node_commands::Tick;
use node::{Clock, Node, NodeOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::{MasterKey, Store, StoreOptions};

const SECOND: u64 = Nanos::SECOND;
const DAY: u64 = 24 * 3600 * SECOND;
const START: u64 = 1_800_000_000 * SECOND;

/// A clock that tests set, beside one that nobody sets.
#[derive(Debug, Default)]
struct HandClock {
    told: AtomicU64,
    uptime: AtomicU64,
}

impl Clock for HandClock {
    fn now(&self) -> Nanos {
        Nanos(self.told.load(Ordering::Relaxed))
    }

    fn uptime(&self) -> Option<Nanos> {
        Some(Nanos(self.uptime.load(Ordering::Relaxed)))
    }
}

impl HandClock {
    fn at(told: u64) -> Arc<HandClock> {
        let clock = HandClock::default();
        clock.told.store(told, Ordering::Relaxed);
        Arc::new(clock)
    }

    /// Time passes.
    fn pass(&self, nanos: u64) {
        self.told.fetch_add(nanos, Ordering::Relaxed);
        self.uptime.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Somebody sets the clock.
    fn set(&self, told: u64) {
        self.told.store(told, Ordering::Relaxed);
    }
}

fn start(disk: &SimDisk, clock: &Arc<HandClock>) -> Node {
    let options = StoreOptions { reserve_bytes: 0, cache_bytes: 4 << 20, ..StoreOptions::default() };
    let store = Store::open(Arc::new(disk.clone()), MasterKey::new(&[1; 32]), options).unwrap();
    Node::start(store, clock.clone(), Arc::new(NoSources), NodeOptions::default())
}

/// Stores a message whose thread is not here, so that it is held for thirty days.
fn hold(node: &Node, at: u64) -> EventId {
    let author = Author::new(1);
    let place = Wrapping { space: author.home(), key: None };
    let references = [(Role::Authority, EventId([8; 16])), (Role::Thread, EventId([9; 16]))];
    let made = write(&author, &place, 1024, EventText::new(Kind::Message, at, &references, br#"{"text":"hi"}"#));
    let request = node.receive(made.blob.clone(), made.inline(1024), Origin::Import).unwrap();
    let (_, outcome) = node.ask(request).unwrap();
    assert!(matches!(outcome, Outcome::Held(..)), "{outcome:?}");
    made.id
}

fn is_known(node: &Node, id: &EventId) -> bool {
    // Whatever is due is done with the next commit.
    node.ask(Tick).unwrap();
    node.snapshot().unwrap().is_known(id).unwrap()
}

#[test]
fn a_jump_of_a_year_neither_stamps_nor_expires_anything_until_it_has_lasted() {
    let clock = HandClock::at(START);
    let node = start(&SimDisk::new(), &clock);
    let held = hold(&node, START - SECOND);
    clock.pass(SECOND);
    clock.set(START + 365 * DAY);
    assert_eq!(node.now(), Nanos(START + SECOND));
    assert!(is_known(&node, &held));
    let jumped = node.clock_jump().unwrap().by_nanos;
    assert_eq!(jumped as u64, 365 * DAY - SECOND);
    assert!(node.snapshot().unwrap().greatest_time().unwrap() <= Nanos(START + SECOND));
    // It comes back, and all is as before.
    clock.set(START + SECOND);
    assert_eq!((node.now(), node.clock_jump()), (Nanos(START + SECOND), None));
    // It is set again and stays: then it is what it is.
    clock.set(START + 365 * DAY);
    assert!(is_known(&node, &held));
    clock.pass(CLOCK_TRUST_NANOS);
    assert_eq!(node.now(), Nanos(START + 365 * DAY + CLOCK_TRUST_NANOS));
    assert!(!is_known(&node, &held));
    node.stop();
}

#[test]
fn of_a_long_time_without_running_only_a_day_counts_for_what_is_held() {
    let disk = SimDisk::new();
    let clock = HandClock::at(START);
    let node = start(&disk, &clock);
    let held = hold(&node, START - SECOND);
    node.stop();
    drop(node);
    // Either the machine was off for a year, or its clock is wrong.
    let clock = HandClock::at(START + 365 * DAY);
    let node = start(&disk, &clock);
    assert!(is_known(&node, &held));
    hold(&node, START - 2 * SECOND);
    node.stop();
    drop(node);
    // Starting again and again does not shorten the wait by more than a day each time.
    let clock = HandClock::at(START + 365 * DAY);
    let node = start(&disk, &clock);
    assert!(is_known(&node, &held));
    clock.pass(27 * DAY);
    assert!(is_known(&node, &held));
    clock.pass(DAY + SECOND);
    assert!(!is_known(&node, &held));
    node.stop();
}

#[test]
fn a_clock_behind_the_last_run_is_noticed() {
    let disk = SimDisk::new();
    let clock = HandClock::at(START);
    let node = start(&disk, &clock);
    hold(&node, START - SECOND);
    assert_eq!(node.clock_behind(), Nanos(0));
    node.stop();
    drop(node);
    let clock = HandClock::at(START - DAY);
    let node = start(&disk, &clock);
    assert_eq!(node.clock_behind(), Nanos(DAY));
    // The greatest time stays what it was, whatever is written now.
    hold(&node, START - 2 * DAY);
    assert_eq!(node.snapshot().unwrap().greatest_time().unwrap(), Nanos(START));
    clock.pass(DAY - SECOND);
    assert_eq!(node.clock_behind(), Nanos(0));
    node.stop();
}

#[test]
fn a_clock_that_somebody_takes_for_right_is_behind_no_more() {
    let disk = SimDisk::new();
    let node = start(&disk, &HandClock::at(START));
    hold(&node, START - SECOND);
    node.stop();
    drop(node);
    let node = start(&disk, &HandClock::at(START - DAY));
    assert_eq!(node.clock_behind(), Nanos(DAY));
    node.ask(node::jobs::TrustClock).unwrap();
    assert_eq!(
        (node.clock_behind(), node.snapshot().unwrap().greatest_time().unwrap()),
        (Nanos(0), Nanos(START - DAY))
    );
    node.stop();
}
