//! Events are gathered from other relays, through real nodes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use common::git_work::{Work, clone, run_git};
use common::nostr_client::{Author, NostrClient, relay_document};
use common::served::Served;
use model::nostr::NostrEvent;
use serde_json::{Value, json};
use std::net::TcpListener;
use tungstenite::Message;

const PRIVATE: (&str, &str) = ("ANTEROOM_SYNC_PRIVATE_NETWORKS", "127.0.0.0/8");

fn start(home: Home, words: &[&str], variables: &[(&str, &str)]) -> Served {
    let words = [&["--set", "git.enabled=1", "--set", "sync.default_delay_secs=0"], words].concat();
    Served::start_with(home, &words, &[&[PRIVATE], variables].concat())
}

/// One announcement that lists these nodes.
fn announce(owner: &Author, nodes: &[&Served]) -> NostrEvent {
    let clones: Vec<String> = nodes.iter().map(|node| format!("{}/{}/tool.git", node.url, owner.npub())).collect();
    let relays: Vec<String> = nodes.iter().map(|node| node.url.replacen("http", "ws", 1)).collect();
    let list = |name: &'static str, values: &[String]| -> Vec<String> {
        std::iter::once(name.to_owned()).chain(values.iter().cloned()).collect()
    };
    let (clones, relays) = (list("clone", &clones), list("relays", &relays));
    let clones: Vec<&str> = clones.iter().map(String::as_str).collect();
    let relays: Vec<&str> = relays.iter().map(String::as_str).collect();
    owner.event(30617, &[&["d", "tool"], &clones, &relays], "")
}

/// Issues of the past.
fn issues(owner: &Author, numbers: std::ops::Range<u64>) -> Vec<NostrEvent> {
    let address = format!("30617:{}:tool", owner.key());
    let tags = || vec![vec!["a".to_owned(), address.clone()]];
    let sign = |number| NostrEvent::sign(&[9; 32], 1_700_000_000 + number, 1621, tags(), &format!("issue {number}"));
    numbers.map(|number| NostrEvent::clone(&sign(number).unwrap())).collect()
}

fn wait_for_count(client: &mut NostrClient, filter: &Value, count: usize) {
    loop {
        client.say(&json!(["COUNT", "n", filter]));
        let heard = client.hear();
        if heard[2]["count"] == count {
            return;
        }
        assert!(heard[0] == "COUNT" || heard.to_string().contains("rate-limited"), "{heard}");
        std::thread::yield_now();
    }
}

#[test]
fn two_nodes_that_differ_in_a_thousand_events_converge_and_again_after_a_cut() {
    let (owner, work) = (Author::new(1), Work::new());
    let (first, second) = (start(Home::ready(), &[], &[]), start(Home::ready(), &[], &[]));
    let announced = announce(&owner, &[&first, &second]);
    let commit = work.commit("one");
    let mut client = NostrClient::connect(&first.url);
    client.publish_well(&announced);
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &commit)]));
    work.git(&["push", &format!("{}/{}/tool.git", first.url, owner.npub()), "main"]);
    for issue in issues(&owner, 0..1000) {
        client.publish_well(&issue);
    }
    // Only the announcement is brought to the second one: state, issues and git data follow.
    let mut other = NostrClient::connect(&second.url);
    assert!(other.publish_well(&announced).starts_with("purgatory"));
    wait_for_count(&mut other, &json!({ "kinds": [1621] }), 1000);
    wait_for_count(&mut other, &json!({ "kinds": [30617, 30618] }), 2);
    let (_folder, copy) = clone(&format!("{}/{}/tool.git", second.url, owner.npub()), &[]);
    assert_eq!(run_git(&copy, &["rev-parse", "HEAD"]).1.trim(), commit);
    // Live.
    let more = issues(&owner, 1000..1003);
    client.publish_well(&more[0]);
    wait_for_count(&mut other, &json!({ "kinds": [1621] }), 1001);
    // What the second has comes to the first as well.
    other.publish_well(&more[1]);
    wait_for_count(&mut client, &json!({ "kinds": [1621] }), 1002);
    // A cut, in which something happens on one side.
    let listen = first.url.trim_start_matches("http://").to_owned();
    let first = start(first.kill(), &["--listen", &listen], &[]);
    let mut client = NostrClient::connect(&first.url);
    client.publish_well(&more[2]);
    wait_for_count(&mut other, &json!({ "kinds": [1621] }), 1003);
    for served in [first, second] {
        let log = served.stop();
        assert!(!log.contains("ERROR") && !log.contains("panicked"), "{log}");
    }
}

#[test]
fn what_comes_before_its_announcement_waits_for_it() {
    let (owner, other, work) = (Author::new(1), Author::new(2), Work::new());
    let (first, second) = (start(Home::ready(), &[], &[]), start(Home::ready(), &[], &[]));
    let commit = work.commit("one");
    let mut client = NostrClient::connect(&first.url);
    let announced = announce(&owner, &[&first, &second]);
    client.publish_well(&announced);
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &commit)]));
    work.git(&["push", &format!("{}/{}/tool.git", first.url, owner.npub()), "main"]);
    let comment = other.event(1111, &[&["A", &format!("30617:{}:tool", owner.key())]], "hello");
    client.publish_well(&comment);
    let mut there = NostrClient::connect(&second.url);
    // A client's is turned away before its announcement; what is gathered is not.
    assert!(!there.publish(&comment).0);
    there.publish_well(&announced);
    there.wait_for_events(&json!({ "kinds": [1111] }), &[&comment]);
}

#[test]
fn a_relay_that_sends_rubbish_is_left_alone() {
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let (relay, owner) = (format!("ws://{}", listener.local_addr().unwrap()), Author::new(1));
    let mut served = start(Home::ready(), &[], &[]);
    let clone = format!("{}/{}/tool.git", served.url, owner.npub());
    let own = served.url.replacen("http", "ws", 1);
    let announced = owner.event(30617, &[&["d", "tool"], &["clone", &clone], &["relays", &own, &relay]], "");
    NostrClient::connect(&served.url).publish_well(&announced);
    let mut socket = tungstenite::accept(listener.accept().unwrap().0).unwrap();
    assert!(socket.read().unwrap().to_text().unwrap().starts_with("[\"REQ\",\"live\""));
    assert!(socket.read().unwrap().to_text().unwrap().starts_with("[\"NEG-OPEN\""));
    let stranger = Author::new(7).event(1, &[], "buy");
    let rubbish = format!("[\"EVENT\",\"gather\",{}]", stranger.to_json());
    // It hangs up before all of it was sent.
    let _ = (0..100).try_for_each(|_| socket.send(Message::text(rubbish.clone())));
    served.wait_for("seconds=3600");
    assert_eq!(NostrClient::connect(&served.url).stored(&json!({ "kinds": [1] })), [""; 0]);
}

#[test]
fn an_archive_mirrors_what_it_lists_and_takes_no_pushes() {
    let (owner, work) = (Author::new(1), Work::new());
    let first = start(Home::ready(), &[], &[]);
    let (mut client, commit) = (NostrClient::connect(&first.url), work.commit("one"));
    for identifier in ["tool", "other"] {
        client.publish_well(&owner.announcement(&first.url, identifier, &[]));
        client.publish_well(&owner.state(identifier, &[("refs/heads/main", &commit)]));
        work.git(&["push", &format!("{}/{}/{identifier}.git", first.url, owner.npub()), "main"]);
    }
    let (archived, relay) = (format!("{}/tool", owner.npub()), first.url.replacen("http", "ws", 1));
    let somebody = Author::new(2).npub();
    let lists = [
        ("ANTEROOM_GIT_ARCHIVE", archived.as_str()),
        ("ANTEROOM_GIT_ARCHIVE_RELAYS", relay.as_str()),
        ("ANTEROOM_GIT_OWNERS", somebody.as_str()),
    ];
    let mirror = start(Home::ready(), &[], &lists);
    let url = format!("{}/{}/tool.git", mirror.url, owner.npub());
    while !work.run(&["ls-remote", &url]).1.contains(&commit) {
        std::thread::yield_now();
    }
    assert!(work.run(&["ls-remote", &url.replace("tool.git", "other.git")]).1.contains("not found"));
    let (is_pushed, said) = work.run(&["push", &url, "main:refs/heads/new"]);
    assert!(!is_pushed && said.contains("only mirrors the repository"), "{said}");
    // It follows.
    let later = work.commit("two");
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &later)]));
    work.git(&["push", &format!("{}/{}/tool.git", first.url, owner.npub()), "main"]);
    while !work.run(&["ls-remote", &url]).1.contains(&later) {
        std::thread::yield_now();
    }
    // Nor does it take them when the announcement lists it, since others own repositories here.
    NostrClient::connect(&mirror.url).publish_well(&announce(&owner, &[&first, &mirror]));
    let (is_pushed, said) = work.run(&["push", &url, "main:refs/heads/new"]);
    assert!(!is_pushed && said.contains("only mirrors the repository"), "{said}");
    let document = relay_document(&mirror.url).to_string();
    assert!(document.contains("GRASP-05"), "{document}");
    assert!(!relay_document(&first.url).to_string().contains("GRASP-05"));
}

#[test]
fn what_banned_authors_wrote_is_not_gathered() {
    let (owner, banned, welcome) = (Author::new(1), Author::new(8), Author::new(9));
    let first = start(Home::ready(), &[], &[]);
    let second = start(Home::ready(), &[], &[("ANTEROOM_GIT_BANNED", &banned.npub())]);
    let announced = announce(&owner, &[&first, &second]);
    let (mut here, mut there) = (NostrClient::connect(&first.url), NostrClient::connect(&second.url));
    let (work, address) = (Work::new(), format!("30617:{}:tool", owner.key()));
    let commit = work.commit("one");
    here.publish_well(&announced);
    here.publish_well(&owner.state("tool", &[("refs/heads/main", &commit)]));
    work.git(&["push", &format!("{}/{}/tool.git", first.url, owner.npub()), "main"]);
    let issue = |author: &Author| author.event(1621, &[&["a", &address]], "an issue");
    let issues = [issue(&banned), issue(&welcome)];
    issues.iter().for_each(|event| drop(here.publish_well(event)));
    there.publish_well(&announced);
    there.wait_for_events(&json!({ "kinds": [1621] }), &[&issues[1]]);
    // What is stored is shown to the operator, whoever wrote it.
    let is_stored = |event: &NostrEvent| second.home.run(&["show", &event.id.to_string()]).code == 0;
    assert_eq!(issues.each_ref().map(is_stored), [false, true]);
}
