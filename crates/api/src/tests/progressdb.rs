//! What clients of ProgressDB find. Their published clients themselves are run through the real binary.

use super::Home;
use serde_json::{Value, json};

fn keys(page: &Value) -> Vec<&str> {
    page["data"].as_array().expect("data").iter().filter_map(|one| one["key"].as_str()).collect()
}

#[tokio::test]
async fn threads_are_listed_newest_first_after_before_and_around_a_key() {
    let home = Home::new();
    for number in 0..6 {
        let thread = json!({ "id": format!("t{number}"), "title": format!("Thread {number}") });
        let made = home.by("alice", "POST", "/frontend/v1/threads", Some(thread)).await;
        assert_eq!((made.status.as_u16(), &made.body["key"]), (201, &json!(format!("t{number}"))), "{made:?}");
    }
    let list = |query: &'static str| {
        let home = &home;
        async move { home.by("alice", "GET", &format!("/frontend/v1/threads?{query}"), None).await.body }
    };
    let first = list("limit=2").await;
    assert_eq!(keys(&first), ["t5", "t4"]);
    assert_eq!(first["pagination"], json!({ "has_more": true, "next_cursor": "t4", "prev_cursor": null, "count": 2 }));
    let empty = list("limit=2&before=&after=&anchor=&author=&title=&slug=").await;
    assert_eq!(empty, first, "what is left empty was not asked for");
    let second = list("limit=2&after=t4").await;
    assert_eq!((keys(&second), &second["pagination"]["prev_cursor"]), (vec!["t3", "t2"], &json!("t3")));
    let last = list("limit=2&after=t2&sort_by=created_ts").await;
    assert_eq!(keys(&last), ["t1", "t0"]);
    assert_eq!(last["pagination"], json!({ "has_more": false, "next_cursor": null, "prev_cursor": "t1", "count": 2 }));
    let newer = list("limit=2&before=t2").await;
    assert_eq!(keys(&newer), ["t4", "t3"]);
    assert_eq!(newer["pagination"], json!({ "has_more": true, "next_cursor": "t3", "prev_cursor": "t4", "count": 2 }));
    assert_eq!(keys(&list("limit=3&anchor=t3").await), ["t4", "t3", "t2"]);
    assert_eq!(keys(&list("title=thread%201").await), ["t1"]);
    for wrong in ["limit=0", "limit=101", "before=t1&after=t2", "sort_by=color"] {
        assert_eq!(list(wrong).await["status"], 400, "{wrong}");
    }
    assert_eq!(list("after=nothing").await["status"], 404);
}

#[tokio::test]
async fn messages_have_keys_and_are_paged_by_them() {
    let home = Home::new();
    let path = "/frontend/v1/threads/t/messages";
    for number in 0..5 {
        let made = home.by("alice", "POST", path, Some(json!({ "id": format!("m{number}"), "body": number }))).await;
        assert_eq!(
            (made.status.as_u16(), &made.body["key"], &made.body["role"]),
            (201, &json!(format!("m{number}")), &json!("user"))
        );
    }
    let list = |query: String| {
        let home = &home;
        async move { home.by("alice", "GET", &format!("{path}?{query}"), None).await.body }
    };
    let latest = list("limit=2".to_owned()).await;
    assert_eq!((keys(&latest), &latest["pagination"]["has_more"]), (vec!["m3", "m4"], &json!(true)));
    let cursor = latest["pagination"]["next_cursor"].as_str().expect("a cursor");
    let older = list(format!("limit=2&before={cursor}")).await;
    assert_eq!(keys(&older), ["m1", "m2"]);
    let back = older["pagination"]["prev_cursor"].as_str().expect("a cursor");
    assert_eq!(keys(&list(format!("limit=2&after={back}")).await), ["m3", "m4"]);
    assert_eq!(keys(&list("limit=3&anchor=m2".to_owned()).await), ["m1", "m2", "m3"]);
    let one = home.by("alice", "PUT", &format!("{path}/m2"), Some(json!({ "body": "new" }))).await.body;
    assert_eq!((&one["key"], &one["body"]), (&json!("m2"), &json!("new")));
    assert_eq!(home.by("alice", "GET", &format!("{path}/m2"), None).await.body, one);
    let shown = home.by("alice", "GET", &format!("{path}/m2"), None).await;
    assert_eq!(shown.header("etag"), None, "its clients know nothing of tags");
    let gone = home.by("alice", "DELETE", &format!("{path}/m2"), None).await;
    assert_eq!((gone.status.as_u16(), gone.body), (200, json!({ "deleted": true })));
    let gone = home.by("alice", "DELETE", "/frontend/v1/threads/t", None).await;
    assert_eq!((gone.status.as_u16(), gone.body), (200, json!({ "deleted": true })));
    assert_eq!(home.by("alice", "GET", "/frontend/v1/threads/t", None).await.status, 404);
}

#[tokio::test]
async fn reactions_are_a_list_and_reacting_answers_with_the_message() {
    let home = Home::new();
    home.by("alice", "POST", "/v1/messages", Some(json!({ "id": "m", "thread": "t", "body": 1 }))).await;
    for path in ["/v1/messages/m/reactions", "/v1/threads/t/messages/m/reactions"] {
        let message = home.by("bob", "POST", path, Some(json!({ "id": "bob", "reaction": "+1" }))).await.body;
        assert_eq!((&message["id"], &message["reactions"]), (&json!("m"), &json!({ "bob": "+1" })));
        let listed = home.by("alice", "GET", path, None).await.body;
        assert_eq!(listed, json!({ "id": "m", "reactions": [{ "id": "bob", "reaction": "+1" }] }));
    }
}

#[tokio::test]
async fn a_role_is_kept_also_when_the_message_is_edited() {
    let home = Home::new();
    let sent = json!({ "id": "m", "thread": "t", "body": 1, "role": "assistant" });
    assert_eq!(home.by("alice", "POST", "/v1/messages", Some(sent)).await.body["role"], "assistant");
    home.by("alice", "POST", "/v1/messages", Some(json!({ "id": "n", "thread": "t", "body": 1 }))).await;
    let edited = home.by("alice", "PUT", "/v1/messages/m", Some(json!({ "body": 2, "role": "user" }))).await.body;
    assert_eq!((&edited["role"], &edited["body"]), (&json!("assistant"), &json!(2)));
    let page = home.by("alice", "GET", "/v1/threads/t/messages", None).await.body;
    assert_eq!((&page["messages"][0]["role"], &page["messages"][1]["role"]), (&json!("assistant"), &json!("user")));
    let long = home.by("alice", "POST", "/v1/messages", Some(json!({ "body": 1, "role": "" }))).await;
    assert_eq!((long.status.as_u16(), &long.body["title"]), (422, &json!("A limit is not kept")));
}

#[tokio::test]
async fn the_latest_messages_of_all_threads_are_listed_as_far_as_the_caller_sees_them() {
    let home = Home::new();
    let private = json!({ "id": "dm", "participants": ["bob"], "private": true });
    home.by("alice", "POST", "/v1/threads", Some(private)).await;
    for number in 0..9 {
        let thread = ["a", "b", "dm"][number % 3];
        let sent = json!({ "id": format!("m{number}"), "thread": thread, "body": number });
        assert_eq!(home.by("alice", "POST", "/v1/messages", Some(sent)).await.status, 201);
    }
    let list = |user: &'static str, limit: usize| {
        let home = &home;
        async move {
            let page = home.by(user, "GET", &format!("/v1/messages?limit={limit}"), None).await.body;
            let ids = page["messages"]
                .as_array()
                .expect("messages")
                .iter()
                .filter_map(|one| one["id"].as_str().map(str::to_owned));
            ids.collect::<Vec<_>>()
        }
    };
    assert_eq!(list("bob", 4).await, ["m5", "m6", "m7", "m8"]);
    assert_eq!(list("eve", 4).await, ["m3", "m4", "m6", "m7"]);
    assert_eq!(list("eve", 50).await, ["m0", "m1", "m3", "m4", "m6", "m7"]);
}

#[tokio::test]
async fn stats_count_messages_and_tell_a_tenant_nothing_of_others() {
    let home = Home::new();
    for number in 0..3 {
        home.by("alice", "POST", "/v1/messages", Some(json!({ "thread": "t", "body": number }))).await;
    }
    let stats = home.send("GET", "/admin/stats", &[("x-api-key", &home.admin)], None).await.body;
    assert_eq!(
        (&stats["threads"], &stats["messages"], &stats["held"]),
        (&json!(1), &json!(3), &Value::Null),
        "{stats}"
    );
    let operator = [("authorization", &*format!("Bearer op_{}", server::test_support::OPERATOR)), ("x-space", "home")];
    assert_eq!(home.send("GET", "/admin/stats", &operator, None).await.body["held"], 0);
    let threads = home.send("GET", "/admin/threads", &[("x-api-key", &home.admin)], None).await;
    assert_eq!(threads.body["threads"][0]["id"], "t", "{threads:?}");
    assert_eq!(home.send("GET", "/admin/threads", &[("x-api-key", &home.backend)], None).await.status, 403);
}

#[tokio::test]
async fn a_slug_that_was_made_from_the_title_stays() {
    let home = Home::new();
    let thread = home.by("alice", "POST", "/v1/threads", Some(json!({ "title": "Room One!" }))).await.body;
    assert_eq!(thread["slug"], "room-one");
    let path = format!("/v1/threads/{}", thread["id"].as_str().expect("an id"));
    let renamed = home.by("alice", "PUT", &path, Some(json!({ "title": "Another" }))).await.body;
    assert_eq!((&renamed["slug"], &renamed["title"]), (&json!("room-one"), &json!("Another")));
    home.by("alice", "POST", "/v1/messages", Some(json!({ "thread": "plain", "body": 1 }))).await;
    assert_eq!(home.by("alice", "GET", "/v1/threads/plain", None).await.body["slug"], "plain");
}
