//! Threads and messages as an application uses them.

use super::Home;
use serde_json::{Value, json};

fn texts(page: &Value) -> Vec<String> {
    let messages = page["messages"].as_array().expect("messages");
    messages.iter().map(|message| message["body"].as_str().unwrap_or("-").to_owned()).collect()
}

async fn say(home: &Home, user: &str, thread: &str, text: &str) -> Value {
    let answer = home.by(user, "POST", &format!("/v1/threads/{thread}/messages"), Some(json!({ "body": text }))).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.body
}

#[tokio::test]
async fn a_message_to_a_thread_that_does_not_exist_opens_it() {
    let home = Home::new();
    let message = say(&home, "alice", "lobby", "hello").await;
    assert_eq!((&message["thread"], &message["author"]), (&json!("lobby"), &json!("alice")));
    assert_eq!(
        (&message["version"], &message["deleted"], &message["state"]),
        (&json!(1), &json!(false), &json!("here"))
    );
    let thread = home.by("bob", "GET", "/v1/threads/lobby", None).await.body;
    assert_eq!((&thread["id"], &thread["author"]), (&json!("lobby"), &json!("alice")));
    assert_eq!(thread["last_message"]["body"], "hello");
    let other = home.by("alice", "POST", "/v1/messages", Some(json!({ "body": "alone" }))).await;
    assert_eq!(other.status, 201);
    assert_ne!(other.body["thread"], "lobby");
}

#[tokio::test]
async fn pages_go_both_ways() {
    let home = Home::new();
    let mut ids = Vec::new();
    for number in 0..10 {
        ids.push(say(&home, "alice", "t", &number.to_string()).await["id"].as_str().expect("id").to_owned());
    }
    let page = |query: String| {
        let home = &home;
        async move { texts(&home.by("bob", "GET", &format!("/v1/messages?thread=t&{query}"), None).await.body) }
    };
    assert_eq!(page("limit=3".into()).await, ["7", "8", "9"]);
    assert_eq!(page(format!("limit=3&before={}", ids[7])).await, ["4", "5", "6"]);
    assert_eq!(page(format!("limit=3&after={}", ids[7])).await, ["8", "9"]);
    assert_eq!(page(format!("limit=4&around={}", ids[5])).await, ["3", "4", "5", "6"]);
    assert_eq!(page(format!("limit=3&around={}", ids[0])).await, ["0", "1", "2"]);
    assert_eq!(home.by("bob", "DELETE", &format!("/v1/messages/{}", ids[8]), None).await.status, 403);
    assert_eq!(home.by("alice", "DELETE", &format!("/v1/messages/{}", ids[8]), None).await.status, 204);
    assert_eq!(page("limit=3".into()).await, ["6", "7", "9"]);
    assert_eq!(page("limit=3&include_deleted=true".into()).await, ["7", "-", "9"]);
    for bad in ["limit=0", "limit=x", &format!("before={}&after={}", ids[1], ids[2])] {
        let answer = home.by("bob", "GET", &format!("/v1/messages?thread=t&{bad}"), None).await;
        assert_eq!(answer.status, 400, "{bad}: {answer:?}");
    }
    assert_eq!(home.by("bob", "GET", "/v1/messages?thread=t&before=nope", None).await.status, 404);
}

#[tokio::test]
async fn an_edit_is_a_new_version_and_a_reaction_is_not() {
    let home = Home::new();
    let body = json!({ "id": "m1", "body": { "text": "one" } });
    assert_eq!(home.by("alice", "POST", "/v1/threads/t/messages", Some(body)).await.status, 201);
    let edited = home.by("alice", "PUT", "/v1/messages/m1", Some(json!({ "body": { "text": "two" } }))).await.body;
    assert_eq!((&edited["id"], &edited["version"], &edited["body"]["text"]), (&json!("m1"), &json!(2), &json!("two")));
    let path = "/v1/threads/t/messages/m1/reactions";
    home.by("bob", "POST", path, Some(json!({ "reaction": "👍" }))).await;
    let reactions = home.by("carol", "POST", path, Some(json!({ "reaction": "🎉" }))).await.body;
    assert_eq!(reactions["reactions"], json!({ "bob": "👍", "carol": "🎉" }));
    home.by("bob", "POST", path, Some(json!({ "reaction": "👎" }))).await;
    assert_eq!(home.by("carol", "DELETE", &format!("{path}/carol"), None).await.status, 204);
    assert_eq!(home.by("bob", "DELETE", &format!("{path}/alice"), None).await.status, 403);
    let message = home.by("dave", "GET", "/v1/threads/t/messages/m1", None).await.body;
    assert_eq!((&message["reactions"], &message["version"]), (&json!({ "bob": "👎" }), &json!(2)));
    let versions = home.by("dave", "GET", "/v1/messages/m1/versions", None).await.body;
    let said: Vec<&Value> =
        versions["versions"].as_array().expect("a list").iter().map(|v| &v["body"]["text"]).collect();
    assert_eq!((versions["id"].as_str(), said), (Some("m1"), vec![&json!("one"), &json!("two")]));
}

#[tokio::test]
async fn writes_are_safe_to_repeat() {
    let home = Home::new();
    let body = json!({ "id": "m1", "body": "x" });
    let path = "/v1/threads/t/messages";
    assert_eq!(home.by("alice", "POST", path, Some(body.clone())).await.status, 201);
    assert_eq!(home.by("alice", "POST", path, Some(body.clone())).await.status, 200);
    assert_eq!(home.by("alice", "POST", path, Some(json!({ "id": "m1", "body": "y" }))).await.status, 409);
    assert_eq!(home.by("bob", "POST", path, Some(body)).await.status, 409);
    let keyed = |text: &'static str| {
        let home = &home;
        async move {
            let headers = [("x-api-key", home.backend.as_str()), ("x-user-id", "alice"), ("idempotency-key", "once")];
            home.send("POST", path, &headers, Some(&json!({ "body": text }))).await
        }
    };
    let (first, second) = (keyed("said once").await, keyed("said once").await);
    assert_eq!((first.status.as_u16(), second.status.as_u16()), (201, 200));
    assert_eq!(first.body["event"], second.body["event"]);
    assert_eq!(keyed("something else").await.status, 409);
    // What somebody else asks for under the same key is another request.
    let headers = [("x-api-key", home.backend.as_str()), ("x-user-id", "bob"), ("idempotency-key", "once")];
    let others = home.send("POST", path, &headers, Some(&json!({ "body": "said once" }))).await;
    assert_eq!((others.status.as_u16(), &others.body["author"]), (201, &json!("bob")));
    let page = home.by("alice", "GET", "/v1/messages?thread=t", None).await.body;
    assert_eq!(texts(&page), ["x", "said once", "said once"]);
}

#[tokio::test]
async fn threads_are_listed_changed_and_deleted() {
    let home = Home::new();
    for (id, title) in [("a", "First Room"), ("b", "Second Room"), ("c", "Garden")] {
        let body = json!({ "id": id, "name": title, "metadata": { "n": 1 } });
        assert_eq!(home.by("alice", "POST", "/v1/threads", Some(body)).await.status, 201);
    }
    say(&home, "bob", "a", "later").await;
    let list = |query: &'static str| {
        let home = &home;
        async move {
            let answer = home.by("bob", "GET", &format!("/v1/threads{query}"), None).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let threads = answer.body["threads"].as_array().expect("threads").clone();
            let ids: Vec<String> = threads.iter().map(|t| t["id"].as_str().unwrap_or("").to_owned()).collect();
            (ids, answer.body["next"].as_str().map(str::to_owned))
        }
    };
    assert_eq!(list("").await, (vec!["a".into(), "c".into(), "b".into()], None));
    assert_eq!(list("?sort=created").await.0, ["c", "b", "a"]);
    assert_eq!(list("?title=room").await.0, ["a", "b"]);
    assert_eq!(list("?slug=garden").await.0, ["c"]);
    assert_eq!(list("?author=bob").await.0, Vec::<String>::new());
    assert_eq!(list("?author=alice").await.0, ["a", "c", "b"]);
    // The only one that fits is beyond the first that are looked at.
    assert_eq!(list("?slug=second-room&limit=1").await.0, ["b"]);
    let key = home.send("GET", "/admin/users", &[("x-api-key", &home.admin)], None).await.body["users"][0]["identity"]
        .clone();
    let named = home.by("alice", "POST", "/v1/threads", Some(json!({ "id": "k", "participants": [key] }))).await;
    assert_eq!(named.status, 201, "{named:?}");
    assert_eq!(home.by("alice", "DELETE", "/v1/threads/k", None).await.status, 204);
    let (first, next) = list("?limit=2").await;
    let rest = home.by("bob", "GET", &format!("/v1/threads?limit=2&cursor={}", next.expect("more")), None).await.body;
    assert_eq!((first, rest["threads"][0]["id"].as_str()), (vec!["a".to_owned(), "c".to_owned()], Some("b")));
    assert_eq!(home.by("bob", "GET", "/v1/threads?cursor=1-zz", None).await.status, 400);
    home.by("alice", "POST", "/v1/messages", Some(json!({ "id": "x", "thread": "b", "body": 1 }))).await;
    home.by("alice", "POST", "/v1/messages", Some(json!({ "id": "y", "thread": "c", "body": 1 }))).await;
    for wrong in [json!(["y"]), json!(["x", "nothing"])] {
        let refused = home.by("alice", "PUT", "/v1/threads/b", Some(json!({ "title": "No", "pins": wrong }))).await;
        assert_eq!(refused.status, 404, "a message elsewhere, or none: {refused:?}");
    }
    // A body may say again which thread it is, by either of its names; nonsense it may not say.
    let shown = home.by("alice", "GET", "/v1/threads/c", None).await.body;
    for (thread, status) in [(&shown["event"], 201), (&json!("c"), 201), (&json!("me"), 422), (&json!(""), 422)] {
        let body = json!({ "thread": thread, "body": 1 });
        let posted = home.by("alice", "POST", "/v1/threads/c/messages", Some(body)).await;
        assert_eq!(posted.status, status, "{thread}: {posted:?}");
    }
    let many = json!({ "pins": vec!["x"; 101] });
    assert_eq!(home.by("alice", "PUT", "/v1/threads/b", Some(many)).await.status, 422);
    let early = json!({ "title": "New", "pins": ["x"] });
    assert_eq!(home.by("alice", "POST", "/v1/threads", Some(early)).await.status, 404, "it is of another thread");
    let changed = home.by("alice", "PUT", "/v1/threads/b", Some(json!({ "title": "New", "pins": ["x"] }))).await.body;
    assert_eq!(
        (&changed["title"], &changed["pins"], &changed["metadata"]["n"]),
        (&json!("New"), &json!(["x"]), &json!(1))
    );
    assert_eq!(home.by("alice", "DELETE", "/v1/threads/b", None).await.status, 204);
    assert_eq!(list("").await.0, ["c", "a"]);
    assert_eq!(home.by("alice", "GET", "/v1/threads/b", None).await.status, 404);
    assert_eq!(home.by("alice", "POST", "/v1/threads/b/messages", Some(json!({ "body": 1 }))).await.status, 404);
}

#[tokio::test]
async fn a_private_thread_is_for_its_participants() {
    let home = Home::new();
    let body = json!({ "id": "dm", "participants": ["bob"], "private": true, "title": "us" });
    let made = home.by("alice", "POST", "/v1/threads", Some(body)).await.body;
    assert_eq!(made["participants"], json!(["alice", "bob"]));
    let said = say(&home, "bob", "dm", "psst").await;
    let id = said["id"].as_str().expect("id");
    assert_eq!(home.by("alice", "GET", "/v1/threads/dm", None).await.status, 200);
    for path in [
        "/v1/threads/dm",
        "/v1/messages?thread=dm",
        &format!("/v1/messages/{id}"),
        &format!("/v1/messages/{id}/versions"),
    ] {
        assert_eq!(home.by("eve", "GET", path, None).await.status, 404, "{path}");
    }
    assert_eq!(home.by("eve", "GET", "/v1/threads", None).await.body["threads"], json!([]));
    let latest = |user: &'static str| {
        let home = &home;
        async move { texts(&home.by(user, "GET", "/v1/messages", None).await.body) }
    };
    assert_eq!((latest("alice").await, latest("eve").await), (vec!["psst".to_owned()], Vec::new()));
    assert_eq!(home.by("eve", "POST", "/v1/threads/dm/messages", Some(json!({ "body": 1 }))).await.status, 404);
    assert_eq!(
        home.by("eve", "POST", &format!("/v1/messages/{id}/reactions"), Some(json!({ "reaction": "x" }))).await.status,
        404
    );
    let added = home.by("alice", "PUT", "/v1/threads/dm", Some(json!({ "participants": ["bob", "eve"] }))).await;
    assert_eq!(added.status, 200);
    assert_eq!(home.by("eve", "GET", "/v1/threads/dm", None).await.status, 200);
}

#[tokio::test]
async fn what_others_said_is_unread_until_it_is_marked() {
    let home = Home::new();
    let first = say(&home, "alice", "t", "1").await;
    say(&home, "bob", "t", "mine").await;
    say(&home, "alice", "t", "2").await;
    let unread = || async { home.by("bob", "GET", "/v1/threads/t", None).await.body["unread"].clone() };
    assert_eq!(unread().await, 2);
    let mark = json!({ "message": first["id"] });
    assert_eq!(home.by("bob", "PUT", "/v1/threads/t/read", Some(mark)).await.status, 204);
    assert_eq!(unread().await, 1);
}

#[tokio::test]
async fn replies_are_found_from_both_ends() {
    let home = Home::new();
    let first = say(&home, "alice", "t", "question").await;
    let body = json!({ "body": "answer", "reply_to": first["id"], "mentions": ["alice"] });
    let answer = home.by("bob", "POST", "/v1/threads/t/messages", Some(body)).await.body;
    assert_eq!(answer["reply_to"], first["id"]);
    let path = format!("/v1/messages/{}", first["id"].as_str().expect("id"));
    assert_eq!(home.by("carol", "GET", &path, None).await.body["replies"], 1);
    let replies = home.by("carol", "GET", &format!("{path}/replies"), None).await.body;
    assert_eq!(texts(&replies), ["answer"]);
}

#[tokio::test]
async fn a_backend_names_the_author_in_the_body() {
    let home = Home::new();
    let headers = [("x-api-key", home.backend.as_str())];
    let body = json!({ "thread": "t", "author": "zoe", "body": "hi" });
    let made = home.send("POST", "/v1/messages", &headers, Some(&body)).await;
    assert_eq!((made.status.as_u16(), &made.body["author"]), (201, &json!("zoe")));
    let listed = home.send("GET", "/v1/messages?thread=t", &headers, None).await;
    assert_eq!(texts(&listed.body), ["hi"]);
    let signed = home.send("POST", "/v1/_sign", &headers, Some(&json!({ "userId": "zoe" }))).await.body;
    let signature = signed["signature"].as_str().expect("a signature");
    let proven = [("x-api-key", home.frontend.as_str()), ("x-user-id", "zoe"), ("x-user-signature", signature)];
    assert_eq!(home.send("GET", "/v1/messages?thread=t", &proven, None).await.status, 200);
    let lie = json!({ "thread": "t", "author": "alice", "body": "not me" });
    assert_eq!(home.send("POST", "/v1/messages", &proven, Some(&lie)).await.status, 403);
}
