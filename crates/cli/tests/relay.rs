//! The Nostr relay through the real binary: what it says of itself, subscriptions, counts, deletion, expiry, protected
//! events, reconciliation, and what broken or hostile clients send.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use common::git_work::host_repository;
use common::nostr_client::{Author, NostrClient};
use common::served::Served;
use model::nostr::NostrEvent;
use negentropy::{Id, Negentropy, NegentropyStorageVector};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

fn start() -> Served {
    Served::start(Home::ready(), &["--set", "git.enabled=1"])
}

/// Sends a request and reads the whole answer.
fn ask(url: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    write!(stream, "{request}\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.to_lowercase()
}

/// What the relay tells of itself at a path, in small letters.
fn document_at(url: &str, path: &str) -> Value {
    let answer = ask(url, &format!("GET {path} HTTP/1.1\r\nAccept: application/nostr+json"));
    serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap_or_else(|_| panic!("{answer}"))
}

#[test]
fn the_relay_says_what_it_is_and_browsers_get_the_page() {
    let served = start();
    let answer = ask(&served.url, "GET / HTTP/1.1\r\nAccept: application/nostr+json");
    assert!(answer.starts_with("http/1.1 200") && answer.contains("access-control-allow-origin: *"), "{answer}");
    let document = document_at(&served.url, "/");
    assert_eq!(document["supported_grasps"], json!(["grasp-01"]));
    assert_eq!(document["limitation"]["max_subscriptions"], 200);
    assert!(document["supported_nips"].as_array().unwrap().contains(&json!(77)));
    assert!(document.get("curation").is_none());
    let page = ask(&served.url, "GET / HTTP/1.1\r\nAccept: text/html");
    assert!(page.contains("<!doctype html>") || page.contains("location: "), "{page}");
    let options = ask(&served.url, "OPTIONS / HTTP/1.1\r\nOrigin: https://web.example");
    assert!(options.starts_with("http/1.1 204") && options.contains("allow-methods: get, post"), "{options}");
    let npub = Author::new(1).npub();
    let options = ask(&served.url, &format!("OPTIONS /{npub}/x.git/info/refs HTTP/1.1\r\nOrigin: https://web.example"));
    assert!(options.starts_with("http/1.1 204") && options.contains("access-control-allow-origin: *"), "{options}");
    let options =
        ask(&served.url, &format!("OPTIONS /prs/{npub}/x.git/info/refs HTTP/1.1\r\nOrigin: https://web.example"));
    assert!(options.starts_with("http/1.1 204") && options.contains("access-control-allow-origin: *"), "{options}");
    let missing = ask(&served.url, &format!("GET /{npub}/x.git/info/refs?service=git-upload-pack HTTP/1.1"));
    assert!(missing.starts_with("http/1.1 404") && missing.contains("access-control-allow-origin: *"), "{missing}");
}

#[test]
fn a_relay_that_is_switched_off_is_not_there() {
    let served = Served::start(Home::ready(), &[]);
    let answer = ask(&served.url, "GET / HTTP/1.1\r\nAccept: application/nostr+json");
    assert!(!answer.contains("supported_grasps"), "{answer}");
}

#[test]
fn events_are_found_counted_deleted_and_reconciled() {
    let served = start();
    let (mut client, owner) = (NostrClient::connect(&served.url), Author::new(21));
    let address = host_repository(&mut client, &served.url, &owner, "tool");
    let issues: Vec<_> = (0..5).map(|number| owner.event(1621, &[&["a", &address]], &number.to_string())).collect();
    let ids: Vec<String> = issues.iter().map(|issue| issue.id.to_string()).collect();
    issues.iter().for_each(|issue| assert_eq!(client.publish_well(issue), ""));
    let latest_first: Vec<_> = ids.iter().rev().cloned().collect();
    assert_eq!(client.stored(&json!({ "#a": [address], "kinds": [1621] })), latest_first);
    assert_eq!(client.stored(&json!({ "kinds": [1621], "limit": 2 })), latest_first[..2]);
    assert_eq!(client.stored(&json!({ "ids": [ids[1]] })), ids[1..2]);
    assert_eq!(client.stored(&json!({ "ids": [ids[1]], "kinds": [9999] })), [""; 0], "all conditions count");
    assert_eq!(client.stored(&json!({ "kinds": [1621], "since": issues[3].created_at })), latest_first[..2]);
    assert_eq!(client.stored(&json!({ "kinds": [1621], "until": issues[1].created_at })), latest_first[3..]);
    assert_eq!(client.stored(&json!({ "authors": [owner.key()] })).len(), 7);
    assert_eq!(client.stored(&json!({ "limit": 0 })), [""; 0]);
    // A subscription may be called as NIP-11 says, and no longer.
    for (length, is_taken) in [(64, true), (65, false)] {
        let name = "n".repeat(length);
        client.say(&json!(["REQ", name, { "kinds": [9999] }]));
        assert_eq!(client.hear()[0] == json!("EOSE"), is_taken, "{length}");
    }
    client.say(&json!(["COUNT", "c", { "kinds": [1621] }]));
    assert_eq!(client.hear(), json!(["COUNT", "c", { "count": 5 }]));
    // Deleted by its author, not by others, before or after it came.
    let stranger = Author::new(22);
    client.publish_well(&stranger.event(1111, &[&["E", &ids[0]]], "me too"));
    client.publish_well(&stranger.event(5, &[&["e", &ids[0]]], ""));
    assert_eq!(client.stored(&json!({ "kinds": [1621] })).len(), 5);
    let late = owner.event(1621, &[&["a", &address]], "late");
    client.publish_well(&owner.event(5, &[&["e", &ids[0]], &["e", &late.id.to_string()]], ""));
    assert_eq!(client.publish(&late), (false, "blocked: its author has deleted it".into()));
    assert_eq!(client.stored(&json!({ "kinds": [1621] })), latest_first[..4]);
    // A client that has two of the four learns of the others.
    let mut storage = NegentropyStorageVector::new();
    for issue in &issues[1..3] {
        storage.insert(issue.created_at, Id::from_byte_array(issue.id.0)).unwrap();
    }
    storage.seal().unwrap();
    let mut reconciliation = Negentropy::owned(storage, 0).unwrap();
    let begin = reconciliation.initiate().unwrap();
    client.say(&json!(["NEG-OPEN", "n", { "kinds": [1621] }, hex::encode(begin)]));
    let (mut have, mut need) = (Vec::new(), Vec::new());
    let answer = client.hear();
    assert_eq!((&answer[0], &answer[1]), (&json!("NEG-MSG"), &json!("n")), "{answer}");
    let message = hex::decode(answer[2].as_str().unwrap()).unwrap();
    let next = reconciliation.reconcile_with_ids(&message, &mut have, &mut need).unwrap();
    assert!(next.is_none() && have.is_empty());
    let mut need: Vec<_> = need.iter().map(|id| hex::encode(id.to_bytes())).collect();
    need.sort();
    let mut expected = ids[3..].to_vec();
    expected.sort();
    assert_eq!(need, expected);
    // Everything of an author goes with a request to vanish.
    client.publish_well(&owner.event(62, &[&["relay", "ALL_RELAYS"]], ""));
    assert_eq!(client.stored(&json!({ "authors": [owner.key()], "kinds": [1621, 30617, 30618] })), [""; 0]);
}

#[test]
fn expired_protected_and_future_events_wait_their_turn() {
    let served = start();
    let (mut client, owner) = (NostrClient::connect(&served.url), Author::new(23));
    let address = host_repository(&mut client, &served.url, &owner, "tool");
    let expired = owner.event(1621, &[&["a", &address], &["expiration", "1000"]], "");
    assert_eq!(client.publish(&expired), (false, "invalid: the event has expired".into()));
    let protected = owner.event(1621, &[&["a", &address], &["-"]], "");
    client.say(&json!(["EVENT", serde_json::from_str::<Value>(&protected.to_json()).unwrap()]));
    let challenge = client.hear();
    assert_eq!(challenge[0], "AUTH");
    let refused = client.hear();
    assert!(refused[3].as_str().unwrap().starts_with("auth-required: "), "{refused}");
    let challenge = challenge[1].as_str().unwrap();
    let relay = served.url.replacen("http", "ws", 1);
    // For another relay, or another challenge, it proves nothing.
    for (relay, challenge) in [("wss://other.example", challenge), (&*relay, "another")] {
        let proof = owner.event(22242, &[&["relay", relay], &["challenge", challenge]], "");
        client.say(&json!(["AUTH", serde_json::from_str::<Value>(&proof.to_json()).unwrap()]));
        assert_eq!(client.hear()[2], false);
    }
    // The times of this author's events lie a little behind, within the ten minutes.
    let proof = owner.event(22242, &[&["relay", &relay], &["challenge", challenge]], "");
    client.say(&json!(["AUTH", serde_json::from_str::<Value>(&proof.to_json()).unwrap()]));
    assert_eq!(client.hear()[2], true);
    assert_eq!(client.publish_well(&protected), "");
    let ahead = model::nostr::NostrEvent::sign(&[23; 32], 4_000_000_000, 1621, vec![vec!["a".into(), address]], "");
    assert_eq!(client.publish_well(&ahead.unwrap()), "future: won't be served before its time");
}

#[test]
fn broken_and_hostile_clients_are_told_and_nobody_else_notices() {
    let served = start();
    let mut client = NostrClient::connect(&served.url);
    for (message, answer) in [
        ("hello", "NOTICE"),
        ("{}", "NOTICE"),
        ("[]", "NOTICE"),
        ("[\"WHAT\"]", "NOTICE"),
        ("[\"REQ\"]", "NOTICE"),
        ("[\"REQ\",\"\",{}]", "NOTICE"),
        ("[\"REQ\",1,{}]", "NOTICE"),
        ("[\"REQ\",\"x\"]", "CLOSED"),
        ("[\"REQ\",\"x\",[]]", "CLOSED"),
        ("[\"REQ\",\"x\",{\"search\":\"y\"}]", "CLOSED"),
        ("[\"COUNT\",\"x\",{},{}]", "CLOSED"),
        ("[\"EVENT\",{}]", "OK"),
        ("[\"EVENT\",7]", "OK"),
        ("[\"AUTH\",{}]", "OK"),
        ("[\"NEG-MSG\",\"x\",\"61\"]", "NEG-ERR"),
        ("[\"NEG-OPEN\",\"x\",{},\"zz\"]", "NOTICE"),
        ("[\"NEG-OPEN\",\"x\",{},\"ff\"]", "NEG-ERR"),
    ] {
        client.say_text(message);
        assert_eq!(client.hear()[0], answer, "{message}");
    }
    let many: Vec<Value> = (0..21).map(|_| json!({})).collect();
    client.say(&json!([[json!("REQ"), json!("many")].as_slice(), &many].concat()));
    assert_eq!(client.hear()[0], "CLOSED");
    for number in 0..200 {
        client.say(&json!(["REQ", number.to_string(), { "limit": 0 }]));
        assert_eq!(client.hear()[0], "EOSE");
    }
    client.say(&json!(["REQ", "one too many", {}]));
    assert_eq!(client.hear()[0], "CLOSED");
    // One of them replaces another of its name.
    client.say(&json!(["REQ", "7", {}]));
    assert_eq!(client.hear()[0], "EOSE");
    // Whoever asks without a pause is told to wait, and answered otherwise.
    let (mut hasty, questions) = (NostrClient::connect(&served.url), 4_000);
    for number in 0..questions {
        let word = if number % 2 == 0 { "REQ" } else { "COUNT" };
        hasty.say(&json!([word, "x", { "limit": 0 }]));
    }
    let told: Vec<Value> = (0..questions).map(|_| hasty.hear()).collect();
    let limited = told.iter().filter(|heard| heard.to_string().contains("rate-limited")).count();
    assert!((1..=questions - 400).contains(&limited), "{limited}");
    // A message that is too long ends the connection, and only that one.
    let mut long = NostrClient::connect(&served.url);
    assert!(!long.try_say(&"x".repeat(200 * 1024)) || long.try_hear().is_none_or(|heard| heard[0] != "EOSE"));
    client.say(&json!(["REQ", "7", {}]));
    assert_eq!(client.hear()[0], "EOSE");
    let log = served.stop();
    assert!(!log.contains("panicked"), "{log}");
}

#[test]
fn the_operator_says_who_has_repositories_here_and_who_is_not_welcome() {
    let (owner, other, banned) = (Author::new(31), Author::new(32), Author::new(33));
    let settings = [
        ("ANTEROOM_GIT_OWNERS", format!("{}, {}", owner.npub(), banned.key())),
        ("ANTEROOM_GIT_BANNED", format!("{},{}/secret", banned.npub(), owner.key())),
        ("ANTEROOM_GIT_OPERATOR", owner.npub()),
    ];
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let served = Served::start_with(Home::ready(), &["--set", "git.enabled=1"], &settings);
    let mut client = NostrClient::connect(&served.url);
    let refused = |client: &mut NostrClient, event: &NostrEvent, word: &str| {
        let (is_taken, said) = client.publish(event);
        assert!(!is_taken && said.starts_with(word), "{said}");
    };
    refused(&mut client, &other.announcement(&served.url, "tool", &[]), "restricted: ");
    refused(&mut client, &banned.announcement(&served.url, "tool", &[]), "blocked: ");
    refused(&mut client, &owner.announcement(&served.url, "secret", &[]), "blocked: ");
    let address = host_repository(&mut client, &served.url, &owner, "tool");
    refused(&mut client, &banned.event(1621, &[&["a", &address]], "spam"), "blocked: ");
    client.publish_well(&other.event(1621, &[&["a", &address]], "an issue"));
    let document = document_at(&served.url, "/");
    assert_eq!(document["pubkey"], owner.key());
    assert!(document["curation"].is_string() && document["supported_nips"].as_array().unwrap().contains(&json!(5)));
    assert_eq!(document_at(&served.url, "/.well-known/nostr.json?name=_")["names"]["_"], owner.key());
    let names = ask(&served.url, "GET /.well-known/nostr.json HTTP/1.1");
    assert!(names.contains("access-control-allow-origin: *"), "web clients read it: {names}");
    // Who is banned later is not served any more.
    let listen = served.url.replace("http://", "");
    let words = ["--set", "git.enabled=1", "--listen", &listen];
    let served = Served::start_with(served.kill(), &words, &[("ANTEROOM_GIT_BANNED", &other.key())]);
    let mut client = NostrClient::connect(&served.url);
    assert_eq!(client.stored(&json!({ "kinds": [1621] })), [""; 0]);
    assert_eq!(client.stored(&json!({ "kinds": [30617] })).len(), 1);
    let document = document_at(&served.url, "/");
    assert!(document["curation"].is_null() && document["pubkey"].is_null());
    assert!(!document["supported_nips"].as_array().unwrap().contains(&json!(5)));
}

#[test]
fn whoever_may_publish_proves_who_they_are() {
    let (listed, stranger) = (Author::new(41), Author::new(42));
    let served =
        Served::start_with(Home::ready(), &["--set", "git.enabled=1"], &[("ANTEROOM_GIT_WRITERS", &listed.npub())]);
    let mut client = NostrClient::connect(&served.url);
    let event = listed.announcement(&served.url, "tool", &[]);
    // The challenge comes before the answer.
    client.say_text(&format!("[\"EVENT\",{}]", event.to_json()));
    let challenge = client.hear();
    assert_eq!(challenge[0], "AUTH");
    assert!(client.hear()[3].as_str().unwrap().starts_with("auth-required"));
    let relay = served.url.replacen("http", "ws", 1);
    // What somebody signed for another purpose proves nothing.
    let tags: [&[&str]; 2] = [&["relay", &relay], &["challenge", challenge[1].as_str().unwrap()]];
    client.say_text(&format!("[\"AUTH\",{}]", listed.event(22243, &tags, "").to_json()));
    assert_eq!(client.hear()[2], false);
    assert!(client.publish(&event).1.starts_with("auth-required"));
    for (author, is_let_in) in [(&stranger, "restricted"), (&listed, "purgatory")] {
        client.say_text(&format!("[\"AUTH\",{}]", author.event(22242, &tags, "").to_json()));
        assert_eq!(client.hear()[2], true);
        assert!(client.publish(&event).1.starts_with(is_let_in));
    }
    let information = document_at(&served.url, "/").to_string();
    assert!(information.contains("may publish, after they have authenticated"), "{information}");
}
