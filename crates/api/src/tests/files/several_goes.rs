//! Uploads that come in several goes, new versions, and links.

use super::{LARGE, Sent, bytes, download, send, text, upload};
use crate::tests::Home;
use axum::body::Body;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::StreamExt as _;
use serde_json::{Value, json};

const OFFSET_BYTES: (&str, &str) = ("content-type", "application/offset+octet-stream");

async fn begin(home: &Home, user: &str, size: usize) -> Sent {
    let (size, name) = (size.to_string(), format!("filename {}", BASE64_STANDARD.encode("film.bin")));
    let headers = [("tus-resumable", "1.0.0"), ("upload-length", size.as_str()), ("upload-metadata", name.as_str())];
    send(home, user, "POST", "/v1/uploads", &headers, Body::empty()).await
}

async fn append(home: &Home, user: &str, place: &str, offset: usize, body: Body) -> Sent {
    let offset = offset.to_string();
    let headers = [("tus-resumable", "1.0.0"), ("upload-offset", offset.as_str()), OFFSET_BYTES];
    send(home, user, "PATCH", place, &headers, body).await
}

async fn offset(home: &Home, user: &str, place: &str) -> (u16, String) {
    let sent = send(home, user, "HEAD", place, &[("tus-resumable", "1.0.0")], Body::empty()).await;
    (sent.status, sent.header("upload-offset").to_owned())
}

/// A body that breaks off.
fn broken(content: &[u8]) -> Body {
    let pieces: Vec<Result<Vec<u8>, std::io::Error>> =
        vec![Ok(content.to_vec()), Err(std::io::Error::other("the network is gone"))];
    Body::from_stream(futures_util::stream::iter(pieces).boxed())
}

async fn json_of(home: &Home, user: &str, method: &str, path: &str, body: Value) -> Sent {
    send(home, user, method, path, &[("content-type", "application/json")], Body::from(body.to_string())).await
}

fn check(home: &Home) {
    let report = home.state.node.store().verify(home.state.node.now()).expect("verified");
    assert_eq!(report.problems, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_goes_on_where_it_broke_off() {
    let home = Home::new();
    let content = bytes(LARGE);
    let begun = begin(&home, "alice", LARGE).await;
    let place = begun.header("location").to_owned();
    assert_eq!((begun.status, begun.header("upload-offset"), begun.header("tus-version")), (201, "0", "1.0.0"));
    assert!(begun.header("upload-expires").ends_with("GMT"), "{}", begun.header("upload-expires"));
    assert_eq!(begun.json()["complete"], false);
    let first = append(&home, "alice", &place, 0, Body::from(content[..70_000].to_vec())).await;
    assert_eq!((first.status, first.header("upload-offset")), (204, "70000"));
    // What came before the break is durable; the next go begins there.
    let cut = append(&home, "alice", &place, 70_000, broken(&content[70_000..110_000])).await;
    assert_eq!(cut.status, 408, "{}", String::from_utf8_lossy(&cut.bytes));
    assert_eq!(offset(&home, "alice", &place).await, (200, "110000".to_owned()));
    for wrong in [0, 70_000, 110_001, LARGE] {
        let refused = append(&home, "alice", &place, wrong, Body::from("x")).await;
        assert_eq!(refused.status, 409, "{wrong}");
    }
    let file = place.rsplit_once('/').expect("a path").1.to_owned();
    let early = send(&home, "alice", "GET", &format!("/v1/files/{file}/content"), &[], Body::empty()).await;
    assert_eq!(early.status, 409, "there is nothing to download yet");
    let last = append(&home, "alice", &place, 110_000, Body::from(content[110_000..].to_vec())).await;
    assert_eq!((last.status, last.header("upload-offset")), (204, LARGE.to_string().as_str()));
    assert_eq!(offset(&home, "alice", &place).await, (200, LARGE.to_string()), "whoever missed the answer hears of it");
    let again = append(&home, "alice", &place, LARGE, Body::empty()).await;
    assert_eq!(again.status, 204, "nothing more is as good as done");
    let got = download(&home, "bob", &json!({ "id": file }), "", &[]).await;
    assert_eq!((got.status, got.bytes), (200, content));
    assert!(got.headers["content-disposition"].to_str().expect("text").contains("film.bin"));
    check(&home);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_of_somebody_else_does_not_exist_and_more_than_announced_is_refused() {
    let home = Home::new();
    let place = begin(&home, "alice", 100).await.header("location").to_owned();
    assert_eq!(offset(&home, "bob", &place).await.0, 404);
    assert_eq!(append(&home, "bob", &place, 0, Body::from("x")).await.status, 404);
    let more = append(&home, "alice", &place, 0, Body::from(vec![7; 101])).await;
    assert_eq!(more.status, 413, "{}", String::from_utf8_lossy(&more.bytes));
    assert_eq!(offset(&home, "alice", &place).await, (200, "0".to_owned()));
    let ended = send(&home, "alice", "DELETE", &place, &[("tus-resumable", "1.0.0")], Body::empty()).await;
    assert_eq!(ended.status, 204);
    assert_eq!(offset(&home, "alice", &place).await.0, 404);
    let failed = send(&home, "alice", "GET", "/v1/files?status=failed", &[], Body::empty()).await.json();
    assert!(text(&failed["files"][0]["error"]).contains("gave it up"), "{failed}");
    // An upload of nothing is whole at once.
    let empty = begin(&home, "alice", 0).await;
    assert_eq!((empty.status, &empty.json()["complete"]), (201, &json!(true)));
    check(&home);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_not_of_this_protocol_are_refused() {
    let home = Home::new();
    let tus = ("tus-resumable", "1.0.0");
    let post = |headers: Vec<(&'static str, &'static str)>| {
        let home = &home;
        async move { send(home, "alice", "POST", "/v1/uploads", &headers, Body::empty()).await.status }
    };
    assert_eq!(post(vec![("tus-resumable", "2.0.0"), ("upload-length", "5")]).await, 412);
    assert_eq!(post(vec![tus]).await, 400, "a length has to be said");
    assert_eq!(post(vec![tus, ("upload-length", "-1")]).await, 400);
    assert_eq!(post(vec![tus, ("upload-length", "18446744073709551615")]).await, 413);
    assert_eq!(post(vec![tus, ("upload-length", "5"), ("upload-metadata", "filename ???")]).await, 400);
    assert_eq!(post(vec![tus, ("upload-length", "5"), ("upload-metadata", "filename Li4=")]).await, 422, "..");
    let place = begin(&home, "alice", 5).await.header("location").to_owned();
    let no_kind = send(&home, "alice", "PATCH", &place, &[tus, ("upload-offset", "0")], Body::from("hello")).await;
    assert_eq!(no_kind.status, 415);
    let no_offset = send(&home, "alice", "PATCH", &place, &[tus, OFFSET_BYTES], Body::from("hello")).await;
    assert_eq!(no_offset.status, 400);
    assert_eq!(append(&home, "alice", "/v1/uploads/file-00", 0, Body::empty()).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_gets_new_versions_and_keeps_the_older_ones() {
    let home = Home::new();
    let file = upload(&home, "alice", "notes.txt", b"first").await;
    let path = format!("/v1/files/{}", text(&file["id"]));
    for (version, content) in [(2, bytes(LARGE)), (3, b"third".to_vec())] {
        let put = send(&home, "alice", "PUT", &format!("{path}/content"), &[], Body::from(content.clone())).await;
        let shown = put.json();
        assert_eq!((put.status, &shown["version"], &shown["size"]), (200, &json!(version), &json!(content.len())));
        assert_eq!(download(&home, "bob", &file, "", &[]).await.bytes, content);
    }
    let versions = send(&home, "alice", "GET", &format!("{path}/versions"), &[], Body::empty()).await.json();
    let sizes: Vec<_> =
        versions["versions"].as_array().expect("a list").iter().map(|row| row["size"].clone()).collect();
    assert_eq!(sizes, [json!(5), json!(LARGE), json!(5)]);
    let older = download(&home, "bob", &file, "?version=1", &[]).await;
    assert_eq!((older.status, older.bytes.as_slice()), (200, b"first".as_slice()));
    assert_eq!(download(&home, "bob", &file, "?version=4", &[]).await.status, 404);
    let foreign = send(&home, "bob", "PUT", &format!("{path}/content"), &[], Body::from("mine")).await;
    assert_eq!(foreign.status, 403);
    // A version that breaks off changes nothing.
    let cut = send(&home, "alice", "PUT", &format!("{path}/content"), &[], broken(&bytes(LARGE))).await;
    assert_eq!(cut.status, 408);
    assert_eq!(download(&home, "bob", &file, "", &[]).await.bytes, b"third");
    let again = send(&home, "alice", "PUT", &format!("{path}/content"), &[], Body::from(bytes(LARGE))).await;
    assert_eq!((again.status, &again.json()["version"]), (200, &json!(4)));
    check(&home);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_allows_one_thing_until_it_expires_or_is_ended() {
    let home = Home::new();
    let file = upload(&home, "alice", "cat.txt", b"meow").await;
    let links = format!("/v1/files/{}/links", text(&file["id"]));
    let made = json_of(&home, "alice", "POST", &links, json!({ "expires_in": 60 })).await;
    let link = made.json();
    assert_eq!((made.status, text(&link["method"])), (201, "GET"), "{link}");
    let url = text(&link["url"]).to_owned();
    let follow = async |url: &str| send_as_nobody(&home, "GET", url, Body::empty()).await;
    let got = follow(&url).await;
    assert_eq!((got.status, got.bytes.as_slice()), (200, b"meow".as_slice()));
    assert_eq!(got.header("x-content-type-options"), "nosniff");
    // No part of it can be changed.
    let later = url.replace("expires=", "expires=9");
    let other = if url.contains("/v1/links/A") { "/v1/links/B" } else { "/v1/links/A" };
    let other = format!("{other}{}", &url["/v1/links/A".len()..]);
    let unsigned = url.rsplit_once('=').map(|(rest, _)| format!("{rest}={}", "0".repeat(64))).expect("signed");
    for bad in [&later, &other, &unsigned, &format!("{url}&length=4")] {
        assert_eq!(follow(bad).await.status, 404, "{bad}");
    }
    assert_eq!(send_as_nobody(&home, "PUT", &url, Body::from("purr")).await.status, 404, "it is for downloads");
    assert_eq!(json_of(&home, "bob", "POST", &links, json!({})).await.status, 403, "it is not his file");
    let listed = send(&home, "alice", "GET", &links, &[], Body::empty()).await.json();
    assert_eq!((listed["links"].as_array().map(Vec::len), &listed["links"][0]["url"]), (Some(1), &link["url"]));
    assert_eq!(send(&home, "bob", "GET", &links, &[], Body::empty()).await.status, 403);
    // It ends with its time, with a word, and with its file.
    let short = json_of(&home, "alice", "POST", &links, json!({ "expires_in": 1 })).await.json();
    home.clock.advance(1);
    assert_eq!(follow(text(&short["url"])).await.status, 404);
    assert_eq!(follow(&url).await.status, 200);
    let end = format!("{links}/{}", text(&link["id"]));
    assert_eq!(send(&home, "bob", "DELETE", &end, &[], Body::empty()).await.status, 403);
    assert_eq!(send(&home, "alice", "DELETE", &end, &[], Body::empty()).await.status, 204);
    assert_eq!(follow(&url).await.status, 404);
    let another = json_of(&home, "alice", "POST", &links, json!({})).await.json();
    assert_eq!(follow(text(&another["url"])).await.status, 200);
    let hide = format!("/v1/files/{}", text(&file["id"]));
    assert_eq!(send(&home, "alice", "DELETE", &hide, &[], Body::empty()).await.status, 204);
    assert_eq!(follow(text(&another["url"])).await.status, 404);
    check(&home);
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_are_uploaded_by_a_link_that_says_how_many() {
    let home = Home::new();
    let body = json!({ "name": "photo.bin", "size": LARGE, "metadata": { "album": "cats" } });
    let made = json_of(&home, "alice", "POST", "/v1/presigned-uploads", body).await;
    let presigned = made.json();
    assert_eq!((made.status, text(&presigned["file"]["status"])), (201, "created"), "{presigned}");
    assert_eq!(text(&presigned["link"]["method"]), "PUT");
    let url = text(&presigned["link"]["url"]).to_owned();
    for wrong in [LARGE - 1, LARGE + 1] {
        let refused = send_as_nobody(&home, "PUT", &url, Body::from(bytes(wrong))).await;
        assert!([413, 422].contains(&refused.status), "{wrong}: {}", refused.status);
    }
    let put = send_as_nobody(&home, "PUT", &url, Body::from(bytes(LARGE))).await;
    assert_eq!((put.status, text(&put.json()["status"])), (200, "uploaded"), "{}", String::from_utf8_lossy(&put.bytes));
    assert_eq!(put.json().as_object().map(|shown| shown.len()), Some(4), "what else is known of it is not theirs");
    assert_eq!(download(&home, "bob", &presigned["file"], "", &[]).await.bytes, bytes(LARGE));
    let used = send_as_nobody(&home, "PUT", &url, Body::from(bytes(LARGE))).await;
    assert_eq!(used.status, 404, "once");
    check(&home);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_version_is_uploaded_by_a_link_and_not_of_what_was_put_away() {
    let home = Home::new();
    let file = upload(&home, "alice", "cat.txt", b"meow").await;
    let path = format!("/v1/files/{}", text(&file["id"]));
    let links = format!("{path}/upload-links");
    let link = json_of(&home, "alice", "POST", &links, json!({ "size": 4, "expires_in": 60 })).await.json();
    assert_eq!((text(&link["method"]), &link["size"], &link["variant"]), ("PUT", &json!(4), &json!(null)), "{link}");
    let url = text(&link["url"]).to_owned();
    assert_eq!(send_as_nobody(&home, "GET", &url, Body::empty()).await.status, 404, "it is for uploads");
    let put = send_as_nobody(&home, "PUT", &url, Body::from("purr")).await;
    assert_eq!((put.status, &put.json()["version"]), (200, &json!(2)));
    assert_eq!(json_of(&home, "alice", "POST", &links, json!({ "variant": "preview_1024" })).await.status, 422);
    assert_eq!(json_of(&home, "bob", "POST", &links, json!({})).await.status, 403, "it is not his file");
    assert_eq!(json_of(&home, "alice", "PUT", &path, json!({ "archived": true })).await.status, 200);
    assert_eq!(json_of(&home, "alice", "POST", &links, json!({})).await.status, 409);
    check(&home);
}

/// Without any key.
async fn send_as_nobody(home: &Home, method: &str, path: &str, body: Body) -> Sent {
    super::send_with(home, method, path, &[], body).await
}
