//! The `nostr` protocol in whatever order its events and its git data come: the same events are served, the same refs are
//! wanted, the same maintainers are confirmed, and a naive model that knows only the set agrees.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod repositories;

use anteroom_simulator::disk::SimDisk;
use engine::policy::Policy;
use engine::protocol::nostr::maintainers;
use engine::reads::Reads as _;
use engine::receive::accept_nostr;
use engine::rows::{Origin, Outcome};
use model::need::Oid;
use model::nostr::{Address, NostrEvent, ServiceName, VerifiedNostr};
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
const URL: &str = "https://node.example";
const MINUTE: u64 = 60 * Nanos::SECOND;

fn open(disk: &SimDisk) -> WriterCore {
    let policy = Policy { service: ServiceName::of_url(URL), ..Policy::default() };
    let options = StoreOptions { policy, cache_bytes: 4 << 20, reserve_bytes: 0, random: store::KeySource::Seed(1) };
    WriterCore::new(Store::open(Arc::new(disk.clone()), MasterKey::new(&[1; 32]), options).unwrap())
}

fn key(author: u8) -> NostrKey {
    sign(author, 1, 1, &[]).author
}

fn oid(number: u8) -> Oid {
    [number; 20]
}

fn sign(author: u8, second: u64, kind: u16, tags: &[&[&str]]) -> VerifiedNostr {
    let tags = tags.iter().map(|tag| tag.iter().map(|value| (*value).to_owned()).collect()).collect();
    NostrEvent::sign(&[author; 32], BEGINNING + second, kind, tags, "").unwrap()
}

fn announcement(author: u8, second: u64, is_here: bool, named: &[u8]) -> VerifiedNostr {
    let host = if is_here { URL } else { "https://elsewhere.example" };
    let maintainers: Vec<String> =
        ["maintainers".to_owned()].into_iter().chain(named.iter().map(|other| key(*other).to_string())).collect();
    let maintainers: Vec<&str> = maintainers.iter().map(String::as_str).collect();
    sign(author, second, 30617, &[&["d", "tool"], &["clone", host], &["relays", host], &maintainers])
}

fn state(author: u8, second: u64, refs: &[(u8, u8)]) -> VerifiedNostr {
    let refs: Vec<[String; 2]> =
        refs.iter().map(|(name, number)| [format!("refs/heads/{name}"), hex::encode(oid(*number))]).collect();
    let refs: Vec<Vec<&str>> = refs.iter().map(|entry| entry.iter().map(String::as_str).collect()).collect();
    let mut tags: Vec<&[&str]> = vec![&["d", "tool"]];
    tags.extend(refs.iter().map(Vec::as_slice));
    sign(author, second, 30618, &tags)
}

fn address(author: u8) -> String {
    format!("30617:{}:tool", key(author))
}

fn pull_request(author: u8, second: u64, owner: u8, number: u8) -> VerifiedNostr {
    sign(author, second, 1618, &[&["a", &address(owner)], &["c", &hex::encode(oid(number))]])
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
            core.ask(GitArrived { owners, identifier, present, is_authorised, looks_anyway: false }, NOW).unwrap();
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

/// Which events are applied, from the set alone: whatever can be, again and again until nothing more can.
fn naive_applied(items: &[Item]) -> BTreeSet<String> {
    let events: BTreeMap<String, &VerifiedNostr> = items
        .iter()
        .filter_map(|item| match item {
            Item::Event(event) => Some((event.id.to_string(), event)),
            Item::Data { .. } => None,
        })
        .collect();
    let mut has_data = BTreeSet::new();
    let mut present = BTreeSet::new();
    for item in items {
        if let Item::Data { owner, present: numbers, is_authorised } = item {
            present.extend(numbers.iter().map(|number| (key(*owner).to_string(), hex::encode(oid(*number)))));
            has_data.extend(is_authorised.then(|| key(*owner).to_string()));
        }
    }
    let mut applied: BTreeSet<String> = BTreeSet::new();
    loop {
        let announced: BTreeSet<String> = applied
            .iter()
            .map(|id| events[id])
            .filter(|event| event.kind == 30617)
            .map(|event| event.author.to_string())
            .collect();
        let can_be = |event: &VerifiedNostr| {
            let author = event.author.to_string();
            let value = |tag: &[String]| tag.get(1).cloned().unwrap_or_default();
            let named = |letters: &[&str]| -> Vec<String> {
                event.tags.iter().filter(|tag| letters.contains(&tag[0].as_str())).map(|tag| value(tag)).collect()
            };
            let owner_of = |address: &String| address.split(':').nth(1).unwrap().to_owned();
            match event.kind {
                30617 => !event.tags.iter().any(|tag| tag[0] == "clone" && tag[1] == URL) || has_data.contains(&author),
                30618 => {
                    // Of two that name one ref the first counts.
                    let mut refs = BTreeMap::new();
                    for tag in event.tags.iter().filter(|tag| tag[0].starts_with("refs/")) {
                        refs.entry(tag[0].clone()).or_insert_with(|| value(tag));
                    }
                    announced.contains(&author)
                        && refs.into_values().all(|oid| present.contains(&(author.clone(), oid)))
                }
                1618 => {
                    let oid = &named(&["c"])[0];
                    named(&["a"]).iter().any(|address| present.contains(&(owner_of(address), oid.clone())))
                }
                _ => {
                    let addresses = named(&["a"]);
                    addresses.is_empty()
                        || addresses.iter().any(|address| announced.contains(&owner_of(address)))
                        || named(&["e"]).iter().any(|id| applied.contains(id))
                }
            }
        };
        let more: Vec<String> = events
            .iter()
            .filter(|(id, event)| !applied.contains(*id) && can_be(event))
            .map(|(id, _)| id.clone())
            .collect();
        if more.is_empty() {
            return applied;
        }
        applied.extend(more);
    }
}

/// Who deleted what: by id, or by address up to the time of the delete; only one's own.
fn naive_deleted(items: &[Item], applied: &BTreeSet<String>) -> BTreeSet<String> {
    let events = || {
        items.iter().filter_map(|item| match item {
            Item::Event(event) => Some(event),
            Item::Data { .. } => None,
        })
    };
    let mut deleted = BTreeSet::new();
    for delete in events().filter(|event| event.kind == 5) {
        for target in events().filter(|event| event.author == delete.author && event.kind != 5) {
            let by_id = delete.tags_of("e").any(|values| values[0] == target.id.to_string());
            let own = Address::of(target).map(|address| address.to_string());
            let by_address = delete.tags_of("a").any(|values| Some(&values[0]) == own.as_ref());
            if (by_id || by_address && target.created_at <= delete.created_at)
                && applied.contains(&target.id.to_string())
            {
                deleted.insert(target.id.to_string());
            }
        }
    }
    deleted
}

fn check_against_the_set(core: &WriterCore, items: &[Item]) {
    let applied = naive_applied(items);
    let deleted = naive_deleted(items, &applied);
    let shown: BTreeMap<String, String> = lines(core)
        .into_iter()
        .filter_map(|line| line.strip_prefix("nostr ").map(|line| (line[..64].to_owned(), line.to_owned())))
        .collect();
    assert_eq!(shown.keys().cloned().collect::<BTreeSet<_>>(), applied);
    for (id, line) in &shown {
        assert_eq!(line.contains("deleted"), deleted.contains(id), "{line}");
    }
    // The latest at an address wins, and of two of the same second the one with the lowest id.
    let mut winners: BTreeMap<String, (u64, std::cmp::Reverse<String>)> = BTreeMap::new();
    for item in items {
        if let Item::Event(event) = item
            && applied.contains(&event.id.to_string())
            && let Some(address) = Address::of(event)
        {
            let place = (event.created_at, std::cmp::Reverse(event.id.to_string()));
            let winner = winners.entry(address.to_string()).or_insert_with(|| place.clone());
            *winner = winner.clone().max(place);
        }
    }
    let winners: BTreeSet<String> = winners.into_values().map(|(_, id)| id.0).collect();
    for (id, line) in &shown {
        assert_eq!(line.ends_with(" wins"), winners.contains(id), "{line}");
    }
    assert_eq!(core.store().verify(NOW).unwrap().problems, Vec::<String>::new());
}

fn item() -> impl Strategy<Value = Item> {
    let (author, second) = (1..=3_u8, 1..20_u64);
    let named = prop::collection::vec(1..=3_u8, 0..3);
    let refs = prop::collection::vec((0..3_u8, 1..5_u8), 0..4);
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
