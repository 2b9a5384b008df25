//! Every route of the API and of the pages for every principal.

use super::Home;
use engine::access::{Action, KeyRole};
use http::Method;
use model::Nanos;
use node::commands::AdminCommand;
use serde_json::{Value, json};
use server::routes::RouteRule;
use server::test_support::{OPERATOR, make_key};

/// What authentication says, whatever the handler then finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Says {
    In,
    Unproven,
    Forbidden,
}
use Says::{Forbidden, In, Unproven};

/// Whoever cannot prove who they are sees what everybody may see.
const EVERYBODY: [Says; 9] = [In, Unproven, Unproven, Unproven, Unproven, Unproven, Unproven, Unproven, Unproven];

/// Who asks, and what they are told for Look, Read, Submit, Write, Change, Own, Vouch, Administer, Operate.
const TABLE: &[(&str, [Says; 9])] = &[
    ("nobody", EVERYBODY),
    ("wrong key", EVERYBODY),
    ("revoked key", EVERYBODY),
    ("key in two headers", EVERYBODY),
    ("frontend without user", [In, Unproven, Unproven, Unproven, Unproven, Unproven, Forbidden, Forbidden, Forbidden]),
    ("frontend with user, no signature", EVERYBODY),
    ("frontend with wrong signature", EVERYBODY),
    ("frontend with expired signature", EVERYBODY),
    ("frontend with user", [In, In, In, In, In, In, Forbidden, Forbidden, Forbidden]),
    (
        "frontend with removed user",
        [In, Forbidden, Forbidden, Forbidden, Forbidden, Forbidden, Forbidden, Forbidden, Forbidden],
    ),
    ("backend without user", [In, In, In, Forbidden, Forbidden, Forbidden, In, Forbidden, Forbidden]),
    ("backend with user", [In, In, In, In, In, In, In, Forbidden, Forbidden]),
    (
        "backend with removed user",
        [In, Forbidden, Forbidden, Forbidden, Forbidden, Forbidden, In, Forbidden, Forbidden],
    ),
    ("admin without user", [In, In, In, Forbidden, In, Forbidden, In, In, Forbidden]),
    ("admin with user", [In, In, In, In, In, In, In, In, Forbidden]),
    ("operator", [In, In, In, Forbidden, In, Forbidden, In, In, In]),
    ("wrong operator", EVERYBODY),
    ("session of a member", [In, In, In, In, In, In, Forbidden, Forbidden, Forbidden]),
    ("session of an admin", [In, In, In, In, In, In, Forbidden, In, Forbidden]),
    (
        "session of a removed user",
        [In, Forbidden, Forbidden, Forbidden, Forbidden, Forbidden, Forbidden, Forbidden, Forbidden],
    ),
    ("session of the operator", [In; 9]),
    ("session that ended", EVERYBODY),
];

fn column(action: Action) -> usize {
    match action {
        Action::Look => 0,
        Action::Read => 1,
        Action::Submit => 2,
        Action::Write => 3,
        Action::Change => 4,
        Action::Own => 5,
        Action::Vouch => 6,
        Action::Administer => 7,
        Action::Operate => 8,
    }
}

fn headers(home: &Home, who: &str) -> Vec<(&'static str, String)> {
    let key = |key: &str| ("x-api-key", key.to_owned());
    let user = |user: &str| ("x-user-id", user.to_owned());
    let signature = |text: String| ("x-user-signature", text);
    let past = 1_800_000_000 - 400;
    let expired = format!("v1.{past}.n.{}", home.signature(&format!("v1\nalice\n{past}\nn")));
    match who {
        "nobody" => vec![],
        "wrong key" => vec![key(&home.backend.replace("0202", "0203"))],
        "revoked key" => vec![key(&make_key(&home.state.node, home.space, KeyRole::Admin, 77))],
        "key in two headers" => vec![key(&home.backend), ("authorization", format!("Bearer {}", home.backend))],
        "frontend without user" => vec![key(&home.frontend)],
        "frontend with user, no signature" => vec![key(&home.frontend), user("alice")],
        "frontend with wrong signature" => {
            vec![key(&home.frontend), user("alice"), signature(home.signature("bob"))]
        }
        "frontend with expired signature" => vec![key(&home.frontend), user("alice"), signature(expired)],
        "frontend with user" => vec![key(&home.frontend), user("alice"), signature(home.signature("alice"))],
        "frontend with removed user" => vec![key(&home.frontend), user("gone"), signature(home.signature("gone"))],
        "backend without user" => vec![key(&home.backend)],
        "backend with user" => vec![key(&home.backend), user("alice")],
        "backend with removed user" => vec![key(&home.backend), user("gone")],
        "admin without user" => vec![key(&home.admin)],
        "admin with user" => vec![key(&home.admin), user("alice")],
        "operator" => vec![("authorization", format!("Bearer op_{OPERATOR}"))],
        "wrong operator" => vec![("authorization", "Bearer op_x".to_owned())],
        "session of a member" => home.session("alice", false),
        "session of an admin" => home.session("mod", false),
        "session of a removed user" => home.session("gone", false),
        "session of the operator" => home.session("operator", true),
        "session that ended" => {
            let headers = home.session("alice", false);
            home.clock.advance(31 * 24 * 3600);
            headers
        }
        other => panic!("{other}"),
    }
}

/// A body that every route can read, and which changes as little as possible.
fn body(method: &str, path: &str) -> Option<Value> {
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
        ("POST", "/v1/presigned-uploads") => Some(json!({ "name": "a" })),
        ("POST", "/v1/bulk/messages") => Some(json!({ "messages": [] })),
        ("POST", "/backend/v1/sign") => Some(json!({ "userId": "alice" })),
        ("POST", path) if path.ends_with("/messages") => Some(json!({ "body": "x" })),
        ("PUT", path) if path.ends_with("/messages/{id}") || path.ends_with("/{message_key}") => {
            Some(json!({ "body": "x" }))
        }
        ("POST" | "PUT", _) => Some(json!({})),
        _ => None,
    }
}

#[tokio::test]
async fn every_route_for_every_principal() {
    let home = Home::new();
    for user in ["alice", "gone"] {
        home.by(user, "POST", "/v1/threads/t1/messages", Some(json!({ "body": user }))).await;
    }
    let random = Box::new([0; 32]);
    home.administer(AdminCommand::SetRole { space: home.space, user: "gone".into(), role: None, random });
    let (role, random) = (Some(model::payload::MemberRole::Admin), Box::new([8; 32]));
    home.administer(AdminCommand::SetRole { space: home.space, user: "mod".into(), role, random });
    let pages = crate::rules();
    let is_page = |path: &str| pages.iter().any(|rule| rule.path == path);
    for (who, told) in TABLE {
        let mut headers = self::headers(&home, who);
        if *who == "revoked key" {
            home.administer(AdminCommand::EndKey { id: [77; 8], at: Nanos(1) });
        }
        for RouteRule { method, path, action, .. } in api::rules().iter().chain(&pages) {
            // Some pages end the session that asks.
            if who.starts_with("session of") {
                headers = self::headers(&home, who);
            }
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let filled = path.replace("{thread}", "t1").replace("{id}", "m1").replace("{identity}", "alice");
            let filled = filled.replace("{thread_key}", "t1").replace("{message_key}", "m1");
            // A list of messages names its thread.
            let is_list = *path == "/v1/messages" && *method == Method::GET;
            let filled = if is_list { format!("{filled}?thread=t1") } else { filled };
            let filled = filled.replace("{user}", "temp").replace("{name}", "forbidden");
            let filled = if path.starts_with("/s/") { filled.replace("{space}", "home") } else { filled };
            let filled = filled.replace("{space}", "nowhere").replace("{number}", "0");
            let filled = filled.replace("{event}", &"ab".repeat(16)).replace("{link}", "x");
            let filled = filled.replace("{hash}", "x").replace("{file}", "x");
            let answer = home.send(method.as_str(), &filled, &headers, body(method.as_str(), path).as_ref()).await;
            let says = match answer.status.as_u16() {
                401 => Unproven,
                403 if answer.body["type"] == "/problems/foreign" => In,
                403 => Forbidden,
                500.. => panic!("{who} {method} {path}: {answer:?}"),
                _ => In,
            };
            let expected = told[column(*action)];
            // Taking back somebody's reaction names that user in the path.
            let names_user =
                path.ends_with("reactions/{identity}") && who.ends_with("without user") && !who.starts_with("front");
            // Forms are taken from pages of this node only, before anybody is proven.
            if *method == Method::POST && is_page(path) && !who.starts_with("session") {
                continue;
            }
            let expected =
                if names_user || *who == "operator" && path.ends_with("reactions/{identity}") { In } else { expected };
            // A session acts for nobody else.
            let names_another = path.ends_with("reactions/{identity}")
                && ["session of an admin", "session of the operator"].contains(who);
            let expected = if names_another { Forbidden } else { expected };
            // Keys outlive whoever makes them.
            let makes_key = *method == Method::POST && (path.contains("/api-keys") || path.ends_with("/signing-keys"));
            let expected = if makes_key && *who == "session of an admin" { Forbidden } else { expected };
            if is_page(path) {
                let is_routed = answer.status != 405 && answer.body["detail"] != "there is no such path";
                assert!(is_routed, "{method} {path} has a row and no route");
            }
            assert_eq!(says, expected, "{who} {method} {path}: {answer:?}");
        }
    }
}
