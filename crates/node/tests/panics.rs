//! A panic in the writer is logged under its thread's name and ends the node in order: everybody who waits is answered.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use anteroom_node::fetch::hunter::NoSources;
use anteroom_node::node_commands::Tick;
use anteroom_node::{Answered, AskError, Clock, Node, NodeOptions, RequestError, WriterCommand};
use engine::reads::{StoreError, StoreResult};
use model::Nanos;
use std::fmt::{Debug, Write as _};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{Batch, FolderDisk, MasterKey, Store, StoreOptions};
use tracing::field::{Field, Visit};
use tracing::span;

#[derive(Debug)]
struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Nanos {
        Nanos(1_800_000_000 * Nanos::SECOND)
    }
}

/// A command with a bug.
#[derive(Debug)]
struct Panics;

impl WriterCommand for Panics {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, _batch: &mut Batch<'_>) -> StoreResult<()> {
        panic!("planned")
    }
}

/// A command that keeps the writer busy until the test says so.
struct Waits(Mutex<Receiver<()>>);

impl WriterCommand for Waits {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, _batch: &mut Batch<'_>) -> StoreResult<()> {
        let _ = self.0.lock().unwrap().recv();
        Ok(())
    }
}

/// The log, a line per event.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

fn is_stopped<C: WriterCommand>(answer: &Answered<C>) -> bool {
    matches!(answer, Err(AskError::NotRun(RequestError::Stopped)))
}

#[test]
fn a_panic_of_the_writer_ends_the_node_in_order() {
    let log = Log::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(FolderDisk::new(folder.path()).unwrap());
    let options = StoreOptions { cache_bytes: 4 << 20, reserve_bytes: 0, ..StoreOptions::default() };
    let store = Store::open(disk, MasterKey::new(&[1; 32]), options).unwrap();
    // Two commands to a batch: the last ones are in the queue when the writer panics.
    let node_options = NodeOptions { batch_max: 2, ..NodeOptions::default() };
    let node = Node::start(store, Arc::new(FixedClock), Arc::new(NoSources), node_options);
    let (go_on, waits) = channel();
    let (sender, answers) = channel();
    node.submit(Waits(Mutex::new(waits)), |_| ()).unwrap();
    let beside = sender.clone();
    node.submit(Panics, move |answer| sender.send(is_stopped::<Panics>(&answer)).unwrap()).unwrap();
    for _ in 0..4 {
        let beside = beside.clone();
        node.submit(Tick, move |answer| beside.send(is_stopped::<Tick>(&answer)).unwrap()).unwrap();
    }
    drop(go_on);
    let stopped: Vec<bool> =
        (0..5).map(|_| answers.recv_timeout(Duration::from_secs(60)).expect("an answer for everybody")).collect();
    assert_eq!(stopped, vec![true; 5]);
    assert!(node.has_stopped());
    assert!(is_stopped::<Tick>(&node.ask(Tick)), "nothing is accepted any more");
    assert_eq!(node.submit(Tick, |_| ()), Err(RequestError::Stopped));
    node.stop();
    let logged = log.0.lock().unwrap().clone();
    let is_named = |line: &&String| line.contains("anteroom-writer") && line.contains("planned");
    assert_eq!(logged.iter().filter(is_named).count(), 1, "{logged:?}");
}
