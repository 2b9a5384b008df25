//! What attackers and broken clients send: always a 4xx that says why, never a 5xx.

use super::Home;
use axum::body::Body;
use http::Request;
use serde_json::json;
use server::{Limits, ServerOptions};

async fn post_raw(home: &Home, path: &str, media: &str, body: Vec<u8>) -> server::test_support::Answer {
    let request = Request::builder()
        .method("POST")
        .uri(path)
        .header("x-api-key", &home.backend)
        .header("x-user-id", "alice")
        .header("content-type", media)
        .body(Body::from(body));
    home.raw(request.expect("a request")).await
}

#[tokio::test]
async fn bodies_that_are_not_what_they_should_be() {
    let home = Home::new();
    let deep = format!("{{\"body\":{}1{}}}", "[".repeat(100), "]".repeat(100));
    let very_deep = format!("{{\"body\":{}", "[".repeat(20_000));
    let cases: Vec<(&str, Vec<u8>, u16)> = vec![
        ("empty", vec![], 400),
        ("not json", b"hello".to_vec(), 400),
        ("cut off", b"{\"body\":".to_vec(), 400),
        ("a list", b"[]".to_vec(), 422),
        ("a byte order mark", b"\xef\xbb\xbf{}".to_vec(), 400),
        ("not UTF-8", b"{\"body\":\"\xff\"}".to_vec(), 400),
        ("a lone surrogate", b"{\"body\":\"\\ud800\"}".to_vec(), 400),
        ("NaN", b"{\"body\":NaN}".to_vec(), 400),
        ("too deep to keep", deep.into_bytes(), 422),
        ("too deep to read", very_deep.into_bytes(), 400),
        ("id of the wrong type", b"{\"id\":1,\"body\":1}".to_vec(), 422),
        ("id with a slash", b"{\"id\":\"a/b\",\"body\":1}".to_vec(), 422),
        ("id like an event id", format!("{{\"id\":\"{}\",\"body\":1}}", "ab".repeat(16)).into_bytes(), 422),
        ("id too long", format!("{{\"id\":\"{}\",\"body\":1}}", "a".repeat(129)).into_bytes(), 422),
        ("body too large to keep", format!("{{\"body\":\"{}\"}}", "x".repeat(66_000)).into_bytes(), 413),
        ("body too large to read", format!("{{\"body\":\"{}\"}}", "x".repeat(140_000)).into_bytes(), 413),
        ("answers nothing", b"{\"body\":1,\"reply_to\":\"nope\"}".to_vec(), 404),
        ("attaches nothing", b"{\"body\":1,\"attachments\":[\"nope\"]}".to_vec(), 404),
        ("mentions a slash", b"{\"body\":1,\"mentions\":[\"a/b\"]}".to_vec(), 422),
    ];
    for (what, body, status) in cases {
        let answer = post_raw(&home, "/v1/threads/t/messages", "application/json", body).await;
        assert_eq!(answer.status, status, "{what}: {answer:?}");
        assert_eq!(answer.media, "application/problem+json", "{what}");
        for field in ["type", "title", "detail", "action"] {
            assert!(answer.body[field].as_str().is_some_and(|text| !text.is_empty()), "{what}: {field}");
        }
    }
    let many: Vec<String> = (0..100).map(|number| format!("u{number}")).collect();
    let answer = home.by("alice", "POST", "/v1/threads/t/messages", Some(json!({ "body": 1, "mentions": many }))).await;
    assert_eq!(answer.status, 422, "{answer:?}");
    assert_eq!(post_raw(&home, "/v1/messages", "text/plain", b"{}".to_vec()).await.status, 415);
}

#[tokio::test]
async fn paths_and_queries_that_lead_nowhere() {
    let home = Home::new();
    for (method, path, status) in [
        ("GET", "/nothing", 404),
        ("GET", "/v1/threads/%2e%2e%2f", 404),
        ("GET", "/v1/threads/..;", 404),
        ("GET", "/v1/threads/a%00b", 404),
        ("GET", "/v1/threads/%252e", 404),
        ("GET", "/v1/threads/%ff", 404),
        ("GET", "/v1/messages?before=m", 400),
        ("GET", "/v1/messages/m?before=m", 400),
        ("GET", "/v1/threads?limit=-1", 400),
        ("GET", "/v1/threads?sort=random", 400),
        ("GET", "/v1/threads?api_key=secret", 400),
        ("GET", "/v1/threads?X-API-KEY=secret", 400),
        ("PATCH", "/v1/threads", 405),
        ("POST", "/healthz", 405),
    ] {
        let answer = home.by("alice", method, path, None).await;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        assert_eq!(answer.media, "application/problem+json", "{method} {path}");
    }
}

#[tokio::test]
async fn names_that_nobody_can_have() {
    let home = Home::new();
    for user in ["a b", "a/b", "", &"x".repeat(129), &"ab".repeat(32), "..", "<script>"] {
        let answer = home.by(user, "POST", "/v1/threads/t/messages", Some(json!({ "body": 1 }))).await;
        assert_eq!(answer.status, 400, "{user}: {answer:?}");
    }
}

#[tokio::test]
async fn too_many_requests_are_told_when_to_come_again() {
    let limits = Limits { user_per_second: 5, address_per_second: 1000, ..Limits::default() };
    let home = Home::with(ServerOptions { limits, ..ServerOptions::default() });
    let signature = home.signature("alice");
    let headers =
        [("x-api-key", home.frontend.as_str()), ("x-user-id", "alice"), ("x-user-signature", signature.as_str())];
    let mut refused = None;
    for _ in 0..50 {
        let answer = home.send("GET", "/v1/threads", &headers, None).await;
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
    }
    assert_eq!(refused.expect("a refusal").body["type"], "/problems/too-often");
}
