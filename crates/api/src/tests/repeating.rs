//! Requests that are repeated, and requests that do not say what they seem to say.

use super::Home;
use serde_json::{Value, json};
use server::test_support::OPERATOR;

/// Sends as an admin, with an idempotency key.
async fn order(
    home: &Home,
    idempotency: &str,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> server::test_support::Answer {
    let headers = [("x-api-key", home.admin.as_str()), ("idempotency-key", idempotency)];
    home.send(method, path, &headers, body.as_ref()).await
}

#[tokio::test]
async fn what_has_a_secret_is_made_once_and_shown_again_to_whoever_repeats_the_request() {
    let home = Home::new();
    let bodies = [
        ("/admin/api-keys", Some(json!({ "role": "backend", "label": "shop" }))),
        ("/admin/webhooks", Some(json!({ "url": "https://example.org/hook" }))),
        ("/admin/signing-keys", None),
    ];
    for (path, body) in bodies {
        let count = || async {
            let list = home.send("GET", path, &[("x-api-key", home.admin.as_str())], None).await.body;
            list.as_object().and_then(|lists| lists.values().next()?.as_array().map(Vec::len)).expect("a list")
        };
        let before = count().await;
        let first = order(&home, path, "POST", path, body.clone()).await;
        let again = order(&home, path, "POST", path, body.clone()).await;
        assert_eq!((first.status.as_u16(), again.status.as_u16()), (201, 201), "{first:?} {again:?}");
        assert_eq!(first.body, again.body, "{path}");
        assert_eq!(count().await, before + 1, "{path}");
        let other = order(&home, path, "POST", "/admin/jobs", Some(json!({ "work": "retain" }))).await;
        assert_eq!(other.status, 409, "the same key with another request: {other:?}");
        let third = order(&home, &format!("{path} anew"), "POST", path, body).await;
        assert_eq!(third.status, 201, "{third:?}");
        assert_ne!(third.body, first.body, "{path}");
    }
}

#[tokio::test]
async fn a_rotated_key_can_be_asked_for_again_and_works() {
    let home = Home::new();
    let made = order(&home, "make", "POST", "/admin/api-keys", Some(json!({ "role": "backend" }))).await.body;
    let path = format!("/admin/api-keys/{}/rotate?after_seconds=60", made["id"].as_str().expect("an id"));
    let rotated = order(&home, "rotate", "POST", &path, None).await;
    assert_eq!(rotated.status, 201, "{rotated:?}");
    assert!(rotated.body["old_ends_at"].is_string());
    assert_eq!(order(&home, "rotate", "POST", &path, None).await.body, rotated.body);
    assert_eq!(order(&home, "anew", "POST", &path, None).await.status, 409, "it is about to end");
    let works = |key: Value| {
        let home = &home;
        async move {
            let key = key.as_str().expect("a key").to_owned();
            home.send("GET", "/v1/threads", &[("x-api-key", key.as_str())], None).await.status.as_u16()
        }
    };
    assert_eq!((works(made["key"].clone()).await, works(rotated.body["key"].clone()).await), (200, 200));
    home.clock.advance(61);
    assert_eq!((works(made["key"].clone()).await, works(rotated.body["key"].clone()).await), (401, 200));
    let year = format!("/admin/api-keys/{}?after_seconds=31536001", made["id"].as_str().expect("an id"));
    assert_eq!(order(&home, "too long", "DELETE", &year, None).await.status, 400);
}

#[tokio::test]
async fn jobs_and_spaces_are_begun_once() {
    let home = Home::new();
    let operator = format!("op_{OPERATOR}");
    let found = |name: &'static str| {
        let headers = [("x-api-key", operator.as_str()), ("idempotency-key", "space")].map(|(n, v)| (n, v.to_owned()));
        let home = &home;
        async move {
            let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            home.send("POST", "/admin/spaces", &headers, Some(&json!({ "name": name }))).await
        }
    };
    let first = found("work").await;
    assert_eq!((first.status.as_u16(), found("work").await.body), (201, first.body));
    assert_eq!(found("play").await.status, 409);
    home.by("alice", "POST", "/v1/threads/t/messages", Some(json!({ "body": "hi" }))).await;
    let begun = order(&home, "erase", "POST", "/admin/users/alice/erase", None).await;
    assert_eq!(begun.status, 202, "{begun:?}");
    assert_eq!(order(&home, "erase", "POST", "/admin/users/alice/erase", None).await.body, begun.body);
}

#[tokio::test]
async fn whoever_gets_the_name_of_an_erased_user_is_not_answered_in_their_place() {
    let home = Home::new();
    let post = |text: &'static str| {
        let home = &home;
        async move {
            let headers = [("x-api-key", home.backend.as_str()), ("x-user-id", "alice"), ("idempotency-key", "1")];
            home.send("POST", "/v1/threads/t/messages", &headers, Some(&json!({ "body": text }))).await
        }
    };
    let first = post("hello").await;
    assert_eq!((first.status.as_u16(), post("hello").await.status.as_u16()), (201, 200));
    assert_eq!(post("other").await.status, 409);
    order(&home, "erase", "POST", "/admin/users/alice/erase", None).await;
    // Neither the answer of the one before, nor anything done twice.
    assert_eq!(post("hello").await.status, 409);
    home.clock.advance(24 * 3600);
    let later = post("hello").await;
    assert_eq!(later.status, 201, "{later:?}");
    assert_ne!(later.body["event"], first.body["event"]);
}

#[tokio::test]
async fn bodies_say_what_they_must_and_nothing_that_is_not_understood() {
    let home = Home::new();
    home.by("alice", "POST", "/v1/threads/t/messages", Some(json!({ "id": "m", "body": "hello" }))).await;
    for (method, path, body, says) in [
        ("PUT", "/v1/messages/m", json!({ "bdy": "x" }), "body"),
        ("POST", "/v1/threads/t/messages", json!({ "text": "x" }), "body"),
        ("POST", "/v1/threads", json!([]), "not an object"),
    ] {
        let answer = home.by("alice", method, path, Some(body)).await;
        assert_eq!(answer.status, 422, "{path}: {answer:?}");
        assert!(answer.body["detail"].as_str().is_some_and(|detail| detail.contains(says)), "{answer:?}");
    }
    assert_eq!(home.by("alice", "GET", "/v1/messages/m", None).await.body["body"], "hello");
    let admin = [("x-api-key", home.admin.as_str())];
    let rule = json!({ "age_seconds": 60 });
    assert_eq!(home.send("PUT", "/admin/retention", &admin, Some(&rule)).await.status, 204);
    for (path, body) in [
        ("/admin/retention", json!({ "age": 60 })),
        ("/admin/reports/1", json!([])),
        ("/admin/users/bob", json!({ "role": "member", "rol": "admin" })),
    ] {
        assert_eq!(home.send("PUT", path, &admin, Some(&body)).await.status, 422, "{path} {body}");
    }
    let rules = home.send("GET", "/admin/retention", &admin, None).await.body;
    assert_eq!(rules["rules"][0]["age_seconds"], 60, "the rule stands: {rules}");
    for weak in ["00".repeat(32), "ff".repeat(32), format!("01{}", "00".repeat(31))] {
        let path = format!("/admin/identities/{weak}");
        assert_eq!(home.send("PUT", &path, &admin, Some(&json!({ "role": "member" }))).await.status, 404, "{weak}");
    }
}

#[tokio::test]
async fn applications_can_sign_with_a_date_themselves_or_have_it_done() {
    let home = Home::new();
    let body = json!({ "userId": "alice", "dated": true });
    let backend = [("x-api-key", home.backend.as_str())];
    let signed = home.send("POST", "/v1/_sign", &backend, Some(&body)).await.body;
    let signature = signed["signature"].as_str().expect("a signature");
    assert!(signature.starts_with("v1."), "{signature}");
    let read = |signature: String| {
        let home = &home;
        async move {
            let headers = [
                ("x-api-key", home.frontend.as_str()),
                ("x-user-id", "alice"),
                ("x-user-signature", signature.as_str()),
            ];
            home.send("GET", "/v1/threads", &headers, None).await.status.as_u16()
        }
    };
    assert_eq!((read(signature.to_owned()).await, read(signature.to_owned()).await), (200, 401), "once");
    let made = order(&home, "k", "POST", "/admin/signing-keys", None).await.body;
    let secret = hex::decode(made["secret"].as_str().expect("a secret")).expect("hex");
    let secret: [u8; 32] = secret.try_into().expect("32 bytes");
    let own = server::auth::signature::sign_dated(&secret, "alice", home.state.node.now(), "n1");
    assert_eq!(read(own).await, 200);
    for number in [1, 2] {
        order(&home, &format!("end {number}"), "DELETE", &format!("/admin/signing-keys/{number}"), None).await;
    }
    let none = home.send("POST", "/v1/_sign", &backend, Some(&body)).await;
    assert_eq!((none.status.as_u16(), none.body["type"].as_str()), (409, Some("/problems/no-signing-key")));
}

#[tokio::test]
async fn what_is_gone_is_answered_as_the_first_time() {
    let home = Home::new();
    let hook = order(&home, "h", "POST", "/admin/webhooks", Some(json!({ "url": "https://example.org/" }))).await.body;
    let hook = format!("/admin/webhooks/{}", hook["id"].as_str().expect("an id"));
    home.by("bob", "POST", "/v1/threads/t/messages", Some(json!({ "body": "hi" }))).await;
    for (idempotency, path) in [("1", hook.as_str()), ("2", "/admin/users/bob")] {
        let first = order(&home, idempotency, "DELETE", path, None).await.status.as_u16();
        let again = order(&home, idempotency, "DELETE", path, None).await.status.as_u16();
        let anew = order(&home, &format!("{idempotency} anew"), "DELETE", path, None).await.status.as_u16();
        assert_eq!((first, again, anew), (204, 204, 404), "{path}");
    }
    let leave = async || {
        let headers = [("x-api-key", home.backend.as_str()), ("x-user-id", "carol"), ("idempotency-key", "l")];
        home.send("DELETE", "/v1/members/carol", &headers, None).await
    };
    home.by("carol", "POST", "/v1/threads/t/messages", Some(json!({ "body": "hi" }))).await;
    assert_eq!((leave().await.status.as_u16(), leave().await.status.as_u16()), (204, 204));
    let operator = format!("op_{OPERATOR}");
    let end = |idempotency: &'static str| {
        let headers =
            [("x-api-key", operator.as_str()), ("idempotency-key", idempotency)].map(|(n, v)| (n, v.to_owned()));
        let home = &home;
        async move {
            let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            home.send("DELETE", "/admin/spaces/home", &headers, None).await
        }
    };
    let (first, again) = (end("e").await, end("e").await);
    assert_eq!((first.status.as_u16(), &first.body), (202, &again.body), "{first:?} {again:?}");
    assert_eq!(end("f").await.status, 404);
}

#[tokio::test]
async fn whoever_repeats_a_request_sees_no_more_than_they_may_now() {
    let home = Home::new();
    let new = json!({ "id": "t", "private": true, "participants": ["carol"] });
    assert_eq!(home.by("alice", "POST", "/v1/threads", Some(new)).await.status, 201);
    let role = Some(model::payload::MemberRole::Admin);
    let random = Box::new([4; 32]);
    home.administer(node::commands::AdminCommand::SetRole { space: home.space, user: "carol".into(), role, random });
    let rename = async || {
        let headers = [("x-api-key", home.backend.as_str()), ("x-user-id", "carol"), ("idempotency-key", "r")];
        home.send("PUT", "/v1/threads/t", &headers, Some(&json!({ "title": "ours" }))).await.status
    };
    assert_eq!((rename().await.as_u16(), rename().await.as_u16()), (200, 200));
    home.by("alice", "PUT", "/v1/threads/t", Some(json!({ "participants": [] }))).await;
    assert_eq!(rename().await, 404);
}

#[tokio::test]
async fn what_is_refused_changes_nothing() {
    let home = Home::new();
    home.by("alice", "POST", "/v1/threads", Some(json!({ "id": "t", "title": "before" }))).await;
    let large = json!({ "title": "after", "metadata": "x".repeat(70_000) });
    assert_eq!(home.by("alice", "PUT", "/v1/threads/t", Some(large)).await.status, 413);
    for fixed in [json!({ "title": "after", "id": "u" }), json!({ "title": "after", "slug": "other" })] {
        assert_eq!(home.by("alice", "PUT", "/v1/threads/t", Some(fixed)).await.status, 409);
    }
    let thread = home.by("alice", "GET", "/v1/threads/t", None).await.body;
    assert_eq!(thread["title"], "before");
    assert_eq!(home.by("alice", "PUT", "/v1/threads/t", Some(thread)).await.status, 200, "it can be sent back");
    let naming = json!({ "body": "x", "mentions": ["new", "bad/name"] });
    assert_eq!(home.by("alice", "POST", "/v1/threads/t/messages", Some(naming)).await.status, 422);
    let users = home.send("GET", "/admin/users", &[("x-api-key", home.admin.as_str())], None).await.body;
    assert_eq!(users["users"].as_array().map(Vec::len), Some(1), "{users}");
    let misspelt = json!({ "privat": true });
    assert_eq!(home.by("alice", "POST", "/v1/threads", Some(misspelt)).await.status, 422);
    let message = json!({ "id": "m", "body": "x" });
    for (thread, status) in [("t", 201), ("t", 200), ("u", 409)] {
        let path = format!("/v1/threads/{thread}/messages");
        assert_eq!(home.by("alice", "POST", &path, Some(message.clone())).await.status, status, "{thread}");
    }
}
