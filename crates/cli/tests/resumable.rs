//! Uploads in several goes with the published tus client, over restarts of the node.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use common::browsing::get_with;
use common::prepared::{S3Server, prepared, run, script};
use common::served::Served;
use std::process::Command;

const SIZE: usize = 1_000_000;

/// Runs the client, and says where the upload is.
fn client(node: &Served, key: &str, file: &str, words: &[&str]) -> String {
    // Its packages are found above it.
    let work = tempfile::tempdir_in(prepared("node")).unwrap();
    let copy = work.path().join("tus_client.mjs");
    std::fs::copy(script("tus_client.mjs"), &copy).unwrap();
    let place = format!("{}/v1/uploads", node.url);
    run(Command::new("node").arg(copy).args([&place, key, file]).args(words)).trim().to_owned()
}

fn play(variables: &[(&str, &str)]) {
    let home = Home::new();
    let content: Vec<u8> = (0..SIZE).map(|at| (at * 31 / 7) as u8).collect();
    let file = home.write("film.bin", &content);
    let file = home.path().join(file).to_string_lossy().into_owned();
    let node = Served::start_with(home, &[], variables);
    let key = node.key("backend");
    let whole = client(&node, &key, &file, &["whole"]);
    let broken = client(&node, &key, &file, &["break"]);
    let name = broken.rsplit_once('/').expect("a URL").1.to_owned();
    let (_, state) = node.send(&key, "GET", &format!("/v1/uploads/{name}"), None);
    assert_eq!((&state["offset"], &state["complete"]), (&300_000.into(), &false.into()), "{state}");
    // Whatever was acknowledged is there after a kill, and the upload goes on from there.
    let home = node.kill();
    let verified = home.command(&["verify"]).envs(variables.iter().copied()).output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    let node = Served::start_with(home, &[], variables);
    let again = format!("{}/v1/uploads/{name}", node.url);
    assert_eq!(client(&node, &key, &file, &["resume", &again]), again);
    for url in [whole, again] {
        let name = url.rsplit_once('/').expect("a URL").1;
        let place = format!("{}/v1/files/{name}/content", node.url);
        let got = get_with(&place, &format!("X-API-Key: {key}\r\nX-User-ID: alice\r\n"));
        assert_eq!((got.status, got.body.len()), (200, SIZE));
        assert!(got.body == content, "the bytes are the same");
    }
    let (_, given_up) = node.send(&key, "GET", "/v1/files?status=failed", None);
    assert_eq!(given_up["files"].as_array().map(Vec::len), Some(0), "{given_up}");
}

#[test]
fn the_published_client_goes_on_after_the_node_was_killed() {
    play(&[]);
}

#[test]
fn an_upload_into_a_bucket_is_staged_and_goes_on_as_well() {
    let server = S3Server::start("attic");
    let place = format!("{}/attic", server.url);
    let variables =
        [("ANTEROOM_OBJECT_STORE", place.as_str()), ("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "secret")];
    play(&variables);
    // The same bytes came twice and are kept once.
    assert_eq!(server.count("attic"), 1);
}
