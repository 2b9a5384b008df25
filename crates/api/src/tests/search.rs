//! Searching as an application does it.

use super::Home;
use node::search::SearchService;
use serde_json::{Value, json};
use server::test_support::Answer;
use std::sync::Arc;

/// A home that searches. The test is the loop: what was written is found after [`Library::catch_up`].
struct Library {
    home: Home,
    searching: Arc<SearchService>,
    _folder: tempfile::TempDir,
}

impl Library {
    fn new() -> Library {
        let home = Home::new();
        let folder = tempfile::tempdir().expect("a folder");
        let searching = SearchService::start(&home.state.node, folder.path().to_owned());
        home.state.search_with(searching.clone());
        Library { home, searching, _folder: folder }
    }

    async fn say(&self, user: &str, thread: &str, body: Value) -> String {
        let path = format!("/v1/threads/{thread}/messages");
        let answer = self.home.by(user, "POST", &path, Some(json!({ "body": body }))).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.body["id"].as_str().expect("an id").to_owned()
    }

    fn catch_up(&self) {
        self.searching.catch_up().expect("caught up");
    }

    async fn search(&self, user: &str, query: &str) -> Answer {
        self.home.by(user, "GET", &format!("/v1/search?{query}"), None).await
    }

    async fn ids(&self, user: &str, query: &str) -> Vec<String> {
        let answer = self.search(user, query).await;
        assert_eq!(answer.status, 200, "{query}: {answer:?}");
        let messages = answer.body["messages"].as_array().expect("messages");
        let mut ids: Vec<String> = messages.iter().map(|message| message["id"].as_str().expect("id").into()).collect();
        ids.sort();
        ids
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        self.searching.stop();
    }
}

fn sorted<const N: usize>(mut ids: [&String; N]) -> [&String; N] {
    ids.sort();
    ids
}

#[tokio::test]
async fn messages_are_found_by_words_beginnings_and_phrases() {
    let library = Library::new();
    let one = library.say("alice", "garden", json!("The quick brown fox")).await;
    let two = library.say("bob", "kitchen", json!({ "text": "quickly, a brown Café" })).await;
    library.catch_up();
    assert_eq!(library.ids("carol", "q=quick").await.iter().collect::<Vec<_>>(), sorted([&one, &two]));
    assert_eq!(library.ids("carol", "q=brown%20qui").await.len(), 2);
    assert_eq!(library.ids("carol", "q=%22quick%20brown%22").await, [one.as_str()]);
    assert_eq!(library.ids("carol", "q=cafe").await, [two.as_str()]);
    assert_eq!(library.ids("carol", "q=brown&thread=garden").await, [one.as_str()]);
    assert_eq!(library.ids("carol", "q=brown&author=bob").await, [two.as_str()]);
    assert_eq!(library.ids("carol", "q=brown&author=nobody").await, Vec::<String>::new());
    let found = library.search("carol", "q=brown&author=alice").await.body;
    let (message, at) = (&found["messages"][0], found["messages"][0]["created_at"].as_str().expect("a time"));
    assert_eq!((&message["body"], &message["thread"]), (&json!("The quick brown fox"), &json!("garden")));
    assert_eq!(library.ids("carol", &format!("q=brown&after={at}")).await, [two.as_str()]);
    let later = library.search("carol", "q=brown&author=bob").await.body["messages"][0]["created_at"].clone();
    let later = later.as_str().expect("a time").replace('Z', "%2B00:00");
    assert_eq!(library.ids("carol", &format!("q=brown&before={later}")).await, [one.as_str()]);
    let refused = library.search("carol", "q=brown&before=1774112649000000000").await;
    assert_eq!(refused.status, 400, "{}", refused.body);
}

#[tokio::test]
async fn what_the_caller_may_not_see_is_not_found() {
    let library = Library::new();
    let thread = json!({ "id": "dm", "participants": ["bob"], "private": true, "title": "us" });
    assert_eq!(library.home.by("alice", "POST", "/v1/threads", Some(thread)).await.status, 201);
    let secret = library.say("alice", "dm", json!("a secret word")).await;
    let open = library.say("alice", "lobby", json!("an open word")).await;
    library.catch_up();
    assert_eq!(library.ids("bob", "q=word").await.iter().collect::<Vec<_>>(), sorted([&secret, &open]));
    assert_eq!(library.ids("eve", "q=word").await, [open.as_str()]);
    assert_eq!(library.ids("eve", "q=secret").await, Vec::<String>::new());
    assert_eq!(library.search("eve", "q=word&thread=dm").await.status, 404);
    assert_eq!(library.home.by("alice", "DELETE", "/v1/threads/lobby", None).await.status, 204);
    assert_eq!(library.ids("eve", "q=word").await, Vec::<String>::new());
    assert_eq!(library.home.send("GET", "/v1/search?q=word", &[], None).await.status, 401);
}

#[tokio::test]
async fn edits_are_found_and_what_was_deleted_is_not() {
    let library = Library::new();
    let one = library.say("alice", "t", json!("first thoughts")).await;
    let two = library.say("alice", "t", json!("other thoughts")).await;
    library.catch_up();
    assert_eq!(library.ids("bob", "q=thoughts").await.len(), 2);
    let path = |id: &str| format!("/v1/messages/{id}");
    library.home.by("alice", "PUT", &path(&one), Some(json!({ "body": "second opinion" }))).await;
    library.home.by("alice", "DELETE", &path(&two), None).await;
    // Nothing that was deleted is shown, even before the index knows.
    assert_eq!(library.ids("bob", "q=other%20thoughts").await, Vec::<String>::new());
    library.catch_up();
    assert_eq!(library.ids("bob", "q=thoughts").await, Vec::<String>::new());
    assert_eq!(library.ids("bob", "q=opinion").await, [one.as_str()]);
}

#[tokio::test]
async fn hits_come_in_pages() {
    let library = Library::new();
    for number in 0..7 {
        library.say("alice", "t", json!(format!("word {number}"))).await;
    }
    library.catch_up();
    let (mut seen, mut cursor) = (std::collections::BTreeSet::new(), String::new());
    for expected in [3, 3, 1] {
        let page = library.search("bob", &format!("q=word&limit=3{cursor}")).await.body;
        let messages = page["messages"].as_array().expect("messages");
        assert_eq!(messages.len(), expected);
        seen.extend(messages.iter().map(|message| message["id"].to_string()));
        cursor = page["next"].as_str().map_or(String::new(), |next| format!("&cursor={next}"));
    }
    assert_eq!((seen.len(), cursor.as_str()), (7, ""));
}

#[tokio::test]
async fn bad_questions_are_told() {
    let library = Library::new();
    library.say("alice", "t", json!("word")).await;
    library.catch_up();
    let (long, many) = (format!("q={}", "x".repeat(600)), format!("q={}", "a%20".repeat(20)));
    for bad in [
        "",
        "q=",
        "q=%3F%21",
        "q=%22open",
        &long,
        &many,
        "q=word&limit=0",
        "q=word&cursor=x",
        "q=word&before=x",
        "q=word&cursor=10000",
    ] {
        let answer = library.search("bob", bad).await;
        assert_eq!((answer.status.as_u16(), answer.media.as_str()), (400, "application/problem+json"), "{bad}");
    }
    let without = Home::new();
    assert_eq!(without.by("bob", "GET", "/v1/search?q=word", None).await.status, 404);
}
