//! A full disk, a read-only disk and a failing sync, on a running node.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use anteroom_simulator::disk::{DiskFault, SimDisk};
use anteroom_simulator::protocol::space::cast::{Author, EventText, Wrapping, write};
use engine::rows::{Origin, Outcome};
use model::{EventId, Kind, Nanos};
use node::fetch::hunter::NoSources;
use node::node_commands::Arrive;
use node::{Answered, AskError, Clock, Node, NodeOptions, RequestError};
use std::sync::Arc;
use store::{MasterKey, Store, StoreOptions};

const NOW: u64 = 1_800_000_000_000_000_000;

#[derive(Debug)]
struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Nanos {
        Nanos(NOW)
    }
}

fn start(disk: &SimDisk, reserve_bytes: u64) -> Node {
    let options = StoreOptions { reserve_bytes, cache_bytes: 4 << 20, ..StoreOptions::default() };
    let store = Store::open(Arc::new(disk.clone()), MasterKey::new(&[1; 32]), options).unwrap();
    Node::start(store, Arc::new(FixedClock), Arc::new(NoSources), NodeOptions::default())
}

fn post(node: &Node, number: u64) -> (EventId, Answered<Arrive>) {
    let author = Author::new(1);
    let place = Wrapping { space: author.home(), key: None };
    let made = write(&author, &place, 1024, EventText::new(Kind::Post, NOW - 1000 + number, &[], br#"{"text":"hi"}"#));
    let request = node.receive(made.blob.clone(), made.inline(1024), Origin::Import).unwrap();
    (made.id, node.ask(request))
}

fn is_applied(answer: &Answered<Arrive>) -> bool {
    matches!(answer, Ok((_, Outcome::Applied(_))))
}

fn is_known(node: &Node, id: &EventId) -> bool {
    node.snapshot().unwrap().is_known(id).unwrap()
}

#[test]
fn a_full_disk_means_reading_only_and_recovery_by_itself() {
    // Noticed by the reserve before the database hits it, or only when a write fails.
    for reserve in [1, 0] {
        let disk = SimDisk::new();
        let node = start(&disk, reserve);
        let (first, answer) = post(&node, 1);
        assert!(is_applied(&answer), "{answer:?}");
        disk.trouble(DiskFault::Full);
        let (second, answer) = post(&node, 2);
        assert!(matches!(answer, Err(AskError::NotRun(RequestError::Full))), "{answer:?}");
        assert!(node.is_full());
        assert!(is_known(&node, &first) && !is_known(&node, &second), "reading goes on");
        let (_, answer) = post(&node, 2);
        assert!(matches!(answer, Err(AskError::NotRun(RequestError::Full))), "{answer:?}");
        assert!(is_known(&node, &first), "and on");
        disk.trouble(DiskFault::None);
        let (third, answer) = post(&node, 3);
        assert!(is_applied(&answer), "reserve {reserve}: {answer:?}");
        assert!(!node.is_full() && is_known(&node, &third) && !is_known(&node, &second) && is_known(&node, &first));
        node.stop();
        assert!(node.store().verify(Nanos(NOW)).unwrap().problems.is_empty());
    }
}

#[test]
fn any_other_fault_stops_the_writer_and_acknowledges_nothing_afterwards() {
    for trouble in [DiskFault::ReadOnly, DiskFault::SyncFails] {
        let disk = SimDisk::new();
        let node = start(&disk, 0);
        let (first, answer) = post(&node, 1);
        assert!(is_applied(&answer));
        disk.trouble(trouble);
        let (_, answer) = post(&node, 2);
        assert!(matches!(answer, Err(AskError::NotRun(RequestError::Failed(_)))), "{trouble:?}: {answer:?}");
        disk.trouble(DiskFault::None);
        let (_, answer) = post(&node, 3);
        assert!(matches!(answer, Err(AskError::NotRun(RequestError::Stopped))), "{trouble:?}: {answer:?}");
        drop(node);
        let node = start(&disk, 0);
        assert!(is_known(&node, &first), "what was acknowledged is there after a restart");
        node.stop();
    }
}

#[test]
fn a_key_that_is_not_the_folder_s_is_named() {
    let disk = SimDisk::new();
    start(&disk, 0).stop();
    let wrong = Store::open(Arc::new(disk), MasterKey::new(&[2; 32]), StoreOptions::default());
    assert_eq!(wrong.unwrap_err().to_string(), "the master key does not open this data folder");
}
