//! Conditional requests: ETags, `If-None-Match`, `If-Match`.

use super::Home;
use super::access::body;
use super::rules::with_messages;
use crate::{openapi, rules};
use engine::access::Action;
use http::Method;
use serde_json::{Value, json};
use server::routes::RouteRule;
use server::test_support::{Answer, OPERATOR};

#[tokio::test]
async fn what_nobody_changed_is_not_sent_again() {
    let home = with_messages(2).await;
    for path in
        ["/v1/threads/t", "/v1/messages/m0", "/v1/threads", "/v1/threads/t/messages", "/v1/openapi.json", "/docs"]
    {
        let first = home.by("alice", "GET", path, None).await;
        let tag = first.header("etag").unwrap_or_else(|| panic!("{path}: {first:?}")).to_owned();
        let again = home.by_with("alice", "GET", path, ("if-none-match", &tag), None).await;
        assert_eq!(
            (again.status.as_u16(), again.header("etag"), &again.body),
            (304, Some(&*tag), &Value::Null),
            "{path}"
        );
        let other = home.by_with("alice", "GET", path, ("if-none-match", "\"other\""), None).await;
        assert_eq!((other.status.as_u16(), other.body), (200, first.body), "{path}");
    }
    let cached = |path: &'static str| {
        let home = &home;
        async move { home.by("alice", "GET", path, None).await.header("cache-control").map(str::to_owned) }
    };
    assert_eq!(cached("/v1/threads").await.as_deref(), Some("private, no-cache"));
    assert_eq!(cached("/docs").await.as_deref(), Some("public, max-age=3600"));
    assert_eq!(cached("/problems/not-found").await.as_deref(), Some("public, max-age=3600"));
    assert_eq!(cached("/v1/threads/nothing").await.as_deref(), Some("no-store"));
    // The same messages with another way on are another page.
    let page = |query: &'static str| {
        let home = &home;
        async move { home.by("alice", "GET", &format!("/v1/threads/t/messages?limit=1&{query}"), None).await }
    };
    let (latest, after) = (page("").await, page("after=m0").await);
    assert_eq!(latest.body["messages"], after.body["messages"]);
    assert_ne!(latest.header("etag"), after.header("etag"));
    // A reaction changes what is shown of a message.
    let tag = home.by("alice", "GET", "/v1/messages/m0", None).await.header("etag").expect("a tag").to_owned();
    home.by("bob", "POST", "/v1/messages/m0/reactions", Some(json!({ "reaction": "+1" }))).await;
    assert_eq!(home.by_with("alice", "GET", "/v1/messages/m0", ("if-none-match", &tag), None).await.status, 200);
    // Whoever may not read it is not told that it is the same.
    let nobody = home.send("GET", "/v1/messages/m0", &[("if-none-match", "*")], None).await;
    assert_eq!(nobody.status, 401);
}

#[tokio::test]
async fn what_somebody_else_changed_is_not_overwritten() {
    let home = with_messages(2).await;
    for (path, change) in [
        ("/v1/threads/t", json!({ "title": "a title" })),
        ("/v1/messages/m0", json!({ "body": "changed" })),
        ("/v1/threads/t/messages/m1", json!({ "body": "changed" })),
    ] {
        let seen = home.by("alice", "GET", path, None).await.header("etag").expect("a tag").to_owned();
        let first = home.by_with("alice", "PUT", path, ("if-match", &seen), Some(change.clone())).await;
        assert_eq!(first.status, 200, "{path}: {first:?}");
        let second = home.by_with("alice", "PUT", path, ("if-match", &seen), Some(change.clone())).await;
        assert_eq!((second.status.as_u16(), &second.body["type"]), (412, &json!("/problems/precondition")), "{path}");
        let gone = home.by_with("alice", "DELETE", path, ("if-match", &seen), None).await;
        assert_eq!(gone.status, 412, "{path}");
        let any = home.by_with("alice", "PUT", path, ("if-match", "*"), Some(change)).await;
        assert_eq!(any.status, 200, "{path}: {any:?}");
    }
    let seen = home.by("alice", "GET", "/v1/messages/m1", None).await.header("etag").expect("a tag").to_owned();
    assert_eq!(home.by_with("alice", "DELETE", "/v1/messages/m1", ("if-match", &seen), None).await.status, 204);
    let none = home.by_with("alice", "PUT", "/v1/messages/no", ("if-match", "*"), Some(json!({ "body": 1 }))).await;
    assert_eq!(none.status, 404);
    let elsewhere = home.by_with("alice", "POST", "/v1/messages", ("if-match", "*"), Some(json!({ "body": 1 }))).await;
    assert_eq!(elsewhere.status, 412, "{elsewhere:?}");
}

#[tokio::test]
async fn a_change_under_a_condition_can_be_repeated() {
    let home = with_messages(1).await;
    let seen = home.by("alice", "GET", "/v1/messages/m0", None).await.header("etag").expect("a tag").to_owned();
    let headers =
        [("x-api-key", home.backend.as_str()), ("x-user-id", "alice"), ("if-match", &seen), ("idempotency-key", "one")];
    for _ in 0..2 {
        let changed = home.send("PUT", "/v1/messages/m0", &headers, Some(&json!({ "body": "new" }))).await;
        assert_eq!((changed.status.as_u16(), &changed.body["version"]), (200, &json!(2)), "{changed:?}");
    }
}

#[tokio::test]
async fn a_thread_that_was_deleted_under_a_condition_is_deleted_again() {
    let home = with_messages(1).await;
    let seen = home.by("alice", "GET", "/v1/threads/t", None).await.header("etag").expect("a tag").to_owned();
    let headers = [
        ("x-api-key", home.backend.as_str()),
        ("x-user-id", "alice"),
        ("if-match", "\"other\""),
        ("if-match", &seen),
        ("idempotency-key", "one"),
    ];
    for _ in 0..2 {
        assert_eq!(home.send("DELETE", "/v1/threads/t", &headers, None).await.status, 204, "on two lines, and again");
    }
}

#[tokio::test]
async fn of_two_changes_to_the_same_version_one_is_done() {
    let home = with_messages(1).await;
    let seen = home.by("alice", "GET", "/v1/messages/m0", None).await.header("etag").expect("a tag").to_owned();
    let change = |number: u32| {
        let (home, seen) = (&home, seen.as_str());
        let body = Some(json!({ "body": number }));
        async move { home.by_with("alice", "PUT", "/v1/messages/m0", ("if-match", seen), body).await.status.as_u16() }
    };
    let mut answers = futures_util::future::join_all((0..8).map(change)).await;
    answers.sort_unstable();
    assert_eq!(answers, [200, 412, 412, 412, 412, 412, 412, 412]);
}

#[tokio::test]
async fn pages_of_other_origins_may_use_conditions() {
    let options = server::ServerOptions { origins: vec!["https://a.example".to_owned()], ..Default::default() };
    let home = Home::with(options);
    let asks = [
        ("origin", "https://a.example"),
        ("access-control-request-method", "PUT"),
        ("access-control-request-headers", "if-match,if-none-match"),
    ];
    let allowed = home.send("OPTIONS", "/v1/threads", &asks, None).await;
    let allowed = allowed.header("access-control-allow-headers").unwrap_or_default().to_owned();
    assert!(allowed.contains("if-match") && allowed.contains("if-none-match"), "{allowed}");
    let shown = home.by_with("alice", "GET", "/v1/threads", ("origin", "https://a.example"), None).await;
    let shown = shown.header("access-control-expose-headers").unwrap_or_default().to_owned();
    assert!(shown.contains("etag") && shown.contains("location") && shown.contains("retry-after"), "{shown}");
}

/// Sends a request to a route, to something that is there, by somebody who may, with one more header.
async fn ask(home: &Home, rule: &RouteRule, header: (&str, &str)) -> Answer {
    let job = home.send("GET", "/admin/jobs", &[("x-api-key", &home.admin)], None).await.body;
    let key = home.send("GET", "/admin/keys", &[("x-api-key", &home.admin)], None).await.body;
    let file = home.send("GET", "/v1/files", &[("x-api-key", &home.backend)], None).await.body;
    let mut path = rule.path.to_owned();
    for (name, value) in [
        ("thread", "t"),
        ("thread_key", "t"),
        ("id", "m0"),
        ("message_key", "m0"),
        ("user", "alice"),
        ("identity", "alice"),
        ("name", "not-found"),
        ("space", "home"),
        ("number", job["jobs"][0]["number"].as_str().unwrap_or("1")),
        ("key", key["keys"][0].as_str().expect("a key")),
        ("file", file["files"][0]["id"].as_str().expect("a file")),
    ] {
        path = path.replace(&format!("{{{name}}}"), value);
    }
    if rule.path == "/v1/links/{key}" {
        let links = format!("/v1/files/{}/links", file["files"][0]["id"].as_str().expect("a file"));
        let link = home.by("alice", "POST", &links, Some(json!({}))).await.body;
        path = link["url"].as_str().expect("a URL").to_owned();
    }
    if rule.path == "/v1/search" {
        path.push_str("?q=tea");
    }
    let operator = format!("Bearer op_{OPERATOR}");
    let credential = match rule.action {
        Action::Operate => ("authorization", operator.as_str()),
        Action::Administer | Action::Vouch => ("x-api-key", home.admin.as_str()),
        _ => ("x-api-key", home.backend.as_str()),
    };
    let body = body(rule.method.as_str(), rule.path);
    let mut headers = vec![credential, header];
    if !matches!(rule.action, Action::Operate | Action::Administer | Action::Vouch) {
        headers.push(("x-user-id", "alice"));
    }
    home.send(rule.method.as_str(), &path, &headers, body.as_ref()).await
}

#[tokio::test]
async fn the_document_says_which_routes_take_conditions() {
    let home = with_messages(1).await;
    assert_eq!(home.by("alice", "POST", "/v1/files?name=a", Some(json!({}))).await.status, 201);
    home.send("POST", "/admin/jobs", &[("x-api-key", &home.admin)], Some(&json!({ "work": "retain" }))).await;
    #[cfg(feature = "search")]
    let folder = tempfile::tempdir().expect("a folder");
    #[cfg(feature = "search")]
    let searching = node::search::SearchService::start(&home.state.node, folder.path().to_owned());
    #[cfg(feature = "search")]
    home.state.search_with(searching.clone());
    #[cfg(feature = "search")]
    searching.catch_up().expect("caught up");
    let document = serde_json::to_value(openapi()).expect("a document");
    let (mut tagged, mut compared) = (0, 0);
    for rule in rules() {
        let operation = &document["paths"][rule.path][rule.method.as_str().to_lowercase()];
        let responses = &operation["responses"];
        let takes = |header: &str| {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            parameters.into_iter().any(|parameter| parameter["name"] == header)
        };
        let says_tag = responses["200"]["headers"]["ETag"].is_object();
        assert_eq!((takes("If-None-Match"), responses["304"].is_object()), (says_tag, says_tag), "{rule:?}");
        // There it is about the version of the protocol.
        let is_tus = rule.path.starts_with("/v1/uploads");
        assert_eq!(takes("If-Match"), responses["412"].is_object() && !is_tus, "{rule:?}");
        if rule.method == Method::GET {
            let first = ask(&home, &rule, ("if-none-match", "\"other\"")).await;
            assert_eq!((first.status.as_u16(), first.header("etag").is_some()), (200, says_tag), "{rule:?}: {first:?}");
            let status = if says_tag { 304 } else { 200 };
            assert_eq!(ask(&home, &rule, ("if-none-match", "*")).await.status, status, "{rule:?}");
            assert!(!takes("If-Match"), "{rule:?}");
            tagged += usize::from(says_tag);
        } else {
            let refused = ask(&home, &rule, ("if-match", "\"other\"")).await;
            let is_compared = refused.body["detail"].as_str().is_some_and(|why| why.starts_with("it is not what"));
            assert_eq!((refused.status.as_u16(), is_compared), (412, takes("If-Match")), "{rule:?}: {refused:?}");
            assert!(!says_tag, "{rule:?}");
            compared += usize::from(is_compared);
        }
    }
    #[cfg(feature = "search")]
    searching.stop();
    assert!(tagged > 30 && compared == 6, "{tagged} {compared}");
}
