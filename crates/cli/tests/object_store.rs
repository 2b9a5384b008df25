//! Files in an S3-compatible store, with a real one over HTTP.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use common::browsing::get_with;
use common::prepared::S3Server;
use common::served::Served;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

const BUCKET: &str = "attic";
/// More than one part of what is sent to a store.
const LARGE: usize = (8 << 20) + 100_000;

/// Where objects are, as variables of the node.
fn variables(server: &S3Server) -> Vec<(&'static str, String)> {
    vec![
        ("ANTEROOM_OBJECT_STORE", format!("{}/{BUCKET}/a/prefix", server.url)),
        ("AWS_ACCESS_KEY_ID", "id".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
    ]
}

fn serve(home: Home, variables: &[(&'static str, String)]) -> Served {
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Served::start_with(home, &[], &variables)
}

fn bytes(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at * 31 / 7) as u8 ^ seed).collect()
}

fn upload(node: &Served, key: &str, bytes: &[u8]) -> (u16, Value) {
    let address = node.url.trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).unwrap();
    let head = format!(
        "POST /v1/files?name=x HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {key}\r\nX-User-ID: alice\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n",
        bytes.len()
    );
    stream.write_all(&[head.as_bytes(), bytes].concat()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let status = String::from_utf8_lossy(&answer[9..12]).parse().unwrap();
    (status, serde_json::from_slice(&answer[end + 4..]).unwrap_or_default())
}

fn download(node: &Served, key: &str, file: &Value, range: &str) -> (u16, Vec<u8>) {
    let url = format!("{}/v1/files/{}/content", node.url, file["id"].as_str().expect("an id"));
    let got = get_with(&url, &format!("X-API-Key: {key}\r\nX-User-ID: alice\r\n{range}"));
    (got.status, got.body)
}

/// Runs a command with these variables.
fn run(home: &Home, words: &[&str], variables: &[(&'static str, String)]) -> (bool, String) {
    let variables = variables.iter().map(|(name, value)| (*name, value.as_str()));
    let ran = home.command(words).envs(variables).output().unwrap();
    let said = [ran.stdout, ran.stderr].concat();
    (ran.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn files_are_kept_in_a_bucket_and_come_back() {
    let server = S3Server::start(BUCKET);
    let variables = variables(&server);
    let node = serve(Home::new(), &variables);
    let key = node.key("backend");
    let (short, long) = (bytes(100_000, 1), bytes(LARGE, 2));
    let mut files = Vec::new();
    for content in [&short, &long] {
        let (status, file) = upload(&node, &key, content);
        assert_eq!(status, 201, "{file}");
        assert_eq!(download(&node, &key, &file, ""), (200, content.clone()));
        files.push(file);
    }
    let part = download(&node, &key, &files[1], "Range: bytes=8388600-8388620\r\n");
    assert_eq!(part, (206, long[8_388_600..=8_388_620].to_vec()));
    assert_eq!(server.count(BUCKET), 2);
    let home = node.kill();
    assert_eq!(std::fs::read_dir(home.data().join("objects")).unwrap().count(), 0, "nothing is left in the folder");
    // Whatever reads the store finds them there.
    let (is_good, said) = run(&home, &["verify"], &variables);
    assert!(is_good, "{said}");
    let (is_good, said) = run(&home, &["backup", "whole.backup"], &variables);
    assert!(is_good && said.contains("2 objects"), "{said}");
    let node = serve(home, &variables);
    assert_eq!(download(&node, &key, &files[0], ""), (200, short.clone()));
    // What is purged goes from the bucket.
    let path = format!("/v1/files/{}?purge=true", files[1]["id"].as_str().unwrap());
    assert_eq!(node.send(&key, "DELETE", &path, None).0, 204);
    let home = node.kill();
    let (is_good, said) = run(&home, &["--set", "store.unreferenced_content_hours=0", "collect"], &variables);
    assert!(is_good, "{said}");
    assert_eq!(server.count(BUCKET), 1);
    // A backup holds the bytes, wherever they were: it is restored without the bucket.
    let restored = Home::new();
    let (backup, key_file) = (home.path().join("whole.backup"), home.data().join("master.key"));
    let words = ["--master-key", key_file.to_str().unwrap(), "restore", backup.to_str().unwrap()];
    restored.run(&words).good();
    std::fs::copy(&key_file, restored.data().join("master.key")).unwrap();
    let node = serve(restored, &[]);
    let key = node.key("backend");
    assert_eq!(download(&node, &key, &files[1], ""), (200, long));
}

#[test]
fn a_bucket_that_is_away_is_the_trouble_of_its_files_alone() {
    let server = S3Server::start(BUCKET);
    let variables = variables(&server);
    let node = serve(Home::new(), &variables);
    let key = node.key("backend");
    let (status, file) = upload(&node, &key, &bytes(100_000, 1));
    assert_eq!(status, 201);
    let home = node.kill();
    drop(server);
    let node = serve(home, &variables);
    let (status, refused) = upload(&node, &key, &bytes(100_000, 2));
    assert_eq!(status, 503, "{refused}");
    assert_ne!(download(&node, &key, &file, "").0, 200);
    // Everything else goes on.
    let (status, small) = upload(&node, &key, b"small");
    assert_eq!(status, 201, "{small}");
    assert_eq!(download(&node, &key, &small, ""), (200, b"small".to_vec()));
    let (_, failed) = node.send(&key, "GET", "/v1/files?status=failed", None);
    assert_eq!(failed["files"].as_array().map(Vec::len), Some(1), "{failed}");
}

#[test]
fn an_operator_hears_whether_a_store_does_what_is_needed() {
    let server = S3Server::start(BUCKET);
    let home = Home::ready();
    let (is_good, said) = run(&home, &["objects", "check"], &variables(&server));
    assert!(is_good && said.contains("one that is there is not overwritten"), "{said}");
    assert_eq!(server.count(BUCKET), 0, "nothing is left behind");
    let (is_good, said) = run(&home, &["objects", "check"], &[]);
    assert!(is_good && said.contains("kept in: folder"), "{said}");
    let mut other = variables(&server);
    other[0].1 = other[0].1.replace(BUCKET, "cellar");
    let (is_good, said) = run(&home, &["objects", "check"], &other);
    assert!(!is_good && said.contains("FAILED"), "{said}");
    let (is_good, said) = run(&home, &["objects", "check"], &other[..1]);
    assert!(!is_good && said.contains("object_store_key_file"), "{said}");
}
