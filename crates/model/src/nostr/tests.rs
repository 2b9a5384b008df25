//! Parsing, ids and signatures beside the `nostr` crate; filters beside a naive one; what repositories are called.

use super::*;
use crate::ids::NostrKey;
use nostr::event::Event as TheirEvent;
use proptest::prelude::*;
use serde_json::{Value, json};

fn sign(secret: u8, created_at: u64, kind: u16, tags: Vec<Vec<String>>, content: &str) -> VerifiedNostr {
    NostrEvent::sign(&[secret; 32], created_at, kind, tags, content).unwrap()
}

fn tags(tags: &[&[&str]]) -> Vec<Vec<String>> {
    tags.iter().map(|tag| tag.iter().map(|value| (*value).to_owned()).collect()).collect()
}

/// Texts with everything that JSON escapes.
fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![
            any::<char>(),
            prop::char::range('\0', '\u{20}'),
            Just('"'),
            Just('\\'),
            Just('/'),
            Just('\u{2028}')
        ],
        0..12,
    )
    .prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #[test]
    fn ids_and_signatures_are_those_of_the_nostr_crate(
        secret in 1..4_u8,
        created_at in 1..18_446_744_073_u64,
        kind in any::<u16>(),
        tags in prop::collection::vec(prop::collection::vec(text(), 1..4), 0..4),
        content in text(),
    ) {
        let ours = sign(secret, created_at, kind, tags, &content);
        let theirs: TheirEvent = serde_json::from_str(&ours.to_json()).unwrap();
        prop_assert!(theirs.verify_id() && theirs.verify_signature());
        prop_assert_eq!(theirs.id.to_hex(), ours.id.to_string());
        // What they write is read the same.
        let again = NostrEvent::parse(&serde_json::to_string(&theirs).unwrap()).unwrap();
        prop_assert_eq!(&again, &*ours);
        prop_assert_eq!(VerifiedNostr::of_blob(&ours.to_blob()).unwrap(), ours);
    }

    #[test]
    fn what_the_nostr_crate_does_not_take_is_not_taken(changed in 0..400_usize, by in any::<u8>()) {
        let event = sign(1, 1_700_000_000, 1, tags(&[&["a", "b"], &["e"]]), "hello \u{1f600}");
        let mut bytes = event.to_json().into_bytes();
        let at = changed % bytes.len();
        bytes[at] = by;
        let Ok(text) = String::from_utf8(bytes) else { return Ok(()) };
        let ours = NostrEvent::parse(&text).and_then(NostrEvent::check).is_ok();
        let theirs = serde_json::from_str::<TheirEvent>(&text).is_ok_and(|event| event.verify().is_ok());
        // We are as strict or stricter: digits in upper case, for one.
        prop_assert!(theirs || !ours, "{}", text);
        if ours {
            prop_assert_eq!(NostrEvent::parse(&text).unwrap(), NostrEvent::clone(&event));
        }
    }

    #[test]
    fn filters_match_as_a_naive_filter_does(
        kinds in prop::option::of(prop::collection::vec(0..4_u16, 0..3)),
        authors in prop::option::of(prop::collection::vec(1..4_u8, 0..3)),
        letters in prop::collection::vec(("[a-c]", prop::collection::vec("[xyz]", 0..3)), 0..3),
        since in prop::option::of(1..6_u64),
        until in prop::option::of(1..6_u64),
        event_kind in 0..4_u16,
        event_author in 1..4_u8,
        event_at in 1..6_u64,
        event_tags in prop::collection::vec(("[a-c]", "[xyz]"), 0..4),
    ) {
        let key = |number: u8| sign(number, 1, 1, Vec::new(), "").author.to_string();
        let mut filter = json!({});
        if let Some(kinds) = &kinds { filter["kinds"] = json!(kinds) }
        if let Some(authors) = &authors { filter["authors"] = json!(authors.iter().map(|n| key(*n)).collect::<Vec<_>>()) }
        if let Some(since) = since { filter["since"] = json!(since) }
        if let Some(until) = until { filter["until"] = json!(until) }
        for (letter, values) in &letters { filter[format!("#{letter}")] = json!(values) }
        let event_tags: Vec<Vec<String>> = event_tags.into_iter().map(|(name, value)| vec![name, value]).collect();
        let event = sign(event_author, event_at, event_kind, event_tags.clone(), "");
        let listed = |name: &str, value: Value| filter.get(name).is_none_or(|list| list.as_array().unwrap().contains(&value));
        let naive = listed("kinds", json!(event_kind))
            && listed("authors", json!(event.author.to_string()))
            && since.is_none_or(|since| event_at >= since)
            && until.is_none_or(|until| event_at <= until)
            && filter.as_object().unwrap().iter().filter(|(name, _)| name.starts_with('#')).all(|(name, values)| {
                event_tags.iter().any(|tag| name[1..] == tag[0] && values.as_array().unwrap().contains(&json!(tag[1])))
            });
        prop_assert_eq!(NostrFilter::parse(&filter).unwrap().matches(&event), naive, "{}", filter);
    }
}

#[test]
fn malformed_events_are_told_what_is_wrong() {
    let good = sign(1, 1_700_000_000, 1, tags(&[&["a", "b"]]), "hi").to_json();
    let with = |name: &str, value: Value| {
        let mut event: Value = serde_json::from_str(&good).unwrap();
        event[name] = value;
        NostrEvent::parse(&event.to_string()).and_then(NostrEvent::check).map(drop)
    };
    assert_eq!(with("content", json!("ho")), Err(BadNostrEvent::Id));
    assert_eq!(with("sig", json!("0".repeat(128))), Err(BadNostrEvent::Signature));
    for (name, value) in [("sig", json!("0".repeat(126))), ("sig", json!("0".repeat(130)))] {
        assert_eq!(with(name, value), Err(BadNostrEvent::Hex("sig")));
    }
    let upper: Value = serde_json::from_str(&good).unwrap();
    for name in ["id", "pubkey", "sig"] {
        let upper = upper[name].as_str().unwrap().to_uppercase();
        assert_eq!(with(name, json!(upper)), Err(BadNostrEvent::Hex(name)));
    }
    for time in [json!(0), json!(u64::MAX)] {
        assert_eq!(with("created_at", time), Err(BadNostrEvent::Time));
    }
    for (name, value) in [
        ("created_at", json!(-1)),
        ("created_at", json!(1.5)),
        ("created_at", json!("1")),
        ("kind", json!(65_536)),
        ("tags", json!([["a", 1]])),
        ("tags", json!("no")),
        ("content", json!(null)),
    ] {
        assert!(matches!(with(name, value.clone()), Err(BadNostrEvent::Json(_))), "{name} {value}");
    }
    assert_eq!(with("tags", json!([[]])), Err(BadNostrEvent::Tags));
    assert_eq!(with("tags", json!(vec![["t", ""]; TAGS_MAX + 1])), Err(BadNostrEvent::Tags));
    assert_eq!(with("tags", json!([["t", "x".repeat(TAG_VALUE_BYTES_MAX + 1)]])), Err(BadNostrEvent::TagValue));
    assert_eq!(with("content", json!("x".repeat(NOSTR_EVENT_BYTES_MAX))), Err(BadNostrEvent::Long));
    let deep = "[".repeat(20_000);
    for text in ["", "[]", "{}", "null", &deep, &good.replacen("{", "{\"id\":\"\",", 1), "\u{feff}{}", "{\"kind\":NaN}"]
    {
        assert!(matches!(NostrEvent::parse(text), Err(BadNostrEvent::Json(_))), "{text:.40}");
    }
    let zero = NostrEvent { author: NostrKey([0; 32]), ..NostrEvent::parse(&good).unwrap() };
    let zero = NostrEvent { id: zero.compute_id(), ..zero };
    assert_eq!(zero.check(), Err(BadNostrEvent::Signature));
}

#[test]
fn another_serialisation_of_an_event_is_no_blob_of_it() {
    let event = sign(1, 1_700_000_000, 1, Vec::new(), "hi");
    let blob = event.to_blob();
    let spaced = String::from_utf8(blob.clone()).unwrap().replacen(",\"kind\"", ", \"kind\"", 1);
    assert!(VerifiedNostr::of_blob(spaced.as_bytes()).is_err());
    assert_eq!(crate::Blob::parse(blob.clone()).unwrap().id(), event.id.short());
    assert!(crate::Blob::parse(blob[..40].to_vec()).is_err());
}

#[test]
fn filters_have_limits_and_say_what_is_wrong() {
    for bad in [
        json!([]),
        json!({ "ids": "x" }),
        json!({ "ids": ["ab"] }),
        json!({ "authors": ["AB".repeat(32)] }),
        json!({ "kinds": [70_000] }),
        json!({ "since": -1 }),
        json!({ "limit": "all" }),
        json!({ "#ab": ["x"] }),
        json!({ "#a": [1] }),
        json!({ "search": "words" }),
        json!({ "kinds": vec![1; 1001] }),
        json!({ "#a": [], "#b": [], "#c": [], "#d": [] }),
    ] {
        assert!(NostrFilter::parse(&bad).is_err(), "{bad}");
    }
    assert_eq!(NostrFilter::parse(&json!({ "limit": u64::MAX })).unwrap().limit, Some(usize::MAX));
}

#[test]
fn a_service_is_recognised_by_host_and_port() {
    let name = |url: &str| ServiceName::of_url(url);
    assert_eq!(name("https://Node.example.org/npub1x/y.git"), name("wss://node.example.org"));
    assert_eq!(name("http://node.example.org:80"), name("https://node.example.org:443/"));
    assert_eq!(name("http://good@node.example.org"), name("https://node.example.org."));
    for other in ["https://node.example.org:8443", "https://example.org", "https://node.example.org.evil.com"] {
        assert_ne!(name(other), name("https://node.example.org"), "{other}");
    }
    for none in ["", "node.example.org", "ftp://node.example.org", "ssh://node.example.org", "file:///x", "ws://"] {
        assert_eq!(name(none), None, "{none}");
    }
}

fn state(entries: &[&[&str]]) -> RepositoryState {
    let entries = [&[&["d", "tool"][..]], entries].concat();
    RepositoryState::of(&sign(1, 1, STATE, tags(&entries), "")).unwrap()
}

#[test]
fn states_have_refs_that_git_takes_and_no_others() {
    let oid = "1".repeat(40);
    for name in ["refs/heads/main", "refs/tags/v1.0", "refs/heads/a/b", "refs/heads/\u{e9}"] {
        assert_eq!(state(&[&[name, &oid]]).refs.len(), 1, "{name}");
    }
    let long = format!("refs/heads/{}", "x".repeat(4096));
    for name in [
        "refs/heads/",
        "refs/heads",
        "HEAD",
        "refs/nostr/x",
        "refs/heads/../x",
        "refs/heads/a..b",
        "refs/heads/x.lock",
        "refs/heads/@{",
        "refs/heads/x/",
        "refs/heads//x",
        "refs/heads/.x",
        "refs/heads/x.",
        "refs/heads/-h",
        "refs/heads/a b",
        "refs/heads/a\tb",
        "refs/heads/a^{}",
        "refs/heads/a:b",
        "refs/heads/a*",
        "refs/heads/a\\b",
        "refs/heads/HEAD",
        &long,
    ] {
        assert_eq!(state(&[&[name, &oid]]).refs.len(), 0, "{name}");
    }
    for oid in ["", "1", &"1".repeat(39), &"1".repeat(64), &"A".repeat(40), &"0".repeat(40), "ref: refs/heads/x"] {
        assert_eq!(state(&[&["refs/heads/main", oid]]).refs.len(), 0, "{oid}");
    }
    // A ref cannot be a folder of another, and the first of two of one name counts.
    let refs = state(&[&["refs/heads/a/b", &oid], &["refs/heads/a", &oid], &["refs/heads/a", &"2".repeat(40)]]).refs;
    assert_eq!(refs.into_iter().collect::<Vec<_>>(), [("refs/heads/a".to_owned(), [0x11; 20])]);
    assert_eq!(state(&[&["HEAD", "ref: refs/heads/main"]]).head.as_deref(), Some("refs/heads/main"));
    for head in ["refs/heads/main", "ref: refs/tags/v1", "ref: refs/heads/../x"] {
        assert_eq!(state(&[&["HEAD", head]]).head, None, "{head}");
    }
}

#[test]
fn announcements_name_repositories_and_maintainers() {
    let other = NostrKey([7; 32]).to_string();
    let event = |entries: &[&[&str]]| sign(1, 1, ANNOUNCEMENT, tags(entries), "");
    let own = event(&[&["d", "x"]]).author;
    let lists = [&["d", "a/../b c"][..], &["clone", "https://n.org/x.git"], &["relays", "wss://r.org", "wss://n.org"]];
    let service = ServiceName::of_url("https://n.org").unwrap();
    let announcement = Announcement::of(&event(&lists)).unwrap();
    assert!(announcement.lists(service) && !announcement.lists(ServiceName::of_url("https://r.org").unwrap()));
    let named = event(&[&["d", "x"], &["maintainers", &other, &own.to_string(), "nobody", &other]]);
    assert_eq!(Announcement::of(&named).unwrap().maintainers.into_iter().collect::<Vec<_>>(), [NostrKey([7; 32])]);
    for bad in ["", "a\nb", &"x".repeat(257)] {
        assert_eq!(Announcement::of(&event(&[&["d", bad]])), None, "{bad:.20}");
    }
    assert_eq!(Announcement::of(&event(&[])), None);
    assert_eq!(Announcement::of(&sign(1, 1, STATE, tags(&[&["d", "x"]]), "")), None);
    let address = format!("{ANNOUNCEMENT}:{other}:a:b");
    let naming = sign(1, 1, 1621, tags(&[&["a", &address], &["a", &address], &["a", "1:x:y"], &["A", "no"]]), "");
    let expected = Address { kind: ANNOUNCEMENT, author: NostrKey([7; 32]), identifier: "a:b".into() };
    assert_eq!(named_repositories(&naming, &["a", "A"]), [expected]);
}

#[test]
fn extract_identifier_from_pr_event_valid() {
    let owner = sign(1, 1, 1, Vec::new(), "").author;
    let address = format!("30617:{owner}:my:tool");
    let event = sign(2, 1, PULL_REQUEST, tags(&[&["a", &address], &["c", &"ab".repeat(20)]]), "");
    let named: Vec<_> = named_repositories(&event, &["a"]).into_iter().map(|to| (to.author, to.identifier)).collect();
    assert_eq!(named, [(owner, "my:tool".to_owned())]);
}

#[test]
fn extract_identifier_from_pr_event_missing_tag() {
    let owner = sign(1, 1, 1, Vec::new(), "").author;
    let other_kind = format!("30618:{owner}:tool");
    for tag in [&["e", "tool"][..], &["a"], &["a", "tool"], &["a", &other_kind], &["a", "30617:nobody:tool"]] {
        let event = sign(2, 1, PULL_REQUEST, tags(&[tag]), "");
        assert_eq!(named_repositories(&event, &["a"]), [], "{tag:?}");
    }
}

#[test]
fn filters_are_read_back_as_they_are_written() {
    let filter = json!({
        "ids": ["11".repeat(32)], "authors": ["22".repeat(32)], "kinds": [1, 30617], "#a": ["x", "y"], "#E": ["z"],
        "since": 1, "until": 2, "limit": 3
    });
    let parsed = NostrFilter::parse(&filter).unwrap();
    assert_eq!(parsed.to_json(), filter);
    assert_eq!(NostrFilter::default().to_json(), json!({}));
}
