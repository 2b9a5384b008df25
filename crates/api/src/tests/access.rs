//! Who may do what through the API, beside what the table of all routes for all principals says.

use super::Home;
use crate::{openapi, rules};
use engine::access::{Action, KeyRole};
use http::Method;
use node::commands::AdminCommand;
use serde_json::{Value, json};
use server::routes::RouteRule;
use server::test_support::{found, make_key};
use std::collections::BTreeSet;

/// A body that every route can read, and which changes as little as possible.
pub(super) fn body(method: &str, path: &str) -> Option<Value> {
    match (method, path) {
        ("PUT", "/v1/blocks/{user}") => Some(json!({ "kind": "mute" })),
        ("POST", "/v1/reports") => Some(json!({ "message": "m1" })),
        ("PUT", "/admin/retention") => Some(json!({ "count": 0 })),
        ("POST", "/admin/jobs") => Some(json!({ "work": "none" })),
        ("POST", "/admin/purge") => Some(json!({ "events": [] })),
        ("PUT", "/admin/spaces/{space}/protection") => Some(json!({ "encrypt": "whole" })),
        ("POST", "/v1/_sign") => Some(json!({ "userId": "alice" })),
        ("PUT", "/v1/presence") => Some(json!({ "status": "away" })),
        ("POST", "/admin/spaces") => Some(json!({ "name": "" })),
        ("POST", "/admin/webhooks") => Some(json!({ "url": "" })),
        ("POST", "/admin/api-keys") => Some(json!({ "role": "none" })),
        ("PUT", "/admin/users/{user}" | "/admin/identities/{identity}") => Some(json!({ "role": "none" })),
        ("PUT", "/v1/threads/{thread}/read") => Some(json!({ "message": "m1" })),
        ("POST", path) if path.ends_with("/reactions") => Some(json!({ "reaction": "x" })),
        ("POST", path) if path.ends_with("/messages") => Some(json!({ "body": "x" })),
        ("PUT", path) if path.ends_with("/messages/{id}") => Some(json!({ "body": "x" })),
        ("POST" | "PUT", _) => Some(json!({})),
        _ => None,
    }
}

#[tokio::test]
async fn the_table_of_actions_is_the_table_of_routes() {
    let document = serde_json::to_value(openapi()).expect("a document");
    let mut documented = BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for method in item.as_object().expect("methods").keys() {
            documented.insert(format!("{} {path}", method.to_uppercase()));
        }
    }
    let known: BTreeSet<String> = rules().iter().map(|rule| format!("{} {}", rule.method, rule.path)).collect();
    assert_eq!(documented, known);
}

#[tokio::test]
async fn ids_of_another_space_answer_as_if_they_did_not_exist() {
    let home = Home::new();
    let other = found(&home.state.node, "other", 2);
    let key = make_key(&home.state.node, other, KeyRole::Backend, 9);
    let made = home.by("alice", "POST", "/v1/threads/t1/messages", Some(json!({ "id": "m1", "body": "x" }))).await;
    let event = made.body["event"].as_str().expect("an event").to_owned();
    let headers = [("x-api-key", key.as_str()), ("x-user-id", "eve")];
    for RouteRule { method, path, action, .. } in rules() {
        if !path.contains("{id}") && !path.contains("{thread}") || action == Action::Administer {
            continue;
        }
        for id in ["m1", &event] {
            let filled = path.replace("{thread}", "t1").replace("{id}", id).replace("{identity}", "eve");
            if method == Method::POST && !filled.contains(id) {
                continue;
            }
            let answer = home.send(method.as_str(), &filled, &headers, body(method.as_str(), path).as_ref()).await;
            assert_eq!(answer.status, 404, "{method} {filled}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_dated_signature_is_good_once_and_for_five_minutes() {
    let home = Home::new();
    let now = 1_800_000_000;
    let signed =
        |at: u64, nonce: &str| format!("v1.{at}.{nonce}.{}", home.signature(&format!("v1\nalice\n{at}\n{nonce}")));
    for (at, nonce, status) in [
        (now, "a", 200),
        (now, "a", 401),
        (now, "b", 200),
        (now - 299, "c", 200),
        (now - 301, "d", 401),
        (now + 299, "e", 200),
        (now + 302, "f", 401),
    ] {
        let text = signed(at, nonce);
        let headers =
            [("x-api-key", home.frontend.as_str()), ("x-user-id", "alice"), ("x-user-signature", text.as_str())];
        let answer = home.send("GET", "/v1/threads", &headers, None).await;
        assert_eq!(answer.status, status, "{at} {nonce}: {answer:?}");
    }
}

#[tokio::test]
async fn keys_are_rotated_without_a_break() {
    let home = Home::new();
    let admin = [("x-api-key", home.admin.as_str())];
    let id = "02".repeat(8);
    let path = format!("/admin/api-keys/{id}/rotate?after_seconds=60");
    let made = home.send("POST", &path, &admin, None).await;
    assert_eq!((made.status.as_u16(), &made.body["role"]), (201, &json!("backend")), "{made:?}");
    let new = made.body["key"].as_str().expect("a key").to_owned();
    let asks = async |key: &str| home.send("GET", "/v1/threads", &[("x-api-key", key)], None).await.status.as_u16();
    assert_eq!((asks(&home.backend).await, asks(&new).await), (200, 200));
    home.clock.advance(61);
    assert_eq!((asks(&home.backend).await, asks(&new).await), (401, 200));
    // What has ended stays so, whoever asks for more time.
    assert_eq!(home.send("POST", &path, &admin, None).await.status, 409);
    home.send("DELETE", &format!("/admin/api-keys/{id}?after_seconds=9999"), &admin, None).await;
    assert_eq!(asks(&home.backend).await, 401);
}

#[tokio::test]
async fn what_everybody_may_see_is_not_refused_for_a_stale_key() {
    let home = Home::new();
    let stale = [("x-api-key", "ark_00_00"), ("x-user-id", "alice"), ("x-user-signature", "00")];
    for path in ["/healthz", "/readyz", "/v1/openapi.json", "/docs", "/problems/conflict"] {
        let answer = home.send("GET", path, &stale, None).await;
        assert_eq!(answer.status, 200, "{path}");
    }
    assert_eq!(home.send("GET", "/v1/threads", &stale, None).await.status, 401);
}

#[tokio::test]
async fn keys_that_sign_for_users_are_changed_without_a_break() {
    let home = Home::new();
    let admin = [("x-api-key", home.admin.as_str())];
    let before = home.signature("alice");
    assert_eq!(home.send("POST", "/admin/signing-keys", &admin, None).await.body["number"], "2");
    let after = home.signature("alice");
    assert_ne!(before, after);
    let asks = async |signature: &str| {
        let headers = [("x-api-key", &*home.frontend), ("x-user-id", "alice"), ("x-user-signature", signature)];
        home.send("GET", "/v1/threads", &headers, None).await.status.as_u16()
    };
    assert_eq!((asks(&before).await, asks(&after).await), (200, 200));
    assert_eq!(home.send("DELETE", "/admin/signing-keys/1", &admin, None).await.status, 204);
    assert_eq!((asks(&before).await, asks(&after).await), (401, 200));
    let keys = home.send("GET", "/admin/signing-keys", &admin, None).await.body;
    assert_eq!((&keys["keys"][0]["signs"], &keys["keys"][1]["signs"]), (&json!(true), &json!(false)), "{keys}");
    assert_eq!(home.send("DELETE", "/admin/signing-keys/9", &admin, None).await.status, 404);
}

#[tokio::test]
async fn only_the_author_or_an_admin_of_the_space_edits_and_deletes() {
    let home = Home::new();
    home.by("alice", "POST", "/v1/threads/t1/messages", Some(json!({ "id": "m1", "body": "mine" }))).await;
    let edit = Some(json!({ "body": "yours" }));
    assert_eq!(home.by("bob", "PUT", "/v1/messages/m1", edit.clone()).await.status, 403);
    assert_eq!(home.by("bob", "DELETE", "/v1/messages/m1", None).await.status, 403);
    assert_eq!(home.by("bob", "DELETE", "/v1/threads/t1", None).await.status, 403);
    assert_eq!(home.by("alice", "PUT", "/v1/messages/m1", edit.clone()).await.status, 200);
    let role = Some(model::payload::MemberRole::Admin);
    let random = Box::new([3; 32]);
    home.administer(AdminCommand::SetRole { space: home.space, user: "mod".into(), role, random });
    assert_eq!(home.by("mod", "PUT", "/v1/messages/m1", edit).await.status, 200);
    assert_eq!(home.by("mod", "DELETE", "/v1/messages/m1", None).await.status, 204);
    let log = home.send("GET", "/admin/audit", &[("x-api-key", home.admin.as_str())], None).await.body;
    let acts: Vec<&str> =
        log["entries"].as_array().expect("entries").iter().filter_map(|e| e["what"].as_str()).collect();
    assert_eq!(acts[..3], ["edit message", "edit message", "set role"], "{log}");
    let edits = acts.iter().filter(|act| **act == "edit message").count();
    assert_eq!(edits, 2, "what authors do to their own is not in it: {log}");
    assert!(log["entries"][0]["who"].as_str().is_some_and(|who| who.ends_with("for mod")), "{log}");
}
