//! The `nostr` protocol in whatever order its events and its git data come: the same events are served, the same refs are
//! wanted, the same maintainers are confirmed, and a naive model that knows only the set agrees.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod repositories;

use anteroom_simulator::disk::SimDisk;
use anteroom_simulator::protocol::nostr::reference::{GitHere, NostrModel};
use anteroom_simulator::protocol::nostr::{self, URL, address, key, oid, oid_text};
use engine::policy::Policy;
use engine::protocol::nostr::maintainers;
use engine::reads::Reads as _;
use engine::receive::accept_nostr;
use engine::rows::{Origin, Outcome};
use model::nostr::{ServiceName, VerifiedNostr};
use model::{Nanos, NostrKey};
use node::WriterCore;
use node::git::wanted_refs;
use node::node_commands::Arrive;
use node::nostr::{GitArrived, NostrSubmission, SubmitNostr};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{MasterKey, Store, StoreOptions};

const BEGINNING: u64 = 1_700_000_000;
const NOW: Nanos = Nanos((BEGINNING + 1000) * Nanos::SECOND);
const MINUTE: u64 = 60 * Nanos::SECOND;

fn open(disk: &SimDisk) -> WriterCore {
    let policy = Policy { service: ServiceName::of_url(URL), ..Policy::default() };
    let options = StoreOptions { policy, cache_bytes: 4 << 20, reserve_bytes: 0, random: store::KeySource::Seed(1) };
    WriterCore::new(Store::open(Arc::new(disk.clone()), MasterKey::new(&[1; 32]), options).unwrap())
}

fn sign(author: u8, second: u64, kind: u16, tags: &[&[&str]]) -> VerifiedNostr {
    nostr::sign(author, BEGINNING + second, kind, tags)
}

fn announcement(author: u8, second: u64, is_here: bool, named: &[u8]) -> VerifiedNostr {
    nostr::announcement(author, BEGINNING + second, is_here, named)
}

fn state(author: u8, second: u64, refs: &[(&str, u8)]) -> VerifiedNostr {
    nostr::state(author, BEGINNING + second, refs)
}

fn pull_request(author: u8, second: u64, owner: u8, number: u8) -> VerifiedNostr {
    nostr::pull_request(author, BEGINNING + second, owner, number)
}

/// Something that comes.
#[derive(Clone, Debug)]
enum Item {
    Event(VerifiedNostr),
    Data { owner: u8, present: Vec<u8>, is_authorised: bool },
}

fn bring(core: &WriterCore, item: &Item) {
    match item {
        Item::Event(event) => {
            let arrival = accept_nostr(event.clone(), Origin::Import).unwrap();
            core.ask(Arrive(Box::new(arrival)), NOW).unwrap();
        }
        Item::Data { owner, present, is_authorised } => {
            let owners = [key(*owner)].into();
            let present = present.iter().map(|number| oid(*number)).collect();
            let (identifier, is_authorised) = ("tool".to_owned(), *is_authorised);
            let (looks_anyway, pull_requests) = (false, BTreeSet::new());
            let arrived = GitArrived { owners, identifier, present, is_authorised, looks_anyway, pull_requests };
            core.ask(arrived, NOW).unwrap();
        }
    }
    core.settle(NOW).unwrap();
}

fn lines(core: &WriterCore) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    core.store().snapshot().unwrap().dump(&mut |line| lines.extend([line])).unwrap();
    lines
}

/// What is known of repositories: who is confirmed for each owner, and which refs they want.
fn repositories(core: &WriterCore) -> Vec<String> {
    let db = core.store().snapshot().unwrap();
    let told = |author: u8| {
        let confirmed = maintainers::confirmed(&*db, &key(author), "tool").unwrap();
        format!("{author}: {confirmed:?} {:?}", wanted_refs(&db, &key(author), "tool").unwrap())
    };
    (1..=3).map(told).collect()
}

/// The node shows what the naive model says of the set, and wants the refs that it says.
fn check_against_the_set(core: &WriterCore, items: &[Item]) {
    let (mut events, mut git) = (BTreeMap::new(), GitHere::default());
    for item in items {
        match item {
            Item::Event(event) => drop(events.insert(event.id, event)),
            Item::Data { owner, present, is_authorised } => {
                let owner = key(*owner).to_string();
                git.objects.extend(present.iter().map(|number| (owner.clone(), oid_text(*number))));
                git.repositories.extend(is_authorised.then_some(owner));
            }
        }
    }
    let model = NostrModel::new(events.values().copied(), &git);
    assert_eq!(lines(core), model.lines());
    let db = core.store().snapshot().unwrap();
    for owner in (1..=3).map(key) {
        let confirmed = maintainers::confirmed(&*db, &owner, "tool").unwrap();
        assert_eq!(
            confirmed.iter().map(NostrKey::to_string).collect::<BTreeSet<_>>(),
            model.confirmed(&owner.to_string())
        );
        let wanted = wanted_refs(&db, &owner, "tool").unwrap();
        let refs = wanted.refs.into_iter().map(|(name, oid)| (name, hex::encode(oid))).collect();
        assert_eq!((refs, wanted.head), model.refs(&owner.to_string()));
    }
    assert_eq!(core.store().verify(NOW).unwrap().problems, Vec::<String>::new());
}

fn item() -> impl Strategy<Value = Item> {
    let (author, second) = (1..=3_u8, 1..20_u64);
    let named = prop::collection::vec(1..=3_u8, 0..3);
    let refs = prop::collection::vec((prop::sample::select(vec!["main", "next", "next/one"]), 1..5_u8), 0..4);
    prop_oneof![
        4 => (author.clone(), second.clone(), prop::bool::weighted(0.8), named)
            .prop_map(|(author, second, is_here, named)| Item::Event(announcement(author, second, is_here, &named))),
        4 => (author.clone(), second.clone(), refs)
            .prop_map(|(author, second, refs)| Item::Event(state(author, second, &refs))),
        2 => (author.clone(), second.clone(), 1..=3_u8, 1..5_u8)
            .prop_map(|(author, second, owner, number)| Item::Event(pull_request(author, second, owner, number))),
        2 => (author.clone(), second.clone(), 1..=3_u8)
            .prop_map(|(author, second, owner)| Item::Event(sign(author, second, 1621, &[&["a", &address(owner)]]))),
        1 => (author.clone(), second.clone()).prop_map(|(author, second)| {
            Item::Event(sign(author, second, 5, &[&["a", &address(author)]]))
        }),
        4 => (author, prop::collection::vec(1..5_u8, 0..4), any::<bool>())
            .prop_map(|(owner, present, is_authorised)| Item::Data { owner, present, is_authorised }),
    ]
}

fn items() -> impl Strategy<Value = (Vec<Item>, Vec<Item>)> {
    let with_deletes = prop::collection::vec(item(), 1..14).prop_map(|mut items| {
        // One delete by id, of the first event.
        let first = items.iter().find_map(|item| match item {
            Item::Event(event) if event.kind != 5 => Some(event.clone()),
            _ => None,
        });
        // A comment that names a repository which may not be here, and an event which may: one of them is enough.
        if let Some(event) = &first {
            let id = event.id.to_string();
            items.push(Item::Event(sign(2, 15, 1111, &[&["a", &address(3)], &["e", &id]])));
        }
        if let Some(event) = first.filter(|event| event.created_at % 2 == 0) {
            let author = (1..=3).find(|author| key(*author) == event.author).unwrap();
            items.push(Item::Event(sign(author, 1, 5, &[&["e", &event.id.to_string()]])));
        }
        items
    });
    with_deletes.prop_flat_map(|items| {
        // The other order has everything, and some of it twice.
        let repeated = [items.clone(), items.iter().take(3).cloned().collect()].concat();
        (Just(items), Just(repeated).prop_shuffle())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_events_and_git_data_does_not_matter((items, other) in items()) {
        let (one, two) = (open(&SimDisk::new()), open(&SimDisk::new()));
        items.iter().for_each(|item| bring(&one, item));
        other.iter().for_each(|item| bring(&two, item));
        check_against_the_set(&one, &items);
        check_against_the_set(&two, &items);
        prop_assert_eq!(lines(&one), lines(&two));
        prop_assert_eq!(repositories(&one), repositories(&two));
    }
}

#[test]
fn maintainers_count_if_they_name_each_other() {
    let core = open(&SimDisk::new());
    for (author, named) in [(1, &[2][..]), (2, &[1, 3]), (3, &[2]), (4, &[1]), (5, &[6]), (6, &[5])] {
        bring(&core, &Item::Event(announcement(author, 1, true, named)));
    }
    let db = core.store().snapshot().unwrap();
    let confirmed = |author: u8| maintainers::confirmed(&*db, &key(author), "tool").unwrap();
    // One, two and three through two; four is named by nobody; five and six are others who use the same name.
    assert_eq!(confirmed(1), [1, 2, 3].map(key).into());
    assert_eq!(confirmed(3), confirmed(1));
    assert_eq!(confirmed(4), [key(4)].into());
    assert_eq!(confirmed(5), [5, 6].map(key).into());
    assert_eq!(maintainers::confirmed(&*db, &key(1), "other").unwrap(), BTreeSet::new());
}

fn submit(core: &WriterCore, event: &VerifiedNostr, now: Nanos) -> NostrSubmission {
    core.ask(SubmitNostr(Box::new(event.clone())), now).unwrap()
}

#[test]
fn clients_are_taken_for_what_is_here_and_may_come_again() {
    let core = open(&SimDisk::new());
    let is_taken = |event: &VerifiedNostr| matches!(submit(&core, event, NOW), NostrSubmission::Admitted(_));
    let (early, issue) = (state(1, 2, &[]), sign(2, 3, 1621, &[&["a", &address(1)]]));
    assert!(!is_taken(&early) && !is_taken(&issue) && !is_taken(&announcement(1, 1, false, &[])));
    assert!(is_taken(&announcement(1, 1, true, &[3])));
    assert!(is_taken(&early) && is_taken(&issue));
    // A maintainer who was named may announce it elsewhere; others may not.
    assert!(is_taken(&announcement(3, 1, false, &[])) && !is_taken(&announcement(2, 1, false, &[])));
    let comment = sign(3, 4, 1111, &[&["E", &issue.id.to_string()]]);
    assert!(is_taken(&comment));
    assert!(!is_taken(&sign(9, 5, 1, &[])) && !is_taken(&sign(9, 5, 0, &[])) && !is_taken(&sign(9, 5, 20_001, &[])));
    // Whoever takes part may have a profile, and what a comment quotes may come.
    assert!(is_taken(&sign(3, 6, 0, &[])));
    let quoted = sign(9, 7, 1, &[]);
    assert!(is_taken(&sign(3, 8, 1111, &[&["E", &issue.id.to_string()], &["q", &quoted.id.to_string()]])));
    assert!(is_taken(&quoted));
    // What its author has deleted does not come again.
    let gone = sign(3, 9, 1111, &[&["E", &issue.id.to_string()]]);
    assert!(is_taken(&sign(3, 10, 5, &[&["e", &gone.id.to_string()]])) && !is_taken(&gone));
    // Everybody may read what is here, so nothing private is taken.
    for kind in [4, 13, 14, 15, 1059] {
        assert!(!is_taken(&sign(3, 9, kind, &[&["e", &issue.id.to_string()]])), "{kind}");
    }
}

#[test]
fn git_events_wait_half_an_hour_and_longer_if_they_come_again() {
    let core = open(&SimDisk::new());
    let event = announcement(1, 1, true, &[]);
    assert!(matches!(submit(&core, &event, NOW), NostrSubmission::Admitted(Outcome::Held(..))));
    let held = |now: Nanos| {
        core.settle(now).unwrap();
        core.store().snapshot().unwrap().held_total().unwrap()
    };
    assert_eq!(held(NOW.plus(29 * MINUTE)), 1);
    assert!(matches!(submit(&core, &event, NOW.plus(29 * MINUTE)), NostrSubmission::Admitted(Outcome::Known(_))));
    assert_eq!(held(NOW.plus(58 * MINUTE)), 1);
    assert_eq!(held(NOW.plus(60 * MINUTE)), 0);
    // Nothing of it is remembered.
    assert!(matches!(submit(&core, &event, NOW.plus(61 * MINUTE)), NostrSubmission::Admitted(Outcome::Held(..))));
}
