//! Live streams: no gap, no repeat, and nothing for those who may not know.

use super::Home;
use axum::body::Body;
use axum::extract::ConnectInfo;
use futures_util::StreamExt as _;
use http::Request;
use serde_json::{Value, json};
use server::live_feed::LiveFeed;
use server::serve;
use server::test_support::Wire;
use std::net::SocketAddr;
use tower::ServiceExt as _;

/// A stream as it is read.
struct Reader {
    stream: axum::body::BodyDataStream,
    text: String,
}

/// One event of a stream.
#[derive(Debug)]
struct Heard {
    id: String,
    name: String,
    data: Value,
}

async fn open(home: &Home, user: &str, query: &str, last: Option<&str>) -> Reader {
    let mut request = Request::builder()
        .uri(format!("/v1/events{query}"))
        .header("x-api-key", &home.backend)
        .header("x-user-id", user)
        .extension(ConnectInfo(SocketAddr::from(([192, 0, 2, 7], 4711))));
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let request = request.body(Body::empty()).expect("a request");
    let response = home.router().oneshot(request).await.expect("an answer");
    assert_eq!(response.status(), 200);
    Reader { stream: response.into_body().into_data_stream(), text: String::new() }
}

impl Reader {
    /// Everything that still comes until the stream ends.
    async fn rest(mut self) -> String {
        while let Some(bytes) = self.stream.next().await {
            self.text.push_str(std::str::from_utf8(&bytes.expect("bytes")).expect("text"));
        }
        self.text
    }

    async fn next(&mut self) -> Heard {
        loop {
            if let Some((event, rest)) = self.text.clone().split_once("\n\n") {
                self.text = rest.to_owned();
                let field = |name: &str| {
                    let prefix = format!("{name}: ");
                    event.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap_or_default().to_owned()
                };
                if !event.starts_with(':') {
                    let data = serde_json::from_str(&field("data")).unwrap_or(Value::Null);
                    return Heard { id: field("id"), name: field("event"), data };
                }
                continue;
            }
            let bytes = self.stream.next().await.expect("more").expect("bytes");
            self.text.push_str(std::str::from_utf8(&bytes).expect("text"));
        }
    }
}

async fn say(home: &Home, user: &str, thread: &str, text: &str) {
    let path = format!("/v1/threads/{thread}/messages");
    assert_eq!(home.by(user, "POST", &path, Some(json!({ "body": text }))).await.status, 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_resumes_without_a_gap_or_a_repeat() {
    let home = Home::new();
    let _server = serve(home.app(), SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a server");
    say(&home, "alice", "t", "0").await;
    let mut reader = open(&home, "bob", "?thread=t", None).await;
    say(&home, "alice", "other", "elsewhere").await;
    say(&home, "alice", "t", "1").await;
    let first = reader.next().await;
    assert_eq!((first.name.as_str(), &first.data["body"]), ("message.created", &json!("1")));
    drop(reader);
    for text in ["2", "3", "4"] {
        say(&home, "alice", "t", text).await;
    }
    let mut reader = open(&home, "bob", "?thread=t", Some(&first.id)).await;
    say(&home, "alice", "t", "5").await;
    for text in ["2", "3", "4", "5"] {
        assert_eq!(reader.next().await.data["body"], text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_content_is_told_once_live_and_when_read_again() {
    let home = Home::new();
    let _server = serve(home.app(), SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a server");
    say(&home, "alice", "t", "0").await;
    let mut live = open(&home, "bob", "?thread=t", None).await;
    say(&home, "alice", "t", "1").await;
    let before = live.next().await;
    let long = "x".repeat(5000);
    say(&home, "alice", "t", &long).await;
    say(&home, "alice", "t", "2").await;
    let mut positions = Vec::new();
    for mut reader in [live, open(&home, "bob", "?thread=t", Some(&before.id)).await] {
        for text in [long.as_str(), "2"] {
            let heard = reader.next().await;
            assert_eq!((heard.name.as_str(), &heard.data["body"]), ("message.created", &json!(text)));
            positions.push(heard.id);
        }
    }
    assert_eq!(positions[..2], positions[2..]);
    // Whoever has heard of it does not hear of its content again.
    let mut reader = open(&home, "bob", "?thread=t", Some(&positions[0])).await;
    assert_eq!(reader.next().await.data["body"], "2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn typing_and_presence_are_told_and_not_stored() {
    let home = Home::new();
    let _server = serve(home.app(), SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a server");
    say(&home, "alice", "t", "0").await;
    let mut reader = open(&home, "bob", "?thread=t", None).await;
    assert_eq!(home.by("alice", "POST", "/v1/threads/t/typing", None).await.status, 204);
    let typing = reader.next().await;
    assert_eq!((typing.name.as_str(), &typing.data["user"], typing.id.as_str()), ("typing", &json!("alice"), ""));
    let mut reader = open(&home, "bob", "", None).await;
    assert_eq!(home.by("alice", "PUT", "/v1/presence", Some(json!({ "status": "away" }))).await.status, 204);
    assert_eq!(reader.next().await.data, json!({ "user": "alice", "status": "away" }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_position_is_reset() {
    let home = Home::new();
    say(&home, "alice", "t", "0").await;
    for last in ["9-1", "1-999999", "nonsense"] {
        assert_eq!(open(&home, "bob", "", Some(last)).await.next().await.name, "reset", "{last}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_private_is_told_to_participants_only() {
    let home = Home::new();
    let _server = serve(home.app(), SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a server");
    for user in ["bob", "eve"] {
        say(&home, user, "lobby", "hello").await;
    }
    let (mut bob, mut eve) = (open(&home, "bob", "", None).await, open(&home, "eve", "", None).await);
    let body = json!({ "id": "dm", "participants": ["bob"], "private": true });
    assert_eq!(home.by("alice", "POST", "/v1/threads", Some(body)).await.status, 201);
    say(&home, "alice", "dm", "psst").await;
    say(&home, "alice", "lobby", "all").await;
    assert_eq!(bob.next().await.name, "members.changed");
    assert_eq!(bob.next().await.name, "thread.created");
    assert_eq!(bob.next().await.data["body"], "psst");
    assert_eq!(bob.next().await.data["body"], "all");
    assert_eq!(eve.next().await.name, "members.changed");
    assert_eq!(eve.next().await.data["body"], "all");
}

#[tokio::test]
async fn a_ticket_is_good_once_and_for_thirty_seconds() {
    let home = Home::new();
    say(&home, "bob", "t", "0").await;
    let ticket = || async {
        let answer = home.by("bob", "POST", "/v1/tickets", None).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        format!("/v1/events?ticket={}", answer.body["ticket"].as_str().expect("a ticket"))
    };
    let path = ticket().await;
    assert_eq!(home.send("GET", &path, &[], None).await.status, 200);
    assert_eq!(home.send("GET", &path, &[], None).await.status, 401);
    let path = ticket().await;
    home.clock.advance(31);
    assert_eq!(home.send("GET", &path, &[], None).await.status, 401);
    let path = ticket().await.replace("/v1/events", "/v1/threads");
    assert_eq!(home.send("GET", &path, &[], None).await.status, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_removed_hears_nothing_more() {
    let home = Home::new();
    let _server = serve(home.app(), SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a server");
    for user in ["alice", "bob"] {
        say(&home, user, "t", "hello").await;
    }
    let streams = [open(&home, "bob", "", None).await, open(&home, "bob", "?thread=t", None).await];
    let mut alice = open(&home, "alice", "?thread=t", None).await;
    let admin = [("x-api-key", home.admin.as_str())];
    assert_eq!(home.send("DELETE", "/admin/users/bob", &admin, None).await.status, 204);
    say(&home, "alice", "t", "secret").await;
    for stream in streams {
        assert!(!stream.rest().await.contains("secret"));
    }
    assert_eq!(alice.next().await.data["body"], "secret");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_with_the_key_that_opened_it() {
    let home = Home::new();
    let _server = serve(home.app(), SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a server");
    say(&home, "bob", "t", "hello").await;
    let streams = [open(&home, "bob", "", None).await, open(&home, "bob", "?thread=t", None).await];
    let admin = [("x-api-key", home.admin.as_str())];
    let path = format!("/admin/api-keys/{}", hex::encode([2; 8]));
    assert_eq!(home.send("DELETE", &path, &admin, None).await.status, 204);
    for stream in streams {
        assert_eq!(stream.rest().await, "");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_ends_later_ends_its_streams_then() {
    let home = Home::new();
    say(&home, "bob", "t", "hello").await;
    let mut feed = LiveFeed::new(home.state.node.clone(), home.state.hub.clone()).expect("a feed");
    let stream = open(&home, "bob", "?thread=t", None).await;
    let admin = [("x-api-key", home.admin.as_str())];
    let path = format!("/admin/api-keys/{}?after_seconds=60", hex::encode([2; 8]));
    assert_eq!(home.send("DELETE", &path, &admin, None).await.status, 204);
    home.clock.advance(61);
    feed.end_streams_of_ended_keys().expect("a look");
    assert_eq!(stream.rest().await, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_never_reads_again_is_cut_off() {
    let wire = Wire::new(super::app, Wire::impatient_limits()).await;
    let client = wire.narrow_client().await;
    let key = &wire.home.backend;
    let asked = format!("GET /v1/events HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\nx-user-id: bob\r\n\r\n");
    client.says(asked.as_bytes()).await;
    wire.says_until_nobody_listens(&client, &"long ".repeat(10_000)).await;
}

/// What a stream says until a message comes: the names, and the data of the last file.
async fn until_message(reader: &mut Reader) -> (Vec<String>, Value) {
    let (mut names, mut file) = (Vec::new(), Value::Null);
    loop {
        let heard = reader.next().await;
        if heard.name.starts_with("file.") {
            file = heard.data;
        }
        let is_message = heard.name == "message.created";
        names.push(heard.name);
        if is_message {
            return (names, file);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whose_file_it_is_hears_of_it_and_nobody_else() {
    let home = Home::new();
    let _server = serve(home.app(), SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a server");
    for user in ["alice", "bob"] {
        say(&home, user, "t", "here").await;
    }
    let (mut own, mut other) = (open(&home, "alice", "", None).await, open(&home, "bob", "", None).await);
    let request = Request::post("/v1/files?name=cat.bin")
        .header("x-api-key", &home.backend)
        .header("x-user-id", "alice")
        .header("host", "localhost")
        .extension(ConnectInfo(SocketAddr::from(([192, 0, 2, 7], 4711))));
    let request = request.body(Body::from("\u{1}meow")).expect("a request");
    assert_eq!(home.router().oneshot(request).await.expect("an answer").status(), 201);
    say(&home, "alice", "t", "look").await;
    let (names, file) = until_message(&mut own).await;
    assert!(names.contains(&"file.created".to_owned()), "{names:?}");
    assert_eq!((&file["name"], &file["status"]), (&json!("cat.bin"), &json!("uploaded")));
    let (names, _) = until_message(&mut other).await;
    assert!(names.iter().all(|name| !name.starts_with("file.")), "{names:?}");
}
