//! What holds for every route: times and ids as text, one way of paging, conditional requests, unknown parameters.

use super::Home;
use serde_json::{Value, json};

/// A node with a thread of so many messages, `m0` the first.
pub(super) async fn with_messages(count: usize) -> Home {
    let home = Home::new();
    let messages: Vec<Value> =
        (0..count).map(|number| json!({ "id": format!("m{number}"), "thread": "t", "body": number })).collect();
    let posted = home.by("alice", "POST", "/v1/bulk/messages", Some(json!({ "messages": messages }))).await;
    assert_eq!(posted.status, 200, "{posted:?}");
    home
}

pub(super) fn ids(page: &Value, list: &str) -> Vec<String> {
    let list = page[list].as_array().unwrap_or_else(|| panic!("no list: {page}"));
    list.iter().map(|one| one["id"].as_str().expect("an id").to_owned()).collect()
}

fn is_time(value: &Value) -> bool {
    let shape = |text: &str| text.len() == 30 && text.as_bytes()[10] == b'T' && text.ends_with('Z');
    value.as_str().is_some_and(shape)
}

#[tokio::test]
async fn every_time_is_given_as_rfc_3339_and_every_number_of_something_as_text() {
    let home = with_messages(1).await;
    let operator = [("authorization", &*format!("Bearer op_{}", server::test_support::OPERATOR)), ("x-space", "home")];
    home.by("alice", "POST", "/v1/reports", Some(json!({ "message": "m0", "reason": "x" }))).await;
    home.send("POST", "/admin/jobs", &operator, Some(&json!({ "work": "retain" }))).await;
    home.send("POST", "/admin/signing-keys", &operator, None).await;
    let mut seen = 0;
    for path in [
        "/v1/messages/m0",
        "/v1/threads/t",
        "/admin/jobs",
        "/admin/reports",
        "/admin/audit",
        "/admin/users",
        "/admin/api-keys",
        "/admin/signing-keys",
        "/admin/users/alice/export",
        "/admin/retention",
    ] {
        let answer = home.send("GET", path, &operator, None).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        let mut left = vec![answer.body];
        while let Some(value) = left.pop() {
            for (name, inner) in value.as_object().into_iter().flatten() {
                if name.ends_with("_at") || name == "since" {
                    assert!(inner.is_null() || is_time(inner), "{path} {name}: {inner}");
                    seen += usize::from(!inner.is_null());
                }
                assert!(
                    !["number", "job", "position", "id"].contains(&name.as_str()) || inner.is_string(),
                    "{path} {name}"
                );
                // Unix nanoseconds are for clients of ProgressDB, and for them only.
                let is_shape = ["/v1/messages/m0", "/v1/threads/t"].contains(&path);
                assert!(is_shape || !(name.ends_with("_ts") || name == "ts"), "{path} {name}");
                left.push(inner.clone());
            }
            left.extend(value.as_array().into_iter().flatten().cloned());
        }
    }
    assert!(seen > 12, "{seen}");
    let message = home.by("alice", "GET", "/v1/messages/m0", None).await.body;
    let edited = home.by("alice", "PUT", "/v1/messages/m0", Some(json!({ "body": 2 }))).await.body;
    assert_eq!(edited["created_at"], message["created_at"]);
    assert!(edited["updated_at"].as_str() > message["updated_at"].as_str(), "{edited}");
    // Whatever was read can be sent back.
    assert_eq!(home.by("alice", "PUT", "/v1/messages/m0", Some(edited)).await.status, 200);
    let thread = home.by("alice", "GET", "/v1/threads/t", None).await.body;
    assert_eq!(home.by("alice", "PUT", "/v1/threads/t", Some(thread)).await.status, 200);
    let mut message = home.by("alice", "GET", "/v1/messages/m0", None).await.body;
    message["id"] = "copy".into();
    assert_eq!(home.by("alice", "POST", "/v1/messages", Some(message)).await.status, 201);
}

#[tokio::test]
async fn messages_are_paged_in_both_directions() {
    let home = with_messages(7).await;
    let page = |query: String| {
        let home = &home;
        async move { home.by("alice", "GET", &format!("/v1/threads/t/messages?limit=3{query}"), None).await.body }
    };
    let latest = page(String::new()).await;
    assert_eq!(
        (ids(&latest, "messages"), &latest["previous"]),
        (vec!["m4".into(), "m5".into(), "m6".into()], &Value::Null)
    );
    let cursor =
        |page: &Value, way: &str| format!("&cursor={}", page[way].as_str().unwrap_or_else(|| panic!("{page}")));
    let older = page(cursor(&latest, "next")).await;
    assert_eq!(ids(&older, "messages"), ["m1", "m2", "m3"]);
    let oldest = page(cursor(&older, "next")).await;
    assert_eq!((ids(&oldest, "messages"), &oldest["next"]), (vec!["m0".into()], &Value::Null));
    let back = page(cursor(&oldest, "previous")).await;
    assert_eq!(ids(&back, "messages"), ["m1", "m2", "m3"]);
    // What came forwards goes on forwards.
    let forward = page(cursor(&back, "next")).await;
    assert_eq!(
        (ids(&forward, "messages"), &forward["next"]),
        (vec!["m4".into(), "m5".into(), "m6".into()], &Value::Null)
    );
    let after = page("&after=m2".to_owned()).await;
    assert_eq!(ids(&after, "messages"), ["m3", "m4", "m5"]);
    assert_eq!(ids(&page(cursor(&after, "next")).await, "messages"), ["m6"]);
    assert_eq!(ids(&page(cursor(&after, "previous")).await, "messages"), ["m0", "m1", "m2"]);
    let before = page("&before=m3".to_owned()).await;
    assert_eq!(
        (ids(&before, "messages"), &before["next"]),
        (vec!["m0".into(), "m1".into(), "m2".into()], &Value::Null)
    );
    assert_eq!(ids(&page(cursor(&before, "previous")).await, "messages"), ["m3", "m4", "m5"]);
    let around = page("&around=m3".to_owned()).await;
    assert_eq!(ids(&around, "messages"), ["m2", "m3", "m4"]);
    assert_eq!(ids(&page(cursor(&around, "next")).await, "messages"), ["m5", "m6"]);
    assert_eq!(ids(&page(cursor(&around, "previous")).await, "messages"), ["m0", "m1"]);
    let alone = home.by("alice", "GET", "/v1/threads/t/messages?around=m3&limit=1", None).await.body;
    assert_eq!(ids(&alone, "messages"), ["m3"]);
    assert_eq!(ids(&page(cursor(&alone, "previous")).await, "messages"), ["m0", "m1", "m2"], "none is passed over");
    assert_eq!(ids(&page(cursor(&alone, "next")).await, "messages"), ["m4", "m5", "m6"]);
    let none = page("&after=m6".to_owned()).await;
    assert_eq!((ids(&none, "messages").len(), &none["next"]), (0, &Value::Null));
    assert_eq!(ids(&page(cursor(&none, "previous")).await, "messages"), ["m4", "m5", "m6"], "and the one itself");
    for wrong in ["&cursor=before-1", "&cursor=sideways-1-00000000000000000000000000000000", "&before=m1&cursor=x"] {
        let refused = home.by("alice", "GET", &format!("/v1/threads/t/messages?limit=3{wrong}"), None).await;
        assert_eq!(refused.status, 400, "{wrong}: {refused:?}");
    }
}

#[tokio::test]
async fn a_page_that_ends_at_the_end_says_so_and_deleted_messages_do_not_count() {
    let home = with_messages(4).await;
    assert_eq!(home.by("alice", "DELETE", "/v1/messages/m0", None).await.status, 204);
    let page = home.by("alice", "GET", "/v1/threads/t/messages?limit=3", None).await.body;
    assert_eq!((ids(&page, "messages"), &page["next"]), (vec!["m1".into(), "m2".into(), "m3".into()], &Value::Null));
    let page = home.by("alice", "GET", "/v1/threads/t/messages?limit=3&include_deleted=true", None).await.body;
    assert!(page["next"].is_string());
}

/// Reads a list to its end by `next`, so many at a time. There is a `next` if and only if there is more.
async fn read_all(home: &Home, headers: &[(&str, &str)], (path, list): (&str, &str), limit: usize) -> Vec<Value> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    let joint = if path.contains('?') { '&' } else { '?' };
    for _ in 0..60 {
        let page = home.send("GET", &format!("{path}{joint}limit={limit}{cursor}"), headers, None).await;
        assert_eq!(page.status, 200, "{path}: {page:?}");
        let rows = page.body[list].as_array().unwrap_or_else(|| panic!("{path}: {page:?}")).clone();
        assert!(rows.len() <= limit && (cursor.is_empty() || !rows.is_empty()), "{path} {limit}: {page:?}");
        let is_full = rows.len() == limit;
        found.extend(rows);
        match page.body["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
        assert!(is_full, "{path}: more fit on the page");
    }
    panic!("{path} has no end");
}

#[tokio::test]
async fn every_list_is_paged_by_limit_cursor_and_next() {
    let home = with_messages(1).await;
    let operator = [("authorization", &*format!("Bearer op_{}", server::test_support::OPERATOR)), ("x-space", "home")];
    for number in 0..5 {
        let posted = json!({ "thread": format!("t{number}"), "body": "x", "reply_to": "m0", "mentions": ["alice"] });
        assert_eq!(home.by(&format!("u{number}"), "POST", "/v1/messages", Some(posted)).await.status, 201);
        home.by("alice", "PUT", "/v1/messages/m0", Some(json!({ "body": number }))).await;
        home.by("alice", "POST", "/v1/reports", Some(json!({ "message": "m0", "reason": "x" }))).await;
        let work = json!({ "work": "retain" });
        let begun = home.send("POST", "/admin/jobs", &operator, Some(&work)).await;
        assert_eq!(begun.header("location"), Some(&*format!("/admin/jobs/{}", begun.body["job"].as_str().unwrap())));
    }
    let as_alice = [("x-api-key", home.backend.as_str()), ("x-user-id", "alice")];
    for (path, list, count) in [
        ("/v1/threads", "threads", 6),
        ("/v1/messages/m0/replies", "messages", 5),
        ("/v1/threads/t/messages/m0/replies", "messages", 5),
        ("/v1/messages/m0/versions", "versions", 6),
        ("/v1/mentions", "messages", 5),
        ("/v1/export", "events", 7),
        ("/v1/messages", "messages", 6),
        ("/v1/messages?thread=t", "messages", 1),
    ] {
        for limit in 1..=3 {
            assert_eq!(read_all(&home, &as_alice, (path, list), limit).await.len(), count, "{path}");
        }
    }
    for (path, list, least) in
        [("/admin/users", "users", 6), ("/admin/audit", "entries", 5), ("/admin/threads", "threads", 6)]
    {
        let all = read_all(&home, &operator, (path, list), 1).await;
        assert_eq!(read_all(&home, &operator, (path, list), 2).await, all, "{path}");
        let distinct: std::collections::BTreeSet<String> = all.iter().map(Value::to_string).collect();
        assert!(all.len() >= least && distinct.len() == all.len(), "{path}: {all:?}");
    }
    let reports = read_all(&home, &operator, ("/admin/reports", "reports"), 1).await;
    let jobs = read_all(&home, &operator, ("/admin/jobs", "jobs"), 1).await;
    assert!(!reports.is_empty() && !jobs.is_empty(), "{reports:?} {jobs:?}");
}

#[tokio::test]
async fn the_latest_of_all_threads_are_in_order_and_none_is_passed_over() {
    let home = Home::new();
    home.by("bob", "POST", "/v1/threads", Some(json!({ "id": "dm", "private": true }))).await;
    let mut expected = Vec::new();
    for number in 0..60 {
        // One thread is busy, others are quiet for long, one is not seen.
        let thread = match number {
            0 | 59 => "old".to_owned(),
            number if number % 7 == 3 => "dm".to_owned(),
            number if number % 5 == 0 => format!("t{number}"),
            _ => "busy".to_owned(),
        };
        let sent = json!({ "id": format!("m{number}"), "thread": thread, "body": number });
        let posted = home.by(if thread == "dm" { "bob" } else { "alice" }, "POST", "/v1/messages", Some(sent)).await;
        assert_eq!(posted.status, 201);
        if number % 4 == 1 {
            home.by("alice", "DELETE", &format!("/v1/messages/m{number}"), None).await;
        }
        if thread != "dm" && number % 4 != 1 {
            expected.push(format!("m{number}"));
        }
    }
    for limit in [1, 2, 7, 40] {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = home.by("alice", "GET", &format!("/v1/messages?limit={limit}{cursor}"), None).await.body;
            // Each page has its newest last.
            found.splice(0..0, ids(&page, "messages"));
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(found, expected, "{limit}");
    }
    for wrong in ["cursor=after-1-00000000000000000000000000000000", "before=m1", "cursor=x"] {
        assert_eq!(home.by("alice", "GET", &format!("/v1/messages?{wrong}"), None).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn a_page_looks_at_so_many_deleted_messages_and_goes_on_from_there() {
    let deleted = 1100;
    let home = with_messages(500).await;
    for first in [500, 1000] {
        let numbers = first..(first + 500).min(deleted + 2);
        let messages: Vec<Value> =
            numbers.map(|number| json!({ "id": format!("m{number}"), "thread": "t", "body": number })).collect();
        home.by("alice", "POST", "/v1/bulk/messages", Some(json!({ "messages": messages }))).await;
    }
    let paths: Vec<String> = (1..=deleted).map(|number| format!("/v1/messages/m{number}")).collect();
    let gone = futures_util::future::join_all(paths.iter().map(|path| home.by("alice", "DELETE", path, None))).await;
    assert!(gone.iter().all(|gone| gone.status == 204));
    let page =
        async |query: String| home.by("alice", "GET", &format!("/v1/threads/t/messages?{query}"), None).await.body;
    let first = page("limit=2".to_owned()).await;
    assert_eq!(ids(&first, "messages"), ["m1101"]);
    let next = first["next"].as_str().expect("more");
    // One that is shown and 1,001 that are not: the others are left.
    let left = page(format!("limit=500&include_deleted=true&cursor={next}")).await;
    assert_eq!(ids(&left, "messages").len(), deleted + 2 - 1002);
    let second = page(format!("limit=2&cursor={next}")).await;
    assert_eq!((ids(&second, "messages"), &second["next"]), (vec!["m0".to_owned()], &Value::Null));
    let back = page("limit=1&after=m0".to_owned()).await;
    assert!(ids(&back, "messages").is_empty() && back["next"].is_string(), "{back}");
    let back = page(format!("limit=1&cursor={}", back["next"].as_str().expect("more"))).await;
    assert_eq!((ids(&back, "messages"), &back["next"]), (vec!["m1101".to_owned()], &Value::Null));
}

#[tokio::test]
async fn what_would_wait_too_long_is_refused_at_once() {
    let home = with_messages(1).await;
    home.be_late(std::time::Duration::from_secs(2));
    for (method, path) in [("GET", "/v1/threads"), ("PUT", "/v1/messages/m0")] {
        let refused = home.by("alice", method, path, Some(json!({ "body": 1 }))).await;
        assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (503, Some("1")), "{method} {path}");
    }
    assert_eq!(home.send("GET", "/readyz", &[], None).await.status, 200);
    let operator = [("authorization", &*format!("Bearer op_{}", server::test_support::OPERATOR))];
    assert_eq!(home.send("GET", "/admin/spaces", &operator, None).await.status, 200);
    let metrics = home.send("GET", "/metrics", &operator, None).await;
    assert_eq!(metrics.status, 200);
    home.be_late(std::time::Duration::ZERO);
    assert_eq!(home.by("alice", "GET", "/v1/threads", None).await.status, 200);
}

#[tokio::test]
async fn replies_that_the_caller_does_not_see_leave_no_trace() {
    let home = with_messages(1).await;
    let private = json!({ "id": "dm", "participants": ["bob"], "private": true });
    home.by("alice", "POST", "/v1/threads", Some(private)).await;
    for number in 0..5 {
        let thread = if number == 3 { "t" } else { "dm" };
        let sent = json!({ "id": format!("r{number}"), "thread": thread, "body": number, "reply_to": "m0" });
        assert_eq!(home.by("alice", "POST", "/v1/messages", Some(sent)).await.status, 201);
    }
    let page = home.by("eve", "GET", "/v1/messages/m0/replies?limit=1", None).await.body;
    assert_eq!((ids(&page, "messages"), &page["next"]), (vec!["r3".to_owned()], &Value::Null), "{page}");
    let page = home.by("bob", "GET", "/v1/messages/m0/replies?limit=1", None).await.body;
    assert!(ids(&page, "messages") == ["r0"] && page["next"].is_string(), "{page}");
}

#[tokio::test]
async fn unknown_parameters_are_named() {
    let home = with_messages(1).await;
    for (path, named) in [
        ("/v1/threads?limt=3", "limt"),
        ("/v1/threads/t/messages?limit=3&page=2", "page"),
        ("/v1/messages/m0?x", "x"),
        ("/healthz?deep=1", "deep"),
    ] {
        let refused = home.by("alice", "GET", path, None).await;
        assert_eq!(refused.status, 400, "{path}: {refused:?}");
        assert!(
            refused.body["detail"].as_str().is_some_and(|detail| detail.contains(&format!("{named:?}"))),
            "{refused:?}"
        );
    }
    assert_eq!(home.by("alice", "GET", "/frontend/v1/threads?anything=1", None).await.status, 200, "for ProgressDB");
    let session = home.session("alice", false);
    let session: Vec<(&str, &str)> = session.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(
        home.send("GET", "/v1/threads?space=home", &session, None).await.status,
        200,
        "a session names its space"
    );
    assert_eq!(home.by("alice", "GET", "/v1/threads?space=home", None).await.status, 400, "a key has one");
    assert_eq!(home.send("GET", "/v1/threads?limt=3", &[], None).await.status, 401, "nobody is told what a path takes");
}

#[tokio::test]
async fn what_is_new_says_where_it_is() {
    let home = Home::new();
    for (path, body) in [
        ("/v1/threads", json!({ "id": "t", "title": "x" })),
        ("/v1/messages", json!({ "id": "m", "thread": "t", "body": 1 })),
        ("/v1/threads/t/messages", json!({ "body": 2 })),
    ] {
        let made = home.by("alice", "POST", path, Some(body.clone())).await;
        assert_eq!(made.status, 201);
        let place = made.header("location").unwrap_or_else(|| panic!("{path}")).to_owned();
        let found = home.by("alice", "GET", &place, None).await.body;
        assert_eq!(found["id"], made.body["id"], "{path} {place}");
    }
}

#[tokio::test]
async fn answers_are_compressed_for_those_who_ask() {
    let home = with_messages(20).await;
    let plain = home.by("alice", "GET", "/v1/threads/t/messages", None).await;
    let packed = home.by_with("alice", "GET", "/v1/threads/t/messages", ("accept-encoding", "gzip"), None).await;
    assert_eq!((plain.header("content-encoding"), packed.header("content-encoding")), (None, Some("gzip")));
    assert_eq!(plain.header("etag"), packed.header("etag"));
}

#[tokio::test]
async fn the_address_of_a_client_is_what_the_last_proxy_says() {
    let limits = server::Limits { address_per_second: 2, ..server::Limits::default() };
    let proxies = vec!["192.0.2.0/24".parse().expect("a network")];
    let home = Home::with(server::ServerOptions { limits, proxies, ..server::ServerOptions::default() });
    let mut refused = 0;
    for number in 0..30 {
        // The first header is the client's own, the second that of a proxy which adds its own.
        let made_up = format!("198.51.100.{number}");
        let headers = [("x-forwarded-for", made_up.as_str()), ("x-forwarded-for", "203.0.113.9")];
        refused += usize::from(home.send("GET", "/healthz", &headers, None).await.status == 429);
    }
    assert!(refused > 10, "{refused} of 30 were refused");
}

#[tokio::test]
async fn a_user_behind_a_backend_key_is_limited_too() {
    let limits = server::Limits { backend_user_per_second: 2, ..server::Limits::default() };
    let home = Home::with(server::ServerOptions { limits, ..server::ServerOptions::default() });
    let mut answers = Vec::new();
    for _ in 0..20 {
        answers.push(home.by("alice", "GET", "/v1/threads", None).await);
    }
    let refused = answers.iter().find(|answer| answer.status == 429).expect("a limit");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(home.by("bob", "GET", "/v1/threads", None).await.status, 200, "others are not");
    assert_eq!(home.send("GET", "/v1/threads", &[("x-api-key", &home.backend)], None).await.status, 200);
}
