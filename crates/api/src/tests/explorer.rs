//! The explorer lists every row once, shows each, and keeps to the space of its key.

use super::Home;
use engine::access::KeyRole;
use serde_json::json;
use server::test_support::{OPERATOR, found, make_key};
use std::collections::BTreeSet;

async fn filled() -> Home {
    let home = Home::new();
    let long = "x".repeat(3000);
    for (id, body) in [("m1", "one"), ("m2", "two"), ("m3", &long)] {
        home.by("alice", "POST", "/v1/threads/t1/messages", Some(json!({ "id": id, "body": body }))).await;
    }
    home.by("bob", "POST", "/v1/messages", Some(json!({ "thread": "t1", "body": "re", "reply_to": "m1" }))).await;
    home.by("alice", "PUT", "/v1/messages/m1", Some(json!({ "body": "edited" }))).await;
    home.by("bob", "POST", "/v1/messages/m1/reactions", Some(json!({ "reaction": "+1" }))).await;
    home.by("alice", "PUT", "/v1/threads/t1", Some(json!({ "title": "a title" }))).await;
    home
}

/// Every key below a prefix, read in pages of that size.
async fn walk(home: &Home, header: (&str, &str), prefix: &str, limit: usize) -> Vec<String> {
    let (mut keys, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/admin/keys?prefix={prefix}&limit={limit}{cursor}");
        let page = home.send("GET", &path, &[header], None).await;
        assert_eq!(page.status, 200, "{page:?}");
        keys.extend(
            page.body["keys"].as_array().expect("keys").iter().map(|key| key.as_str().expect("text").to_owned()),
        );
        match page.body["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return keys,
        }
    }
}

#[tokio::test]
async fn every_key_is_listed_once_and_shows_its_row() {
    let home = filled().await;
    let operator = format!("Bearer op_{OPERATOR}");
    let header = ("authorization", operator.as_str());
    let all = walk(&home, header, "", 1000).await;
    assert_eq!(walk(&home, header, "", 7).await, all);
    let page = home.send("GET", &format!("/admin/keys?limit={}", all.len()), &[header], None).await.body;
    assert_eq!((page["keys"].as_array().map(Vec::len), &page["next"]), (Some(all.len()), &serde_json::Value::Null));
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    for key in &all {
        let row = home.send("GET", &format!("/admin/keys/{key}"), &[header], None).await;
        assert_eq!(row.status, 200, "{key}: {row:?}");
        assert!(!row.body.to_string().contains("edited"), "sealed content is not decrypted: {row:?}");
    }
    let families: BTreeSet<&str> = all.iter().filter_map(|key| key.split(':').next()).collect();
    for family in [
        "space",
        "event",
        "threads",
        "thread",
        "version",
        "edit",
        "reaction",
        "reply",
        "field",
        "chosen",
        "author",
        "content",
        "journal",
        "usage",
        "api-key",
        "audit",
        "membership",
    ] {
        assert!(families.contains(family), "{family} is missing among {families:?}");
    }
}

#[tokio::test]
async fn a_prefix_lists_a_thread_in_order() {
    let home = filled().await;
    let header = ("x-api-key", home.admin.as_str());
    let thread =
        home.by("alice", "GET", "/v1/threads/t1", None).await.body["event"].as_str().expect("an id").to_owned();
    let messages = walk(&home, header, &format!("thread:{thread}:msg:"), 2).await;
    assert_eq!(messages.len(), 4);
    assert!(messages.is_sorted());
    // A prefix may end within a time.
    assert_eq!(walk(&home, header, &messages[0][..messages[0].len() - 36], 2).await, messages[..1]);
    let row = home.send("GET", &format!("/admin/keys/{}", messages[0]), &[header], None).await;
    let event = row.body["value"]["event"].as_str().expect("an event");
    assert!(messages[0].ends_with(event));
    assert_eq!(row.body["value"]["has"], json!(["versions", "reactions", "replies"]));
    let shown = home.send("GET", &format!("/admin/keys/event:{event}"), &[header], None).await;
    assert_eq!(shown.body["value"]["kind"], "message", "{shown:?}");
    assert!(shown.body["note"].as_str().is_some_and(|note| note.contains("sealed")));
    let none = home.send("GET", "/admin/keys?prefix=moon:", &[header], None).await;
    assert_eq!((none.status.as_u16(), none.body), (200, json!({ "keys": [], "next": null })), "nothing matches");
    assert_eq!(home.send("GET", "/admin/keys?cursor=moon", &[header], None).await.status, 400);
    assert_eq!(home.send("GET", "/admin/keys/moon", &[header], None).await.status, 404);
}

#[tokio::test]
async fn threads_and_messages_are_found_by_the_ids_that_clients_chose() {
    let home = filled().await;
    home.by("alice", "POST", "/v1/messages", Some(json!({ "id": "a:b", "thread": "t1", "body": 1 }))).await;
    home.by("alice", "POST", "/v1/messages", Some(json!({ "id": "a", "thread": "t2", "body": 1 }))).await;
    let header = ("x-api-key", home.admin.as_str());
    let event = |id: &'static str| {
        let home = &home;
        async move {
            home.by("alice", "GET", &format!("/v1/messages/{id}"), None).await.body["event"].as_str().map(str::to_owned)
        }
    };
    let messages = walk(&home, header, "thread:t1:msg:", 2).await;
    assert_eq!(messages.len(), 5);
    let (one, colon) = (event("m1").await.expect("m1"), event("a:b").await.expect("a:b"));
    assert_eq!(walk(&home, header, "version:msg:m1:", 9).await.len(), 1);
    for (key, id) in
        [("event:m1", &one), ("event:a:b", &colon), ("thread:t1:msg:m1", &one), ("thread:t1:msg:a:b", &colon)]
    {
        let row = home.send("GET", &format!("/admin/keys/{key}"), &[header], None).await;
        assert!(row.body["key"].as_str().is_some_and(|key| key.ends_with(id.as_str())), "{key}: {row:?}");
    }
    for wrong in [format!("event:{one}0"), format!("event:{}", &one[1..]), format!("event:{}", one.to_uppercase())] {
        let row = home.send("GET", &format!("/admin/keys/{wrong}"), &[header], None).await;
        assert_eq!(row.status, 404, "every key has one text: {wrong}");
    }
    let other = found(&home.state.node, "other", 2);
    let stranger = make_key(&home.state.node, other, KeyRole::Admin, 9);
    let row = home.send("GET", "/admin/keys/event:m1", &[("x-api-key", &stranger)], None).await;
    assert_eq!(row.status, 404);
}

#[tokio::test]
async fn what_cannot_be_listed_for_one_space_says_so() {
    let home = filled().await;
    let header = ("x-api-key", home.admin.as_str());
    for prefix in ["api-key:", "audit:", "count:", "event:", "thread:", "held:"] {
        let refused = home.send("GET", &format!("/admin/keys?prefix={prefix}"), &[header], None).await;
        assert_eq!(refused.status, 403, "{prefix}: {refused:?}");
    }
    // Nobody learns whether something of another space exists.
    let other = found(&home.state.node, "other", 2);
    let stranger = make_key(&home.state.node, other, KeyRole::Admin, 9);
    let thread = home.by("alice", "GET", "/v1/threads/t1", None).await.body["event"].clone();
    for event in [thread.as_str().expect("an id"), "00112233445566778899aabbccddeeff"] {
        let none = home
            .send("GET", &format!("/admin/keys?prefix=thread:{event}:msg:"), &[("x-api-key", &stranger)], None)
            .await;
        assert_eq!((none.status.as_u16(), none.body), (200, json!({ "keys": [], "next": null })), "{event}");
    }
    assert!(!walk(&home, header, "journal:", 9).await.is_empty());
    assert!(!walk(&home, header, "threads:", 9).await.is_empty());
}

#[tokio::test]
async fn an_admin_key_sees_rows_of_its_space_only() {
    let home = filled().await;
    let other = found(&home.state.node, "other", 2);
    let stranger = make_key(&home.state.node, other, KeyRole::Admin, 9);
    let operator = format!("Bearer op_{OPERATOR}");
    let (own, strange) = (("x-api-key", home.admin.as_str()), ("x-api-key", stranger.as_str()));
    let all = walk(&home, ("authorization", operator.as_str()), "", 1000).await;
    let (mine, theirs) = (walk(&home, own, "", 9).await, walk(&home, strange, "", 9).await);
    assert!(!mine.is_empty() && !theirs.is_empty());
    assert!(mine.iter().any(|key| key.starts_with("journal:")) && theirs.iter().any(|key| key.starts_with("journal:")));
    let (mine, theirs): (BTreeSet<String>, BTreeSet<String>) =
        (mine.into_iter().collect(), theirs.into_iter().collect());
    assert!(mine.is_disjoint(&theirs));
    for key in &all {
        let path = format!("/admin/keys/{key}");
        let (by_own, by_stranger) = (
            home.send("GET", &path, &[own], None).await.status,
            home.send("GET", &path, &[strange], None).await.status,
        );
        assert!(by_own == 404 || by_stranger == 404, "{key} is shown to both");
        assert!(!mine.contains(key) || by_own == 200, "{key} is listed and not shown");
        assert!(!theirs.contains(key) || by_stranger == 200, "{key} is listed and not shown");
        // A prefix or cursor taken from the other space leads nowhere.
        if by_own == 200 {
            let begun = &key[..key.len() - 1];
            for query in [format!("prefix={begun}"), format!("cursor={key}&limit=1000")] {
                let page = home.send("GET", &format!("/admin/keys?{query}"), &[strange], None).await;
                for listed in page.body["keys"].as_array().into_iter().flatten() {
                    assert!(theirs.contains(listed.as_str().expect("text")), "{key}: {listed}");
                }
            }
        }
    }
}
