//! The life of events of the `probe` protocol: they wait, are released, rebuilt, verified, explained, exported and deleted,
//! and no door of the product takes them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use anteroom_simulator::disk::SimDisk;
use anteroom_simulator::protocol::probe::{MadeProbe, open_door, receive};
use anteroom_simulator::protocol::space::world::BEGINNING;
use anteroom_simulator::requests::SimRequest;
use engine::policy::Policy;
use engine::reads::Reads as _;
use engine::rows::{Outcome, TurnedAway};
use model::crypto::content_hash;
use model::probe::ProbeKind;
use model::{AuthorKey, Nanos, Need, SpaceId};
use node::bundle::{ExportOptions, Pipe, export, import};
use node::explain::{StageExplanation, explain};
use node::fetch::hunter::NoSources;
use node::node_commands::{Arrive, Tick};
use node::{Clock, Node, NodeOptions, WriterCore};
use std::collections::BTreeSet;
use std::sync::Arc;
use store::{MasterKey, Store, StoreOptions};

const NOW: Nanos = Nanos(BEGINNING + 10_000_000_000);
const HOUR: u64 = 3600 * Nanos::SECOND;

fn open(disk: &SimDisk) -> Store {
    let options = StoreOptions {
        cache_bytes: 4 << 20,
        reserve_bytes: 0,
        random: store::KeySource::Seed(1),
        ..StoreOptions::default()
    };
    Store::open(Arc::new(disk.clone()), MasterKey::new(&[1; 32]), options).unwrap()
}

struct TestNode {
    core: WriterCore,
}

impl TestNode {
    fn new() -> TestNode {
        TestNode { core: WriterCore::new(open(&SimDisk::new())) }
    }

    fn bring_at(&self, made: &MadeProbe, blob: Vec<u8>, now: Nanos) -> Outcome {
        let policy = Policy::default();
        let keys = self.core.store().keys().clone();
        let arrival = receive(&keys, &policy, blob, made.inline(policy.inline_bytes_max)).unwrap();
        let (id, outcome) = self.core.ask(Arrive(Box::new(arrival)), now).unwrap();
        assert_eq!(id, made.id);
        self.core.settle(now).unwrap();
        outcome
    }

    fn bring(&self, made: &MadeProbe) -> Outcome {
        self.bring_at(made, made.statement.sign(0), NOW)
    }

    fn lines(&self) -> BTreeSet<String> {
        let mut lines = BTreeSet::new();
        self.core.store().snapshot().unwrap().dump(&mut |line| lines.extend([line])).unwrap();
        lines
    }

    fn explained(&self, made: &MadeProbe) -> StageExplanation {
        explain(&self.core.store().snapshot().unwrap(), &made.id).unwrap().standing
    }

    fn assert_sound(&self) {
        assert_eq!(self.core.store().verify(NOW).unwrap().problems, Vec::<String>::new());
    }
}

fn value(author: u8, second: u64, name: &str, after: &str, content: &str) -> MadeProbe {
    MadeProbe::new(ProbeKind::Value, author, BEGINNING + second * Nanos::SECOND, name, after, content.as_bytes())
}

fn clear(author: u8, second: u64, name: &str) -> MadeProbe {
    MadeProbe::new(ProbeKind::Clear, author, BEGINNING + second * Nanos::SECOND, name, "", b"")
}

fn shown(made: &MadeProbe) -> String {
    format!(
        "value {} {} {} here:{}",
        made.statement.author,
        made.statement.name,
        made.stamp(),
        content_hash(&made.wire)
    )
}

fn winner(made: &MadeProbe) -> String {
    format!("winner {} {} {}", made.statement.author, made.statement.name, made.stamp())
}

#[test]
fn a_value_waits_for_another_by_name_is_explained_and_released() {
    let node = TestNode::new();
    let (first, second) = (value(1, 1, "red", "", "one"), value(1, 2, "blue", "red", "two"));
    let need = Need::Probe { author: first.statement.author, name: "red".into() };
    assert!(matches!(node.bring(&second), Outcome::Held(_, unmet) if unmet == [need.clone()]));
    // A stranger's value of the same name meets nobody else's need.
    assert!(matches!(node.bring(&value(2, 1, "red", "", "other")), Outcome::Applied(_)));
    let StageExplanation::Held { needs, until, .. } = node.explained(&second) else { panic!("it is not held") };
    assert_eq!(needs.iter().map(|unmet| unmet.need.clone()).collect::<Vec<_>>(), [need]);
    assert!(needs[0].hunted.is_some(), "nobody looks for it");
    assert_eq!(until, NOW.plus(24 * HOUR).0);
    node.assert_sound();
    assert!(matches!(node.bring(&first), Outcome::Applied(_)));
    assert!(matches!(node.explained(&second), StageExplanation::Applied(_)));
    let lines = node.lines();
    assert!([shown(&first), shown(&second), winner(&first), winner(&second)].iter().all(|line| lines.contains(line)));
    node.assert_sound();
}

#[test]
fn a_fresh_submission_renews_the_wait_and_without_one_it_ends() {
    let node = TestNode::new();
    let made = value(1, 2, "blue", "red", "two");
    let later = |hours| NOW.plus(hours * HOUR);
    node.bring(&made);
    assert!(matches!(node.bring_at(&made, made.statement.sign(1), later(20)), Outcome::Known(_)));
    let is_held = |now| {
        node.core.ask(Tick, now).unwrap();
        node.core.settle(now).unwrap();
        matches!(node.explained(&made), StageExplanation::Held { .. })
    };
    assert!(is_held(later(30)), "it was renewed");
    assert!(!is_held(later(45)), "its time was up");
    node.assert_sound();
}

#[test]
fn content_that_comes_with_a_renewal_is_kept_when_the_wait_ends_in_the_same_batch() {
    let node = TestNode::new();
    let (first, second) = (value(1, 1, "red", "", "one"), value(1, 2, "blue", "red", "two"));
    let keys = node.core.store().keys().clone();
    let arrival = |made: &MadeProbe, inline: Option<Vec<u8>>| {
        SimRequest::arrive(receive(&keys, &Policy::default(), made.statement.sign(0), inline).unwrap())
    };
    node.core.run(vec![arrival(&second, None)], NOW).unwrap();
    let both = vec![arrival(&second, Some(second.wire.clone())), arrival(&first, Some(first.wire.clone()))];
    node.core.run(both, NOW.plus(HOUR)).unwrap();
    node.core.settle(NOW.plus(HOUR)).unwrap();
    assert!(node.lines().contains(&shown(&second)), "{:#?}", node.lines());
    node.assert_sound();
}

#[test]
fn a_clock_that_went_back_shortens_no_wait() {
    let node = TestNode::new();
    let made = value(1, 2, "blue", "red", "two");
    node.bring(&made);
    node.bring_at(&made, made.statement.sign(1), Nanos(NOW.0 - HOUR));
    let StageExplanation::Held { until, .. } = node.explained(&made) else { panic!("it is not held") };
    assert_eq!(until, NOW.plus(24 * HOUR).0);
    node.assert_sound();
}

#[test]
fn of_values_at_one_moment_the_least_id_wins_whatever_comes_first() {
    let mut tied = [value(1, 1, "red", "", "one"), value(1, 1, "red", "", "two")];
    tied.sort_by_key(|made| made.id);
    for order in [[0_usize, 1], [1, 0]] {
        let node = TestNode::new();
        for index in order {
            node.bring(&tied[index]);
        }
        let lines = node.lines();
        assert!(lines.contains(&winner(&tied[0])) && !lines.contains(&winner(&tied[1])));
    }
}

#[test]
fn a_clear_deletes_earlier_values_before_and_after_it_came() {
    let (early, late, cleared) = (value(1, 1, "red", "", "one"), value(1, 5, "red", "", "five"), clear(1, 3, "red"));
    let overdue = value(1, 2, "red", "", "two");
    let node = TestNode::new();
    for made in [&early, &late, &cleared, &overdue] {
        node.bring(made);
    }
    let lines = node.lines();
    for made in [&early, &overdue] {
        let line = format!("value {} red {} deleted:{}", made.statement.author, made.stamp(), cleared.stamp());
        assert!(lines.contains(&line), "{line} is not among {lines:#?}");
        let StageExplanation::Applied(applied) = node.explained(made) else { panic!("it is not applied") };
        assert_eq!(applied.content.deleted_by, Some(cleared.id.to_string()));
    }
    assert!(lines.contains(&shown(&late)) && lines.contains(&winner(&late)));
    node.assert_sound();
}

#[test]
fn one_statement_signed_twice_is_one_event_and_a_clash_is_turned_away() {
    let node = TestNode::new();
    let made = value(1, 1, "red", "", "one");
    assert!(matches!(node.bring(&made), Outcome::Applied(_)));
    assert!(matches!(node.bring_at(&made, made.statement.sign(9), NOW), Outcome::Known(_)));
    assert_eq!(node.bring_at(&made, made.clash(), NOW), Outcome::TurnedAway(TurnedAway::Clash));
    assert_eq!(node.lines().len(), 2);
}

#[test]
fn what_was_refused_stays_refused() {
    let node = TestNode::new();
    let made = value(1, 1, "red", "red", "itself");
    node.bring(&value(1, 1, "red", "", "one"));
    assert!(matches!(node.bring(&made), Outcome::Refused(_)));
    assert!(matches!(node.bring(&made), Outcome::Refused(_)));
    assert!(matches!(node.explained(&made), StageExplanation::Refused { .. }));
}

#[test]
fn views_are_rebuilt_from_the_events_and_stay_the_same() {
    let node = TestNode::new();
    let all = [
        value(1, 1, "red", "", "one"),
        value(1, 2, "red", "", "two"),
        value(1, 3, "blue", "red", "three"),
        clear(1, 2, "red"),
    ];
    for made in &all {
        node.bring(made);
    }
    let before = node.lines();
    node.core.store().rebuild_views(NOW, &mut |_| ()).unwrap();
    assert_eq!(node.lines(), before);
    assert!(before.len() > all.len());
    node.assert_sound();
}

#[test]
fn its_events_live_in_the_commons_under_authors_of_their_own() {
    let node = TestNode::new();
    let made = value(1, 1, "red", "", &"long ".repeat(1000));
    node.bring(&made);
    let db = node.core.store().snapshot().unwrap();
    let seq = db.seq(&made.id).unwrap().unwrap();
    assert_eq!(db.space_of(seq).unwrap(), Some(SpaceId::COMMONS));
    let meta = db.event(seq).unwrap().unwrap().meta.unwrap();
    assert_eq!(db.author_key(meta.author).unwrap(), AuthorKey::Probe(made.statement.author));
    assert!(db.identity(meta.author).is_err());
    let used = db.usage(meta.space, meta.author).unwrap().by_state;
    assert_eq!(used.iter().map(|(events, _)| events).sum::<u64>(), 1);
}

#[derive(Debug)]
struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Nanos {
        NOW
    }
}

#[test]
fn it_is_exported_and_no_door_of_the_product_takes_it() {
    let node = TestNode::new();
    let made = value(1, 1, "red", "", "one");
    node.bring(&made);
    let mut bundle = Vec::new();
    let options = ExportOptions { space: Some(SpaceId::COMMONS), ..ExportOptions::default() };
    let done = export(&node.core.store().snapshot().unwrap(), options, None, &mut bundle, &mut |_| ()).unwrap();
    assert_eq!(done.events, 1);
    let blob = made.statement.sign(0);
    assert!(bundle.windows(blob.len()).any(|window| window == blob));

    let transit = [3; 32];
    let other = TestNode::new();
    let secret = node::node_commands::AddTransit { secret: transit, space: SpaceId::COMMONS, peer: 1 };
    other.core.ask(secret, NOW).unwrap();
    let keys = other.core.store().keys().clone();
    assert_eq!(open_door(&keys, &Policy::default(), &blob, transit), None);

    let node = Node::start(open(&SimDisk::new()), Arc::new(FixedClock), Arc::new(NoSources), NodeOptions::default());
    let (imported, ended) = import(&node, Pipe::new(bundle.as_slice(), std::env::temp_dir()), None, &mut |_| true);
    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!(node.snapshot().unwrap().seq(&made.id).unwrap(), None);
    assert_eq!((imported.records, imported.dropped["version"]), (1, 1));
    node.stop();
}
