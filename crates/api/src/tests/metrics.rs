//! A scrape, line by line.

use super::Home;
use axum::body::Body;
use http::Request;
use serde_json::json;
use server::listen::metrics_router;
use server::test_support::OPERATOR;
use std::collections::BTreeMap;
use tower::ServiceExt as _;

async fn scrape(router: axum::Router) -> String {
    let request = Request::get("/metrics").header("authorization", format!("Bearer op_{OPERATOR}"));
    let response = router.oneshot(request.body(Body::empty()).expect("a request")).await.expect("an answer");
    assert_eq!(response.status(), 200);
    let media = response.headers().get("content-type").expect("a type");
    assert!(media.to_str().expect("text").starts_with("text/plain; version=0.0.4"));
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.expect("a body");
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_')
}

/// Every sample by its name and labels; panics on a line that is none of what the format knows.
fn parsed(text: &str) -> BTreeMap<String, f64> {
    let (mut samples, mut kinds) = (BTreeMap::new(), BTreeMap::new());
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help");
            assert!(is_name(name) && !help.is_empty(), "{line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert!(is_name(name) && ["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kinds.insert(name.to_owned(), kind.to_owned()), None, "{line}");
        } else {
            let (series, value) = line.rsplit_once(' ').expect("a sample");
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            assert!(is_name(name), "{line}");
            for label in labels.strip_suffix('}').expect("labels").split("\",").filter(|label| !label.is_empty()) {
                let (name, value) = label.split_once("=\"").expect("a label");
                assert!(is_name(name) && !value.trim_end_matches('"').contains('"'), "{line}");
            }
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            assert!(kinds.contains_key(name) || family.is_some_and(|family| kinds[family] == "histogram"), "{line}");
            let value = value.parse().expect("a number");
            assert_eq!(samples.insert(series.to_owned(), value), None, "{line}");
        }
    }
    samples
}

#[tokio::test]
async fn every_line_of_a_scrape_reads_back_and_says_what_happened() {
    let home = Home::new();
    home.by("alice", "POST", "/v1/threads/t1/messages", Some(json!({ "id": "m1", "body": "one" }))).await;
    home.by("alice", "GET", "/v1/threads/t1", None).await;
    home.send("GET", "/v1/threads/t1", &[], None).await;
    let samples = parsed(&scrape(home.router()).await);
    let requests = |method: &str, route: &str, status: u16| {
        let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
        samples[&format!("anteroom_request_seconds_count{{{labels}}}")]
    };
    assert_eq!(requests("POST", "/v1/threads/{thread}/messages", 201), 1.0);
    assert_eq!(requests("GET", "/v1/threads/{thread}", 200), 1.0);
    assert_eq!(requests("GET", "/v1/threads/{thread}", 401), 1.0);
    let db = home.state.node.snapshot().expect("a snapshot");
    assert_eq!(samples["anteroom_journal_position"], db.position().expect("a position").number as f64);
    assert_eq!(samples["anteroom_events{stage=\"applied\"}"], db.all_events().expect("events").len() as f64);
    assert_eq!(samples["anteroom_events{stage=\"held\"}"], 0.0);
    assert_eq!(samples["anteroom_held_by_need{need=\"key\"}"], 0.0);
    assert_eq!(samples["anteroom_live_streams"], 0.0);
    assert!(samples["anteroom_commit_seconds_count"] >= 1.0);
    assert!(samples.contains_key("anteroom_writer_queue"));
}

#[tokio::test(flavor = "multi_thread")]
async fn how_files_stand_is_counted_at_most_once_in_a_minute() {
    let home = Home::new();
    let caller = [("x-api-key", home.backend.as_str()), ("x-user-id", "alice"), ("content-type", "application/json")];
    let begin = async |name: &str| {
        let body = json!({ "name": name });
        let begun = home.send("POST", "/v1/presigned-uploads", &caller, Some(&body)).await;
        assert_eq!(begun.status, 201, "{begun:?}");
        begun.body["file"]["id"].as_str().expect("an id").to_owned()
    };
    let series = "anteroom_files{tier=\"file\",family=\"\",status=\"created\"}";
    begin("one.txt").await;
    assert_eq!(parsed(&scrape(home.router()).await)[series], 1.0);
    begin("two.txt").await;
    let soon = parsed(&scrape(home.router()).await);
    assert_eq!((soon[series], soon["anteroom_files_backlog"], soon["anteroom_uploads_open"]), (1.0, 0.0, 0.0));
    home.clock.advance(60);
    assert_eq!(parsed(&scrape(home.router()).await)[series], 2.0);
    // Who administers the space sees the same, and those who do not see nothing.
    let of = |key: &str| vec![("x-api-key", key.to_owned())];
    let status = async |headers: Vec<(&'static str, String)>| {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        home.send("GET", "/admin/files", &headers, None).await
    };
    let seen = status(of(&home.admin)).await;
    let expected = json!([{ "tier": "file", "derivation_type": "", "status": "created", "count": 2 }]);
    assert_eq!((seen.status.as_u16(), &seen.body["counts"]), (200, &expected), "{seen:?}");
    assert_eq!(status(of(&home.backend)).await.status, 403);
}

#[tokio::test]
async fn a_listener_of_their_own_serves_metrics_and_nothing_else() {
    let home = Home::new();
    let request = |path: &str| Request::get(path).body(Body::empty()).expect("a request");
    parsed(&scrape(metrics_router(&home.state)).await);
    for path in ["/v1/threads", "/healthz", "/admin/stats"] {
        let answer = metrics_router(&home.state).oneshot(request(path)).await.expect("an answer");
        assert_eq!(answer.status(), 404, "{path}");
    }
    let answer = home.router().oneshot(request("/metrics")).await.expect("an answer");
    assert_eq!(answer.status(), 401);
}
