//! The hunt for missing git data, through the real binary and real git servers on loopback.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;
mod hostile_sources;

use common::Home;
use common::git_server::{GitServer, Manner};
use common::git_work::{Work, clone, run_git};
use common::nostr_client::{Author, NostrClient};
use common::served::Served;
use model::nostr::NostrEvent;
use serde_json::json;
use std::io::{Read as _, Write as _};

/// A node that fetches at once what is missing, from these networks of this machine.
fn start_with(networks: &str, delay: &str) -> Served {
    let words = ["--set", "git.enabled=1", "--set", delay];
    Served::start_with(
        Home::ready(),
        &words,
        &[("ANTEROOM_SYNC_PRIVATE_NETWORKS", networks), ("ANTEROOM_LOG", "debug")],
    )
}

fn start() -> Served {
    start_with("127.0.0.0/8", "sync.default_delay_secs=0")
}

/// An announcement that lists a node, and other places where the repository is.
fn announcement(author: &Author, url: &str, clones: &[String], maintainers: &[&str]) -> NostrEvent {
    let own = format!("{url}/{}/tool.git", author.npub());
    let mut clone = vec!["clone", own.as_str()];
    clone.extend(clones.iter().map(String::as_str));
    let relay = url.replacen("http", "ws", 1);
    let maintainers = [&["maintainers"], maintainers].concat();
    author.event(30617, &[&["d", "tool"], &clone, &["relays", &relay], &maintainers], "")
}

fn pull_request(author: &Author, owner: &Author, commit: &str) -> NostrEvent {
    let address = format!("30617:{}:tool", owner.key());
    author.event(1618, &[&["a", &address], &["c", commit]], "please")
}

fn refs_of(served: &Served, owner: &Author) -> String {
    Work::new().git(&["ls-remote", &format!("{}/{}/tool.git", served.url, owner.npub())])
}

#[test]
fn state_event_syncs_from_remote() {
    let (served, owner, work) = (start(), Author::new(1), Work::new());
    let (mut client, source) = (NostrClient::connect(&served.url), GitServer::start("127.0.0.2"));
    let commit = work.commit("one");
    source.take(work.path(), &commit, "refs/heads/main");
    let announced = announcement(&owner, &served.url, &[source.url()], &[]);
    assert!(client.publish_well(&announced).starts_with("purgatory"));
    // Nothing is known yet that could be asked for.
    assert_eq!(source.requests(), 0);
    let state = owner.state("tool", &[("refs/heads/main", &commit)]);
    assert!(client.publish_well(&state).starts_with("purgatory"));
    client.wait_for_events(&json!({ "kinds": [30617, 30618] }), &[&announced, &state]);
    let (_folder, copy) = clone(&format!("{}/{}/tool.git", served.url, owner.npub()), &[]);
    assert_eq!(run_git(&copy, &["rev-parse", "HEAD"]).1.trim(), commit);
    // Nothing waits any more, and nobody is asked.
    let held = served.home.json(&["held"]);
    assert_eq!(held["needs"], json!([]), "{held}");
    let log = served.stop();
    assert!(!log.contains("ERROR"), "{log}");
}

#[test]
fn pr_event_syncs_from_remote() {
    let (served, owner, author, work) = (start(), Author::new(1), Author::new(2), Work::new());
    let (mut client, source) = (NostrClient::connect(&served.url), GitServer::start("127.0.0.2"));
    let commit = work.commit("one");
    client.publish_well(&announcement(&owner, &served.url, &[source.url()], &[]));
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &commit)]));
    work.git(&["push", &format!("{}/{}/tool.git", served.url, owner.npub()), "main"]);
    let change = work.commit("a change");
    // No ref of the source points at the commit itself: it is found all the same.
    let later = work.commit("more");
    source.take(work.path(), &later, "refs/heads/later");
    let event = pull_request(&author, &owner, &change);
    client.publish_well(&event);
    client.wait_for_events(&json!({ "kinds": [1618] }), &[&event]);
    let name = format!("refs/nostr/{}", event.id);
    client.wait_until(|| refs_of(&served, &owner).contains(&format!("{change}\t{name}")));
    assert!(!refs_of(&served, &owner).contains(&later), "nothing else of the source");
}

#[test]
fn concurrent_state_and_pr_sync() {
    let (served, owner, author, work) = (start(), Author::new(1), Author::new(2), Work::new());
    let (mut client, source) = (NostrClient::connect(&served.url), GitServer::start("127.0.0.2"));
    let commit = work.commit("one");
    let change = work.commit("a change");
    source.take(work.path(), &commit, "refs/heads/main");
    source.take(work.path(), &change, "refs/nostr/change");
    let events = [
        announcement(&owner, &served.url, &[source.url()], &[]),
        owner.state("tool", &[("refs/heads/main", &commit)]),
        pull_request(&author, &owner, &change),
    ];
    events.iter().for_each(|event| drop(client.publish_well(event)));
    client.wait_for_events(&json!({ "kinds": [30617, 30618, 1618] }), &events.each_ref());
}

#[test]
fn partial_oid_aggregation_from_multiple_servers() {
    let (served, owner, work) = (start(), Author::new(1), Work::new());
    let mut client = NostrClient::connect(&served.url);
    let servers = ["127.0.0.2", "127.0.0.3", "127.0.0.4"].map(GitServer::start);
    let (mut refs, names) = (Vec::new(), ["refs/heads/main", "refs/heads/b", "refs/tags/c"]);
    for (server, name) in servers.iter().zip(names) {
        work.git(&["checkout", "--quiet", "--orphan", &name.replace('/', "-")]);
        let commit = work.commit(name);
        server.take(work.path(), &commit, name);
        refs.push((name, commit));
    }
    let urls: Vec<String> = servers.iter().map(GitServer::url).collect();
    let announced = announcement(&owner, &served.url, &urls, &[]);
    let refs: Vec<(&str, &str)> = refs.iter().map(|(name, commit)| (*name, commit.as_str())).collect();
    let state = owner.state("tool", &refs);
    client.publish_well(&announced);
    client.publish_well(&state);
    client.wait_for_events(&json!({ "kinds": [30617, 30618] }), &[&announced, &state]);
    for (name, commit) in refs {
        assert!(refs_of(&served, &owner).contains(&format!("{commit}\t{name}")));
    }
}

#[test]
fn push_triggers_unified_processing() {
    let (served, owner, author, work) = (start(), Author::new(1), Author::new(2), Work::new());
    let mut client = NostrClient::connect(&served.url);
    let commit = work.commit("one");
    let events = [
        announcement(&owner, &served.url, &[], &[]),
        owner.state("tool", &[("refs/heads/main", &commit)]),
        pull_request(&author, &owner, &commit),
    ];
    events.iter().for_each(|event| drop(client.publish_well(event)));
    // A push releases what waits for it, as a fetch does: the pull request as well, whose commit a branch has.
    work.git(&["push", &format!("{}/{}/tool.git", served.url, owner.npub()), "main"]);
    client.wait_for_events(&json!({ "kinds": [30617, 30618, 1618] }), &events.each_ref());
    client.wait_until(|| refs_of(&served, &owner).contains(&format!("refs/nostr/{}", events[2].id)));
}

#[test]
fn a_node_fetches_from_another_node() {
    let (first, second, owner, work) = (start(), start(), Author::new(1), Work::new());
    let clone_url = |served: &Served| format!("{}/{}/tool.git", served.url, owner.npub());
    let commit = work.commit("one");
    // One announcement that lists both.
    let relays = [&first, &second].map(|served| served.url.replacen("http", "ws", 1));
    let (here, there) = (clone_url(&first), clone_url(&second));
    let tags: [&[&str]; 3] = [&["d", "tool"], &["clone", &here, &there], &["relays", &relays[0], &relays[1]]];
    let announced = owner.event(30617, &tags, "");
    let state = owner.state("tool", &[("refs/heads/main", &commit)]);
    let mut client = NostrClient::connect(&first.url);
    client.publish_well(&announced);
    client.publish_well(&state);
    work.git(&["push", &here, "main"]);
    let mut client = NostrClient::connect(&second.url);
    client.publish_well(&announced);
    client.publish_well(&state);
    client.wait_for_events(&json!({ "kinds": [30617, 30618] }), &[&announced, &state]);
    assert_eq!(work.git(&["ls-remote", &there]), work.git(&["ls-remote", &here]));
}

#[test]
fn sources_that_are_down_silent_or_lie_stop_nobody() {
    let (served, owner, work) = (start(), Author::new(1), Work::new());
    let mut client = NostrClient::connect(&served.url);
    let servers = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"].map(GitServer::start);
    let [lying, absent, silent, honest] = &servers;
    let commit = work.commit("one");
    for server in [lying, honest] {
        server.take(work.path(), &commit, "refs/heads/main");
    }
    lying.behave(Manner::Lies);
    absent.behave(Manner::Absent);
    silent.behave(Manner::Silent);
    let down = "http://127.0.0.6:1/repository".to_owned();
    let urls = [down, lying.url(), absent.url(), honest.url(), silent.url()];
    let announced = announcement(&owner, &served.url, &urls, &[]);
    let state = owner.state("tool", &[("refs/heads/main", &commit)]);
    client.publish_well(&announced);
    client.publish_well(&state);
    client.wait_for_events(&json!({ "kinds": [30617, 30618] }), &[&announced, &state]);
    assert!(lying.requests() > 0 && absent.requests() > 0);
}

#[test]
fn maintainers_who_join_while_an_event_waits_are_honoured() {
    let (served, work) = (start(), Work::new());
    let (owner, other, stranger) = (Author::new(1), Author::new(2), Author::new(3));
    let (mut client, source) = (NostrClient::connect(&served.url), GitServer::start("127.0.0.2"));
    let commit = work.commit("one");
    source.take(work.path(), &commit, "refs/heads/main");
    // Nobody who is confirmed says where it is: the stranger's URL is not used for the owner.
    client.publish_well(&announcement(&owner, &served.url, &[], &[&other.key()]));
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &commit)]));
    client.publish_well(&announcement(&stranger, &served.url, &[source.url()], &[&owner.key()]));
    client.wait_until(|| served.home.json(&["held"])["needs"].as_array().is_some_and(|needs| needs.len() >= 3));
    assert_eq!(source.requests(), 0);
    // The other maintainer confirms, and says where.
    let joined = announcement(&other, &served.url, &[source.url()], &[&owner.key()]);
    client.publish_well(&joined);
    client.wait_until(|| refs_of(&served, &owner).contains(&commit) && refs_of(&served, &other).contains(&commit));
    assert_eq!(refs_of(&served, &stranger), "");
}

#[test]
fn from_url_fetches_and_processes_on_success() {
    // A port that is free, and will be a moment later.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let metrics_listen = listener.local_addr().unwrap().to_string();
    drop(listener);
    let words = ["--set", "git.enabled=1", "--set", "sync.default_delay_secs=0"];
    let variables =
        [("ANTEROOM_SYNC_PRIVATE_NETWORKS", "127.0.0.0/8"), ("ANTEROOM_METRICS_LISTEN", metrics_listen.as_str())];
    let served = Served::start_with(Home::ready(), &words, &variables);
    let (owner, work, source) = (Author::new(1), Work::new(), GitServer::start("127.0.0.2"));
    let (mut client, commit) = (NostrClient::connect(&served.url), work.commit("one"));
    source.take(work.path(), &commit, "refs/heads/main");
    let announced = announcement(&owner, &served.url, &[source.url()], &[]);
    let state = owner.state("tool", &[("refs/heads/main", &commit)]);
    client.publish_well(&announced);
    client.publish_well(&state);
    client.wait_for_events(&json!({ "kinds": [30617, 30618] }), &[&announced, &state]);
    // It was counted, as a visit and as what came of it; the request ends a moment after its events are released.
    client.wait_until(|| request_text(&metrics_listen, "/metrics").contains("anteroom_sync_objects_fetched_total 1\n"));
    client.wait_until(|| request_text(&metrics_listen, "/metrics").contains("{domain=\"127.0.0.2\"} 0\n"));
    client.wait_until(|| request_text(&metrics_listen, "/metrics").contains("anteroom_sync_queue_size 0\n"));
    let metrics = request_text(&metrics_listen, "/metrics");
    for line in [
        "anteroom_sync_attempts_total 1",
        "anteroom_sync_objects_fetched_total 1",
        "anteroom_domain_requests_total{domain=\"127.0.0.2\"} 1",
        "anteroom_domain_in_flight{domain=\"127.0.0.2\"} 0",
        "anteroom_sync_queue_size 0",
        "anteroom_git_events_released_total{kind=\"state\"} 1",
        "anteroom_git_refs_changed_total{change=\"created\"} 1",
        "anteroom_git_refs_changed_total{change=\"deleted\"} 0",
    ] {
        assert!(metrics.lines().any(|other| other == line), "{line} is not in {metrics}");
    }
}

/// The text at a path.
fn request_text(address: &str, path: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn repositories_are_listed_shown_and_synced_by_command() {
    // Nobody is asked for an hour, unless somebody wants it.
    let served = start_with("127.0.0.0/8", "sync.default_delay_secs=3600");
    let (owner, work) = (Author::new(1), Work::new());
    let (mut client, source) = (NostrClient::connect(&served.url), GitServer::start("127.0.0.2"));
    let commit = work.commit("one");
    source.take(work.path(), &commit, "refs/heads/main");
    let announced = announcement(&owner, &served.url, &[source.url()], &[]);
    let state = owner.state("tool", &[("refs/heads/main", &commit)]);
    client.publish_well(&announced);
    client.publish_well(&state);
    let name = format!("{}/tool", owner.npub());
    let listed = served.home.json(&["repos", "list"]);
    assert_eq!(listed["repositories"][0]["owner"], owner.npub().as_str());
    assert_eq!(
        (&listed["repositories"][0]["has_data"], &listed["repositories"][0]["missing"]),
        (&json!(false), &json!(3))
    );
    let shown = served.home.json(&["repos", "show", &name]);
    assert_eq!(shown["sources"][0]["url"], source.url().as_str(), "{shown}");
    assert!(shown["missing"].to_string().contains(&commit) && shown["hunt"]["next"].is_u64(), "{shown}");
    assert_eq!((source.requests(), &shown["has_newer_state"]), (0, &json!(true)));
    let said = served.home.run(&["repos", "sync", &name]).out;
    assert!(said.contains("the node fetches 3 things"), "{said}");
    client.wait_for_events(&json!({ "kinds": [30617, 30618] }), &[&announced, &state]);
    let shown = served.home.json(&["repos", "show", &name]);
    assert_eq!((&shown["refs"]["refs/heads/main"], &shown["head"]), (&json!(commit), &json!("refs/heads/main")));
    assert_eq!((&shown["missing"], &shown["has_newer_state"]), (&json!([]), &json!(false)));
    assert!(served.home.run(&["repos", "sync", &name]).out.contains("nothing about"));
    for (words, told) in [(["show", "npub1x/tool"], "npub1"), (["show", &format!("{name}x")], "no announcement of")] {
        let ran = served.home.run(&["repos", words[0], words[1]]);
        assert!(ran.code != 0 && ran.err.contains(told), "{}", ran.err);
    }
    // The same by the API of the operator, who names the repository.
    let token = std::fs::read_to_string(served.home.data().join("operator.token")).unwrap();
    let hunt_for = |repository: &str| {
        let body = json!({ "repository": repository });
        served.send(token.lines().nth(1).unwrap(), "POST", "/admin/retry", Some(body)).0
    };
    assert_eq!((hunt_for(&name), hunt_for("tool"), hunt_for("npub1x/tool")), (404, 422, 422), "nothing is missing");
    let asked_for = work.commit("one and a half");
    source.take(work.path(), &asked_for, "refs/heads/main");
    let between = owner.state("tool", &[("refs/heads/main", &asked_for)]);
    client.publish_well(&between);
    assert_eq!((hunt_for(&format!("{}/tool", Author::new(2).npub())), hunt_for(&name)), (404, 204));
    client.wait_for_events(&json!({ "kinds": [30618] }), &[&between]);
    // What waits is tried again while the node runs, by event and by need.
    let next = work.commit("two");
    source.take(work.path(), &next, "refs/heads/main");
    let later = owner.state("tool", &[("refs/heads/main", &next)]);
    client.publish_well(&later);
    let said = served.home.run(&["retry", &later.id.to_string()]).out;
    assert!(said.contains("still held; the node fetches what it needs now"), "{said}");
    client.wait_for_events(&json!({ "kinds": [30618] }), &[&later]);
    // Whoever wants to know how it ends waits for it.
    let waited = served.home.run(&["repos", "sync", "--wait", &name]);
    assert!(waited.code == 0 && waited.out.contains("0 things came; nothing about"), "{}", waited.out);
    let gone = owner.state("tool", &[("refs/heads/main", &"0c".repeat(20))]);
    client.publish_well(&gone);
    let waited = served.home.run(&["repos", "sync", "--wait", &name]);
    assert!(waited.code == 1 && waited.out.contains("0 things came, 1 is still missing"), "{}", waited.out);
    let here = work.commit("one and a quarter");
    source.take(work.path(), &here, "refs/heads/main");
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &here)]));
    let waited = served.home.run(&["repos", "sync", "--wait", &name]);
    assert!(waited.out.contains("1 thing came"), "{}", waited.out);
    assert_eq!(served.home.json(&["repos", "show", &name])["refs"]["refs/heads/main"], json!(here));
}
