//! Files as an application uses them: uploaded, described, listed, changed, downloaded, deleted.

mod several_goes;

use super::Home;
use axum::body::Body;
use axum::extract::ConnectInfo;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, Request};
use serde_json::{Value, json};
use server::ServerOptions;
use std::net::SocketAddr;
use tower::ServiceExt as _;

/// More than one chunk, so that it goes into an object.
const LARGE: usize = 200_000;

struct Sent {
    status: u16,
    headers: HeaderMap,
    bytes: Vec<u8>,
}

impl Sent {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|_| panic!("{:?}", String::from_utf8_lossy(&self.bytes)))
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

async fn send(home: &Home, user: &str, method: &str, path: &str, headers: &[(&str, &str)], body: Body) -> Sent {
    let headers = [&[("x-api-key", home.backend.as_str()), ("x-user-id", user)], headers].concat();
    send_with(home, method, path, &headers, body).await
}

async fn send_with(home: &Home, method: &str, path: &str, headers: &[(&str, &str)], body: Body) -> Sent {
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request = request.body(body).expect("a request");
    request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([192, 0, 2, 7], 4711))));
    let response = home.router().oneshot(request).await.expect("an answer");
    let (parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, 1 << 24).await.expect("a body").to_vec();
    Sent { status: parts.status.as_u16(), headers: parts.headers, bytes }
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 / 7) as u8).collect()
}

async fn upload(home: &Home, user: &str, name: &str, content: &[u8]) -> Value {
    let path = format!("/v1/files?name={name}");
    let sent = send(home, user, "POST", &path, &[], Body::from(content.to_vec())).await;
    assert_eq!(sent.status, 201, "{}", String::from_utf8_lossy(&sent.bytes));
    assert_eq!(sent.header("location"), format!("/v1/files/{}", sent.json()["id"].as_str().expect("an id")));
    sent.json()
}

async fn download(home: &Home, user: &str, file: &Value, more: &str, headers: &[(&str, &str)]) -> Sent {
    let path = format!("/v1/files/{}/content{more}", file["id"].as_str().expect("an id"));
    send(home, user, "GET", &path, headers, Body::empty()).await
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_uploaded_comes_back_whatever_its_size() {
    let home = Home::new();
    for len in [0, 1, 1000, 65_536, 65_537, LARGE] {
        let content = bytes(len);
        let file = upload(&home, "alice", "notes.bin", &content).await;
        assert_eq!((&file["size"], &file["status"], &file["ready"]), (&json!(len), &json!("uploaded"), &json!(true)));
        assert_eq!((text(&file["owner"]), text(&file["name"])), ("alice", "notes.bin"));
        let got = download(&home, "bob", &file, "", &[]).await;
        assert_eq!((got.status, got.bytes), (200, content), "{len} bytes");
    }
    let report = home.state.node.store().verify(home.state.node.now()).expect("verified");
    assert_eq!(report.problems, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_is_safe_to_show_and_can_be_asked_for_by_parts() {
    let home = Home::new();
    let content = bytes(LARGE);
    let file = upload(&home, "alice", "page.html", &content).await;
    let whole = download(&home, "bob", &file, "", &[]).await;
    assert_eq!(whole.header("content-length"), LARGE.to_string());
    assert_eq!(whole.header("content-disposition"), "attachment; filename*=UTF-8''page.html");
    assert_eq!(whole.header("x-content-type-options"), "nosniff");
    assert!(whole.header("content-security-policy").contains("sandbox"));
    let tag = whole.header("etag").to_owned();
    let part = download(&home, "bob", &file, "", &[("range", "bytes=65530-65545")]).await;
    assert_eq!((part.status, part.header("content-range")), (206, "bytes 65530-65545/200000"));
    assert_eq!(part.bytes, content[65_530..65_546]);
    let beyond = download(&home, "bob", &file, "", &[("range", "bytes=200000-")]).await;
    assert_eq!((beyond.status, beyond.header("content-range")), (416, "bytes */200000"));
    let known = download(&home, "bob", &file, "", &[("if-none-match", &tag)]).await;
    assert_eq!((known.status, known.bytes.len()), (304, 0));
    let packed = download(&home, "bob", &file, "", &[("accept-encoding", "gzip")]).await;
    assert_eq!((packed.header("content-encoding"), packed.bytes.len()), ("", LARGE));
    assert_eq!(download(&home, "bob", &file, "?variant=thumbnail_256", &[]).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_can_carry_the_file() {
    let home = Home::new();
    let form = "--x\r\ncontent-disposition: form-data; name=\"note\"\r\n\r\nhi\r\n--x\r\ncontent-disposition: form-data; \
                name=\"file\"; filename=\"C:\\\\a\\\\cat.txt\"\r\ncontent-type: text/plain\r\n\r\nmeow\r\n--x--\r\n";
    let kind = [("content-type", "multipart/form-data; boundary=x")];
    let sent = send(&home, "alice", "POST", "/v1/files", &kind, Body::from(form)).await;
    let file = sent.json();
    assert_eq!((sent.status, text(&file["name"]), text(&file["media_type"])), (201, "cat.txt", "text/plain"));
    assert_eq!(download(&home, "alice", &file, "", &[]).await.bytes, b"meow");
    let large = form.replace("meow", &"meow".repeat(LARGE));
    let sent = send(&home, "alice", "POST", "/v1/files?name=cats.txt", &kind, Body::from(large)).await;
    let file = sent.json();
    assert_eq!((&file["size"], text(&file["name"])), (&json!(4 * LARGE), "cats.txt"));
    let empty = send(&home, "alice", "POST", "/v1/files", &kind, Body::from("--x--\r\n")).await;
    assert_eq!(empty.status, 422, "{}", String::from_utf8_lossy(&empty.bytes));
    let cut = send(&home, "alice", "POST", "/v1/files", &kind, Body::from(&form[..form.len() - 12])).await;
    assert_eq!(cut.status, 408, "{}", String::from_utf8_lossy(&cut.bytes));
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_not_those_declared_are_refused_and_leave_a_row_that_says_so() {
    let home = Home::new();
    let declared = |content: &[u8]| {
        let hash = ring_sha256(content);
        format!("sha-256=:{}:", BASE64_STANDARD.encode(hash))
    };
    for len in [10, LARGE] {
        let (right, wrong) = (declared(&bytes(len)), declared(b"other"));
        let ok =
            send(&home, "alice", "POST", "/v1/files?name=a", &[("content-digest", &right)], bytes(len).into()).await;
        assert_eq!(ok.status, 201);
        let bad =
            send(&home, "alice", "POST", "/v1/files?name=a", &[("content-digest", &wrong)], bytes(len).into()).await;
        assert_eq!(bad.status, 422, "{}", String::from_utf8_lossy(&bad.bytes));
    }
    let failed = home.by("alice", "GET", "/v1/files?status=failed", None).await.body;
    let failed = failed["files"].as_array().expect("files");
    assert_eq!(failed.len(), 1, "what was small was never begun");
    assert!(text(&failed[0]["error"]).contains("SHA-256"), "{failed:?}");
    assert_eq!(download(&home, "alice", &failed[0], "", &[]).await.status, 409);
}

fn ring_sha256(content: &[u8]) -> Vec<u8> {
    use sha2::Digest as _;
    sha2::Sha256::digest(content).to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_breaks_off_leaves_no_bytes() {
    let home = Home::new();
    let pieces = [Ok(bytes(LARGE)), Err(std::io::Error::other("the line went dead"))];
    let body = Body::from_stream(futures_util::stream::iter(pieces));
    let sent = send(&home, "alice", "POST", "/v1/files?name=movie.mkv", &[], body).await;
    assert_eq!(sent.status, 408);
    let files = home.by("alice", "GET", "/v1/files", None).await.body;
    assert_eq!((text(&files["files"][0]["status"]), text(&files["files"][0]["name"])), ("failed", "movie.mkv"));
    let node = &home.state.node;
    node.ask(node::node_commands::Tick).expect("ticked");
    let db = node.snapshot().expect("a snapshot");
    assert!(db.unfinished_objects(9).expect("read").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_renamed_put_away_hidden_and_purged() {
    let home = Home::new();
    let file = upload(&home, "alice", "cat.bin", &bytes(LARGE)).await;
    let path = format!("/v1/files/{}", text(&file["id"]));
    let change = json!({ "name": "kitten.bin", "metadata": { "album": "cats" } });
    assert_eq!(home.by("bob", "PUT", &path, Some(change.clone())).await.status, 403);
    let changed = home.by("alice", "PUT", &path, Some(change)).await.body;
    assert_eq!((text(&changed["name"]), &changed["metadata"]["album"]), ("kitten.bin", &json!("cats")));
    for (archived, status) in [(true, "archived"), (false, "uploaded")] {
        let body = json!({ "archived": archived });
        assert_eq!(text(&home.by("alice", "PUT", &path, Some(body)).await.body["status"]), status);
    }
    for bad in [json!({ "name": "" }), json!({ "name": "a/b" }), json!({ "name": "x".repeat(256) })] {
        assert_eq!(home.by("alice", "PUT", &path, Some(bad.clone())).await.status, 422, "{bad}");
    }
    assert_eq!(home.by("alice", "DELETE", &path, None).await.status, 204);
    assert_eq!(home.by("bob", "GET", &path, None).await.status, 404);
    assert_ne!(home.by("alice", "GET", &path, None).await.body["deleted_at"], Value::Null);
    let listed = |query: &'static str| {
        let home = &home;
        async move {
            home.by("alice", "GET", &format!("/v1/files{query}"), None).await.body["files"]
                .as_array()
                .map_or(9, Vec::len)
        }
    };
    assert_eq!((listed("").await, listed("?include_deleted=true").await), (0, 1));
    assert_eq!(home.by("alice", "DELETE", &format!("{path}?restore=true"), None).await.status, 204);
    assert_eq!(listed("").await, 1);
    assert_eq!(home.by("alice", "DELETE", &format!("{path}?purge=true"), None).await.status, 204);
    let gone = download(&home, "alice", &file, "", &[]).await;
    assert_eq!((gone.status, gone.json()["detail"].to_string().contains("purged")), (404, true));
    let left = home.by("alice", "GET", &path, None).await.body;
    assert_eq!(
        (text(&left["name"]), &left["metadata"]),
        ("purged", &json!({})),
        "nothing is left of what was said of it"
    );
    assert_eq!(home.by("alice", "PUT", &path, Some(json!({ "name": "again.bin" }))).await.status, 409);
    let node = &home.state.node;
    let (space, db) = (home.space, node.snapshot().expect("a snapshot"));
    let id = model::FileId::from_name(text(&file["id"])).expect("an id");
    assert_eq!(db.file_versions(&space, id).expect("read")[0].1.content, None);
    let report = node.store().verify(node.now()).expect("verified");
    assert_eq!(report.problems, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_show_people_their_own_files_page_by_page() {
    let home = Home::new();
    for number in 0..5 {
        upload(&home, "alice", &format!("a{number}"), b"x").await;
        home.clock.advance(1);
        upload(&home, "bob", &format!("b{number}"), b"x").await;
        home.clock.advance(1);
    }
    let (mut names, mut query) = (Vec::new(), "?limit=2".to_owned());
    loop {
        let page = home.by("alice", "GET", &format!("/v1/files{query}"), None).await.body;
        names.extend(page["files"].as_array().expect("files").iter().map(|file| text(&file["name"]).to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        query = format!("?limit=2&cursor={next}");
    }
    assert_eq!(names, ["a4", "a3", "a2", "a1", "a0"]);
    let all = home.send("GET", "/v1/files", &[("x-api-key", &home.backend)], None).await.body;
    assert_eq!(all["files"].as_array().expect("files").len(), 10);
    for bad in ["?status=active", "?cursor=x", "?limit=0", "?colour=red"] {
        let answer = home.by("alice", "GET", &format!("/v1/files{bad}"), None).await;
        assert_eq!(answer.status, 400, "{bad}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_carries_files_by_their_ids() {
    let home = Home::new();
    let file = upload(&home, "alice", "cat.bin", b"meow").await;
    let body = json!({ "body": "look", "attachments": [file["id"]] });
    let message = home.by("alice", "POST", "/v1/threads/t/messages", Some(body)).await;
    assert_eq!(message.body["attachments"], json!([file["id"]]), "{message:?}");
    let by_event = json!({ "body": "again", "attachments": [file["event"]] });
    let again = home.by("alice", "POST", "/v1/threads/t/messages", Some(by_event)).await;
    assert_eq!(again.body["attachments"], json!([file["id"]]));
    let body = json!({ "body": "x", "attachments": [format!("file-{}", "ab".repeat(16))] });
    assert_eq!(home.by("alice", "POST", "/v1/threads/t/messages", Some(body)).await.status, 404);
    let other = home.by("bob", "GET", &format!("/v1/files/{}", text(&file["event"])), None).await.body;
    assert_eq!(other["id"], file["id"], "its event names it as well");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_refused_before_or_while_it_comes() {
    let mut options: ServerOptions = server::test_support::TestServer::generous_options();
    options.limits.file_bytes_max = 100_000;
    let home = Home::with(options);
    let size = [("content-length", "100001")];
    let said = send(&home, "alice", "POST", "/v1/files?name=a", &size, Body::from(bytes(100_001))).await;
    assert_eq!(said.status, 413);
    let pieces = (0..20).map(|_| Ok::<_, std::io::Error>(bytes(10_000)));
    let body = Body::from_stream(futures_util::stream::iter(pieces));
    let unsaid = send(&home, "alice", "POST", "/v1/files?name=a", &[], body).await;
    assert_eq!(unsaid.status, 413, "{}", String::from_utf8_lossy(&unsaid.bytes));
    let small = send(&home, "alice", "POST", "/v1/files?name=a", &[], Body::from(bytes(100_000))).await;
    assert_eq!(small.status, 201);
    assert_eq!(send(&home, "alice", "POST", "/v1/files", &[], Body::from("x")).await.json()["name"], "file");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_upload_with_the_same_key_makes_one_file() {
    let home = Home::new();
    let key = [("idempotency-key", "once")];
    let first = send(&home, "alice", "POST", "/v1/files?name=a", &key, Body::from("x")).await;
    let again = send(&home, "alice", "POST", "/v1/files?name=a", &key, Body::from("x")).await;
    assert_eq!((first.status, again.json()["id"].clone()), (201, first.json()["id"].clone()));
    let other = send(&home, "alice", "POST", "/v1/files?name=a", &key, Body::from("y")).await;
    assert_eq!(other.status, 409);
    let files = home.by("alice", "GET", "/v1/files", None).await.body;
    assert_eq!(files["files"].as_array().expect("files").len(), 1);
}
