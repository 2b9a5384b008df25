//! Many messages in one request.

use super::Home;
use super::rules::ids;
use serde_json::{Value, json};

#[tokio::test]
async fn many_messages_are_posted_at_once_each_with_its_answer() {
    let home = Home::new();
    let body = json!({ "messages": [
        { "id": "a", "thread": "t", "body": 1, "role": "assistant" },
        { "thread": "t", "body": 2, "author": "bob" },
        { "thread": "t", "body": 3, "reply_to": "nothing" },
        { "id": "a", "thread": "t", "body": 1, "role": "assistant" },
        { "id": "a", "thread": "t", "body": "another" },
        { "thread": "t", "body": 4, "role": "x".repeat(65) },
    ] });
    let posted = home.by("alice", "POST", "/v1/bulk/messages", Some(body)).await;
    assert_eq!(posted.status, 200, "{posted:?}");
    let results = posted.body["results"].as_array().expect("results").clone();
    let statuses: Vec<u64> = results.iter().map(|one| one["status"].as_u64().expect("a status")).collect();
    assert_eq!(statuses, [201, 403, 404, 200, 409, 422], "{results:?}");
    assert_eq!((&results[0]["message"]["role"], &results[0]["problem"]), (&json!("assistant"), &Value::Null));
    assert_eq!((&results[1]["message"], &results[1]["problem"]["status"]), (&Value::Null, &json!(403)));
    assert_eq!(ids(&home.by("alice", "GET", "/v1/threads/t/messages", None).await.body, "messages"), ["a"]);
    for (messages, status) in [(vec![json!({ "body": 1 }); 501], 422), (vec![], 422)] {
        let refused = home.by("alice", "POST", "/v1/bulk/messages", Some(json!({ "messages": messages }))).await;
        assert_eq!(refused.status, status, "{refused:?}");
    }
    // In the order of the request.
    let messages: Vec<Value> = (0..500).map(|number| json!({ "thread": "long", "body": number })).collect();
    let posted = home.by("alice", "POST", "/v1/bulk/messages", Some(json!({ "messages": messages }))).await;
    assert!(posted.body["results"].as_array().is_some_and(|all| all.iter().all(|one| one["status"] == 201)));
    let page = home.by("alice", "GET", "/v1/threads/long/messages?limit=500", None).await.body;
    let bodies: Vec<u64> =
        page["messages"].as_array().expect("messages").iter().filter_map(|one| one["body"].as_u64()).collect();
    assert_eq!(bodies, (0..500).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_message_of_the_wrong_shape_keeps_no_other_from_being_posted() {
    let home = Home::new();
    let messages = r#"[{ "thread": "t" }, { "id": "a", "thread": "t", "body": 1 }, { "thread": "t", "body": 2, "x": 3 }, "text",
        { "thread": "t", "body": 1.00000000000000000001 }, { "id": "b", "thread": "t", "body": 2 }]"#;
    let send = async |body: String, key: &str| {
        let request = http::Request::builder().method("POST").uri("/v1/bulk/messages").header("x-user-id", "alice");
        let request = request.header("x-api-key", &home.backend).header("content-type", "application/json");
        let request = request.header("idempotency-key", key).body(axum::body::Body::from(body));
        home.raw(request.expect("a request")).await
    };
    for expected in [[422, 201, 422, 422, 422, 201], [422, 200, 422, 422, 422, 200]] {
        let posted = send(format!(r#"{{ "messages": {messages} }}"#), "k").await;
        let results = posted.body["results"].as_array().unwrap_or_else(|| panic!("{posted:?}"));
        let statuses: Vec<u64> = results.iter().filter_map(|one| one["status"].as_u64()).collect();
        assert_eq!(statuses, expected, "{results:?}");
        assert!(results[2]["problem"]["detail"].as_str().is_some_and(|why| why.contains("unknown field `x`")));
    }
    let page = home.by("alice", "GET", "/v1/threads/t/messages", None).await.body;
    assert_eq!(ids(&page, "messages"), ["a", "b"]);
    let reused = send(r#"{ "messages": [{ "body": "another", "thread": "t" }, {}] }"#.to_owned(), "k").await;
    assert_eq!(reused.status, 200, "what was refused then is not remembered: {reused:?}");
    let reused = send(r#"{ "messages": [{}, { "body": "another", "thread": "t" }] }"#.to_owned(), "k").await;
    assert_eq!((reused.status.as_u16(), &reused.body["type"]), (409, &json!("/problems/key-reused")), "{reused:?}");
    for (body, status) in [(r#"{ "messages": 1 }"#, 422), (r#"{ "messages": [{ "body": }] }"#, 400), ("[]", 422)] {
        assert_eq!(send(body.to_owned(), "other").await.status, status, "{body}");
    }
}

#[tokio::test]
async fn each_message_may_name_its_author_where_the_request_names_none() {
    let home = Home::new();
    let body = json!({ "messages": [
        { "thread": "t", "body": 1, "author": "alice" },
        { "thread": "t", "body": 2, "author": "bob" },
        { "thread": "t", "body": 3 },
    ] });
    let key = [("x-api-key", home.backend.as_str())];
    let posted = home.send("POST", "/v1/bulk/messages", &key, Some(&body)).await;
    let results = posted.body["results"].as_array().expect("results");
    let told: Vec<_> = results.iter().map(|one| (one["status"].as_u64(), one["message"]["author"].as_str())).collect();
    assert_eq!(told, [(Some(201), Some("alice")), (Some(201), Some("bob")), (Some(403), None)]);
    let nobody = json!({ "messages": [{ "thread": "t", "body": 1 }] });
    assert_eq!(home.send("POST", "/v1/bulk/messages", &key, Some(&nobody)).await.status, 403);
}

#[tokio::test]
async fn a_key_that_was_used_for_other_messages_does_nothing() {
    let home = Home::new();
    let headers = [("x-api-key", home.backend.as_str()), ("x-user-id", "alice"), ("idempotency-key", "k")];
    let body = |count: usize| {
        let messages: Vec<Value> = (0..count).map(|number| json!({ "thread": "t", "body": number })).collect();
        json!({ "messages": messages })
    };
    assert_eq!(home.send("POST", "/v1/bulk/messages", &headers, Some(&body(2))).await.status, 200);
    for count in [1, 3] {
        let other = home.send("POST", "/v1/bulk/messages", &headers, Some(&body(count))).await;
        assert_eq!((other.status.as_u16(), &other.body["type"]), (409, &json!("/problems/key-reused")), "{other:?}");
    }
    let page = home.by("alice", "GET", "/v1/threads/t/messages", None).await.body;
    assert_eq!(page["messages"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn what_was_done_before_does_not_count_again() {
    // Twenty at once.
    let limits = server::Limits { backend_user_per_second: 10, ..server::Limits::default() };
    let home = Home::with(server::ServerOptions { limits, ..server::ServerOptions::default() });
    let messages: Vec<Value> = (0..15).map(|number| json!({ "thread": "t", "body": number })).collect();
    let headers = [("x-api-key", home.backend.as_str()), ("x-user-id", "alice"), ("idempotency-key", "k")];
    for status in [201, 200, 200] {
        let posted = home.send("POST", "/v1/bulk/messages", &headers, Some(&json!({ "messages": messages }))).await;
        let results = posted.body["results"].as_array().map(Vec::as_slice).unwrap_or_default();
        assert!(results.len() == 15 && results.iter().all(|one| one["status"] == status), "{status}: {posted:?}");
    }
}

#[tokio::test]
async fn each_message_counts_for_the_key_as_well_as_for_its_user() {
    let limits = server::Limits { key_per_second: 10, backend_user_per_second: 1000, ..server::Limits::default() };
    let home = Home::with(server::ServerOptions { limits, ..server::ServerOptions::default() });
    let messages: Vec<Value> = (0..50).map(|number| json!({ "thread": "t", "body": number })).collect();
    let posted = home.by("alice", "POST", "/v1/bulk/messages", Some(json!({ "messages": messages }))).await;
    let results = posted.body["results"].as_array().cloned().unwrap_or_default();
    let count = |status: u16| results.iter().filter(|one| one["status"] == status).count();
    assert!((1..50).contains(&count(201)) && count(201) + count(429) == 50, "{posted:?}");
}

#[tokio::test]
async fn many_messages_may_be_larger_than_one() {
    let home = Home::new();
    let body = |count: usize| json!({ "messages": vec![json!({ "thread": "t", "body": "x".repeat(60_000) }); count] });
    for key in ["a", "b"] {
        // Also where the body is read before the handler asks for it.
        let headers = [("x-api-key", home.backend.as_str()), ("x-user-id", "alice"), ("idempotency-key", key)];
        let headers = &headers[..if key == "a" { 2 } else { 3 }];
        let posted = home.send("POST", "/v1/bulk/messages", headers, Some(&body(20))).await;
        assert!(
            posted.body["results"].as_array().is_some_and(|all| all.iter().all(|one| one["status"] == 201)),
            "{posted:?}"
        );
    }
    assert_eq!(home.by("alice", "POST", "/v1/bulk/messages", Some(body(40))).await.status, 413);
}

#[tokio::test]
async fn many_messages_at_once_are_repeated_safely_and_counted_one_by_one() {
    let limits = server::Limits { backend_user_per_second: 10, ..server::Limits::default() };
    let home = Home::with(server::ServerOptions { limits, ..server::ServerOptions::default() });
    let messages: Vec<Value> = (0..5).map(|number| json!({ "thread": "t", "body": number })).collect();
    let body = json!({ "messages": messages });
    let headers = [("x-api-key", home.backend.as_str()), ("x-user-id", "alice"), ("idempotency-key", "k")];
    let first = home.send("POST", "/v1/bulk/messages", &headers, Some(&body)).await.body;
    let again = home.send("POST", "/v1/bulk/messages", &headers, Some(&body)).await.body;
    let told = |answer: &Value, status: u16| -> Vec<Value> {
        let results = answer["results"].as_array().expect("results");
        assert!(results.len() == 5 && results.iter().all(|one| one["status"] == status), "{answer}");
        results.iter().map(|one| one["message"]["id"].clone()).collect()
    };
    assert_eq!(told(&first, 201), told(&again, 200));
    let many: Vec<Value> = (0..200).map(|number| json!({ "thread": "t", "body": number })).collect();
    let posted = home.by("alice", "POST", "/v1/bulk/messages", Some(json!({ "messages": many }))).await.body;
    let refused = posted["results"].as_array().expect("results").iter().filter(|one| one["status"] == 429).count();
    assert!(refused > 150, "{refused} of 200 were refused");
}

#[tokio::test]
async fn an_author_in_the_body_is_limited_like_a_user_in_the_header() {
    // Two at once.
    let limits = server::Limits { backend_user_per_second: 1, ..server::Limits::default() };
    let home = Home::with(server::ServerOptions { limits, ..server::ServerOptions::default() });
    let key = [("x-api-key", home.backend.as_str())];
    let by = |author: &str| json!({ "thread": "t", "body": "x", "author": author });
    let mut statuses = Vec::new();
    for _ in 0..40 {
        statuses.push(home.send("POST", "/v1/messages", &key, Some(&by("alice"))).await.status.as_u16());
    }
    assert!(statuses[..2].iter().all(|status| *status == 201), "{statuses:?}");
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(home.send("POST", "/v1/messages", &key, Some(&by("bob"))).await.status, 201, "others are not");
    // Of many messages each counts for its author, the first one, too.
    let messages: Vec<Value> = (0..60).map(|number| by(if number % 2 == 0 { "carol" } else { "dave" })).collect();
    let posted = home.send("POST", "/v1/bulk/messages", &key, Some(&json!({ "messages": messages }))).await;
    let results = posted.body["results"].as_array().expect("results");
    for (first, author) in [(0, "carol"), (1, "dave")] {
        let own: Vec<&Value> = results.iter().skip(first).step_by(2).map(|one| &one["status"]).collect();
        assert!(own[..2].iter().all(|status| **status == 201) && own.iter().any(|s| **s == 429), "{author}: {own:?}");
    }
    let one = json!({ "messages": [by("erin")] });
    let mut refused = 0;
    for _ in 0..40 {
        let posted = home.send("POST", "/v1/bulk/messages", &key, Some(&one)).await;
        refused += usize::from(posted.body["results"][0]["status"] == 429);
    }
    assert!(refused > 0, "a message that comes alone counts, too");
}
