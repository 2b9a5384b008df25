//! Users among each other: mentions, blocks, reports, leaving, taking along.

use super::Home;
use serde_json::{Value, json};

/// The bodies of a page.
fn bodies(page: &Value) -> Vec<String> {
    let messages = page["messages"].as_array().expect("messages");
    messages.iter().map(|message| message["body"].as_str().unwrap_or("-").to_owned()).collect()
}

async fn say(home: &Home, user: &str, thread: &str, body: Value) -> Value {
    let said = home.by(user, "POST", &format!("/v1/threads/{thread}/messages"), Some(body)).await;
    assert_eq!(said.status, 201, "{said:?}");
    said.body
}

#[tokio::test]
async fn mentions_are_found_the_latest_first_where_they_may_be_seen() {
    let home = Home::new();
    for number in 0..3 {
        say(&home, "alice", "t1", json!({ "body": format!("{number}"), "mentions": ["bob"] })).await;
    }
    say(&home, "alice", "t1", json!({ "body": "not about bob" })).await;
    let private = json!({ "id": "p1", "private": true, "participants": ["carol"] });
    assert_eq!(home.by("alice", "POST", "/v1/threads", Some(private)).await.status, 201);
    say(&home, "alice", "p1", json!({ "body": "behind bob's back", "mentions": ["bob"] })).await;
    say(&home, "carol", "t1", json!({ "body": "hello bob", "mentions": ["bob"] })).await;
    let all = home.by("bob", "GET", "/v1/mentions", None).await.body;
    assert_eq!(bodies(&all), ["hello bob", "2", "1", "0"]);
    let first = home.by("bob", "GET", "/v1/mentions?limit=3", None).await.body;
    assert_eq!(bodies(&first), ["hello bob", "2", "1"], "one on the way is not to be seen");
    let next = format!("/v1/mentions?limit=3&cursor={}", first["next"].as_str().expect("a cursor"));
    let last = home.by("bob", "GET", &next, None).await.body;
    assert_eq!((bodies(&last), &last["next"]), (vec!["0".to_owned()], &Value::Null));
    home.by("bob", "PUT", "/v1/blocks/alice", Some(json!({ "kind": "mute" }))).await;
    assert_eq!(bodies(&home.by("bob", "GET", "/v1/mentions", None).await.body), ["hello bob"]);
}

#[tokio::test]
async fn who_is_blocked_is_not_shown_and_who_is_muted_is_not_unread() {
    let home = Home::new();
    for user in ["alice", "mallory", "noisy", "mallory"] {
        say(&home, user, "t1", json!({ "body": user })).await;
    }
    let page = || home.by("bob", "GET", "/v1/threads/t1/messages", None);
    assert_eq!(home.by("bob", "PUT", "/v1/blocks/mallory", Some(json!({ "kind": "block" }))).await.status, 204);
    assert_eq!(home.by("bob", "PUT", "/v1/blocks/noisy", Some(json!({ "kind": "mute" }))).await.status, 204);
    assert_eq!(bodies(&page().await.body), ["alice", "noisy"]);
    assert_eq!(home.by("bob", "GET", "/v1/threads/t1", None).await.body["unread"], 1);
    let blocks = home.by("bob", "GET", "/v1/blocks", None).await.body;
    let mut kinds: Vec<_> = blocks["blocks"].as_array().expect("blocks").iter().map(|one| one.to_string()).collect();
    kinds.sort();
    assert_eq!(kinds, [r#"{"kind":"block","user":"mallory"}"#, r#"{"kind":"mute","user":"noisy"}"#]);
    let others = home.by("alice", "GET", "/v1/threads/t1/messages", None).await;
    assert_eq!(bodies(&others.body).len(), 4, "others see everything");
    assert_eq!(home.by("bob", "DELETE", "/v1/blocks/mallory", None).await.status, 204);
    assert_eq!(bodies(&page().await.body).len(), 4);
    for (user, status) in [("nobody-here", 404), ("bob", 404)] {
        let answer = home.by("bob", "PUT", &format!("/v1/blocks/{user}"), Some(json!({ "kind": "block" }))).await;
        assert_eq!(answer.status, status, "{user}: {answer:?}");
    }
}

#[tokio::test]
async fn a_report_reaches_the_moderators_and_is_settled_once_for_all_to_see() {
    let home = Home::new();
    let said = say(&home, "mallory", "t1", json!({ "id": "m1", "body": "something bad" })).await;
    let report = json!({ "message": "m1", "reason": "spam" });
    assert_eq!(home.by("alice", "POST", "/v1/reports", Some(report)).await.status, 204);
    let unknown = json!({ "message": "m2", "reason": "spam" });
    assert_eq!(home.by("alice", "POST", "/v1/reports", Some(unknown)).await.status, 404);
    let admin = [("x-api-key", home.admin.as_str())];
    let list = || home.send("GET", "/admin/reports", &admin, None);
    let open = list().await.body;
    let first = &open["reports"][0];
    assert_eq!((&first["reporter"], &first["reason"]), (&json!("alice"), &json!("spam")));
    assert_eq!((&first["message"], &first["settled_by"]), (&said["event"], &Value::Null));
    let note = json!({ "note": "removed" });
    assert_eq!(home.send("PUT", "/admin/reports/1", &admin, Some(&note)).await.status, 204);
    assert_eq!(home.send("PUT", "/admin/reports/2", &admin, Some(&note)).await.status, 404);
    assert_eq!(list().await.body["reports"][0]["note"], "removed");
}

#[tokio::test]
async fn who_leaves_may_nothing_any_more_and_only_leaves_alone() {
    let home = Home::new();
    say(&home, "alice", "t1", json!({ "body": "goodbye" })).await;
    say(&home, "bob", "t1", json!({ "body": "hello" })).await;
    assert_eq!(home.by("bob", "DELETE", "/v1/members/alice", None).await.status, 404);
    assert_eq!(home.by("alice", "DELETE", "/v1/members/alice", None).await.status, 204);
    assert_eq!(home.by("alice", "GET", "/v1/threads", None).await.status, 403);
    assert_eq!(bodies(&home.by("bob", "GET", "/v1/threads/t1/messages", None).await.body), ["goodbye", "hello"]);
}

#[tokio::test]
async fn an_export_has_everything_that_a_user_wrote_and_nothing_else() {
    let home = Home::new();
    for number in 0..5 {
        say(&home, "alice", "t1", json!({ "body": format!("{number}") })).await;
        say(&home, "bob", "t1", json!({ "body": "bob's" })).await;
    }
    let mut said = Vec::new();
    let mut path = "/v1/export?limit=2".to_owned();
    loop {
        let page = home.by("alice", "GET", &path, None).await.body;
        assert_eq!(page["user"], "alice");
        let events = page["events"].as_array().expect("events").clone();
        said.extend(events.iter().filter(|event| event["kind"] == "message").map(|e| e["content"]["body"].clone()));
        match page["next"].as_str() {
            Some(next) => path = format!("/v1/export?limit=2&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(said, ["0", "1", "2", "3", "4"]);
    let admin = [("x-api-key", home.admin.as_str())];
    let same = home.send("GET", "/admin/users/alice/export", &admin, None).await.body;
    assert_eq!(same["identity"].as_str().map(str::len), Some(64));
    assert_eq!(home.send("GET", "/admin/users/zed/export", &admin, None).await.status, 404);
}

#[tokio::test]
async fn who_is_blocked_is_nowhere_to_be_seen() {
    let home = Home::new();
    say(&home, "alice", "t1", json!({ "id": "m1", "body": "question" })).await;
    say(&home, "mallory", "t1", json!({ "body": "answer", "reply_to": "m1" })).await;
    let last = || async { home.by("bob", "GET", "/v1/threads/t1", None).await.body["last_message"]["body"].clone() };
    assert_eq!(last().await, "answer");
    home.by("bob", "PUT", "/v1/blocks/mallory", Some(json!({ "kind": "block" }))).await;
    assert_eq!(last().await, "question");
    assert_eq!(bodies(&home.by("bob", "GET", "/v1/messages/m1/replies", None).await.body).len(), 0);
    assert_eq!(bodies(&home.by("alice", "GET", "/v1/messages/m1/replies", None).await.body), ["answer"]);
}

#[tokio::test]
async fn blocks_have_a_limit_and_are_of_those_who_are_here() {
    let home = Home::new();
    say(&home, "alice", "t1", json!({ "body": "hello" })).await;
    let stranger = "ab".repeat(32);
    let answer = home.by("bob", "PUT", &format!("/v1/blocks/{stranger}"), Some(json!({ "kind": "block" }))).await;
    assert_eq!(answer.status, 404, "{answer:?}");
    assert_eq!(home.by("nobody", "DELETE", "/v1/members/nobody", None).await.status, 404, "who was never here");
}

/// Sends as a browser would: with the frontend key, for a user who is proven.
async fn browse(home: &Home, user: &str, method: &str, path: &str, body: Value) -> server::test_support::Answer {
    let signature = home.signature(user);
    let headers = [("x-api-key", home.frontend.as_str()), ("x-user-id", user), ("x-user-signature", &signature)];
    home.send(method, path, &headers, Some(&body)).await
}

#[tokio::test]
async fn browsers_name_only_users_who_are_here() {
    let home = Home::new();
    say(&home, "bob", "t1", json!({ "body": "hello" })).await;
    for (path, field, other) in
        [("/v1/threads/t1/messages", "mentions", "body"), ("/v1/threads", "participants", "title")]
    {
        let named = |user: &str| json!({ other: "x", field: ["bob", user] });
        assert_eq!(browse(&home, "alice", "POST", path, named("nobody")).await.status, 404, "{path}");
        assert_eq!(browse(&home, "alice", "POST", path, named("bob")).await.status, 201, "{path}");
    }
    let users = home.send("GET", "/admin/users", &[("x-api-key", home.admin.as_str())], None).await.body;
    assert_eq!(users["users"].as_array().map(Vec::len), Some(2), "{users}");
    assert_eq!(users["users"][0]["role"], "member");
}

#[tokio::test]
async fn a_thread_can_be_closed_to_others_and_opened_again() {
    let home = Home::new();
    let new = json!({ "id": "t", "participants": ["bob"] });
    assert_eq!(home.by("alice", "POST", "/v1/threads", Some(new)).await.status, 201);
    say(&home, "alice", "t", json!({ "body": "hello" })).await;
    let read = |user: &'static str| {
        let home = &home;
        async move { home.by(user, "GET", "/v1/threads/t/messages", None).await.status.as_u16() }
    };
    assert_eq!((read("bob").await, read("eve").await), (200, 200));
    for (is_private, eves) in [(true, 404), (false, 200), (true, 404)] {
        let changed = home.by("alice", "PUT", "/v1/threads/t", Some(json!({ "private": is_private }))).await;
        assert_eq!((changed.status.as_u16(), &changed.body["private"]), (200, &json!(is_private)), "{changed:?}");
        assert_eq!(changed.body["participants"].as_array().map(Vec::len), Some(2));
        assert_eq!((read("bob").await, read("eve").await), (200, eves));
    }
    let without = home.by("alice", "PUT", "/v1/threads/t", Some(json!({ "participants": [] }))).await;
    assert_eq!(without.body["private"], true, "who takes part says nothing about who sees it");
    assert_eq!((read("alice").await, read("bob").await), (200, 404));
}

#[tokio::test]
async fn what_was_deleted_softly_is_read_by_those_who_could_have_deleted_it() {
    let home = Home::new();
    say(&home, "alice", "t", json!({ "id": "m", "body": "a slip" })).await;
    assert_eq!(home.by("alice", "DELETE", "/v1/messages/m", None).await.status, 204);
    let texts = |user: &'static str| {
        let home = &home;
        async move {
            let versions = home.by(user, "GET", "/v1/messages/m/versions", None).await.body;
            versions["versions"].as_array().expect("versions").iter().map(|one| one["body"].clone()).collect::<Vec<_>>()
        }
    };
    assert_eq!(texts("alice").await, [json!("a slip"), Value::Null]);
    assert_eq!(texts("bob").await, [Value::Null]);
    let none = home.by("bob", "GET", "/v1/messages/m/replies", None).await.body;
    assert_eq!(none, json!({ "messages": [], "next": null }));
}
