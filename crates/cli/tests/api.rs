//! The HTTP API through the real binary: the published Python clients of ProgressDB, unmodified; clients that are generated
//! from the OpenAPI document; and generated requests that compare the document with what the node accepts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use common::prepared::{prepared, python, run, script};
use common::served::Served;
use std::path::{Path, PathBuf};
use std::process::Command;

fn serve() -> Served {
    Served::start(Home::new(), &[])
}

/// The node's OpenAPI document, in a file.
fn openapi_document(served: &Served) -> PathBuf {
    let path = served.home.path().join("openapi.json");
    let (status, document) = served.send("", "GET", "/v1/openapi.json", None);
    assert_eq!(status, 200);
    std::fs::write(&path, document.to_string()).unwrap();
    path
}

#[test]
fn a_python_client_is_generated_from_the_document_and_works() {
    let served = serve();
    let (document, client) = (openapi_document(&served), served.home.path().join("client"));
    run(Command::new(python("openapi-spec-validator")).arg(&document));
    let said = run(Command::new(python("openapi-python-client"))
        .arg("generate")
        .arg("--path")
        .arg(&document)
        .arg("--output-path")
        .arg(&client));
    assert!(!said.contains("parsing"), "the generator leaves out what it does not understand: {said}");
    let told = run(Command::new(python("python"))
        .arg(script("generated_client.py"))
        .arg(&client)
        .args([&served.url, &served.key("admin")]));
    assert_eq!(told, "26 calls\n");
}

#[test]
fn a_typescript_client_is_generated_from_the_document_and_works() {
    let served = serve();
    let (document, modules) = (openapi_document(&served), prepared("node/node_modules"));
    let work = tempfile::tempdir_in(prepared("node")).unwrap();
    run(Command::new(modules.join(".bin/openapi-typescript"))
        .arg(&document)
        .arg("--output")
        .arg(work.path().join("api.d.ts")));
    let story = work.path().join("generated_client.ts");
    std::fs::copy(script("generated_client.ts"), &story).unwrap();
    let options =
        ["--strict", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler", "--skipLibCheck"];
    run(Command::new(modules.join(".bin/tsc")).args(options).args(["--lib", "es2022,dom"]).arg(&story));
    let told = run(Command::new("node").arg(story.with_extension("js")).args([&served.url, &served.key("admin")]));
    assert_eq!(told, "23 calls\n");
}

#[test]
fn the_published_python_client_works_unmodified() {
    let served = serve();
    let client = script("progressdb_client.py");
    let out = run(Command::new(python("python")).arg(client).args([&served.url, &served.key("backend")]));
    assert!(out.ends_with("all good\n"), "{out}");
}

#[test]
fn the_second_published_python_client_works_unmodified() {
    let (served, package) = (serve(), prepared("python/progressdb-0.2.0"));
    let client = script("progressdb_0_2_client.py");
    let mut command = Command::new(python("python"));
    let out = run(command.arg(client).args([&served.url, &served.key("backend")]).arg(package));
    assert!(out.ends_with("all good\n"), "{out}");
}

/// An example of the repository, as its first lines say to run it.
fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

#[test]
fn the_examples_work() {
    let served = serve();
    let (url, key) = (&served.url, served.key("backend"));
    let told = run(Command::new("sh").arg(example("talk.sh")).env("URL", url).env("KEY", &key));
    assert!(told.contains("Who wants some tea?") && told.contains("\"bob\":\"👍\""), "{told}");
    let told = run(Command::new("python3").arg(example("talk.py")).args([url, &key]));
    assert!(told.starts_with("412: ") && told.contains("120 messages"), "{told}");
    let told = run(Command::new("node").arg(example("listen.mjs")).args([url, &key]));
    let heard: Vec<&str> = told.lines().filter_map(|line| line.rsplit(": ").next()).collect();
    assert_eq!(heard, ["one", "two", "three"], "{told}");
}

#[test]
fn the_openapi_document_and_the_node_agree() {
    // It also sends wrong keys from one address, which is rate limited.
    let served = Served::start(Home::new(), &["--set", "http.address_requests_per_second=1000000", "--log", "warn"]);
    run(Command::new(python("schemathesis"))
        .current_dir(served.home.path())
        .arg("--config-file")
        .arg(script("schemathesis.toml"))
        .args(["run", &format!("{}/v1/openapi.json", served.url)])
        .args(["--header", &format!("X-API-Key: {}", served.key("admin")), "--header", "X-User-ID: alice"])
        .args(["--max-examples", "10", "--seed", "1"]));
}

#[test]
fn keys_are_created_listed_and_revoked_with_and_without_a_running_node() {
    let served = serve();
    let made = served.home.json(&["key", "create", "backend", "--label", "app"]);
    let listed = served.home.json(&["key", "list"]);
    assert_eq!(listed["keys"][0]["id"], made["id"]);
    assert_eq!(listed["keys"][0]["label"], "app");
    served.home.run(&["key", "revoke", made["id"].as_str().unwrap()]).good();
    served.home.run(&["key", "revoke", "00"]).bad(&["is not a key id", "anteroom key list"]);
    served.home.run(&["key", "--space", "nowhere", "list"]).bad(&["keeps no such space"]);
    let home = Home::ready();
    let made = home.json(&["key", "create", "frontend"]);
    assert_eq!(home.json(&["key", "list"])["keys"][0]["id"], made["id"]);
    home.run(&["key", "revoke", made["id"].as_str().unwrap()]).good();
    home.run(&["verify"]).good();
}

#[test]
fn a_port_in_use_is_named() {
    let served = serve();
    let other = Home::new();
    let address = served.url.trim_start_matches("http://");
    other.run(&["--listen", address]).bad(&["cannot listen on", "--listen 127.0.0.1:0 takes any free port"]);
    assert!(!other.data().exists(), "no folder and no key were made");
    other.run(&["--listen", "everywhere"]).bad(&["is not a valid listen address", "ADDRESS:PORT"]);
}

/// Every command of administration, in an order in which each has something to do.
const ADMIN_COMMANDS: [&[&str]; 30] = [
    &["stats"],
    &["threads"],
    &["role", "bob", "member"],
    &["role", "eve", "reader"],
    &["users"],
    &["export-user", "bob"],
    &["remove-user", "eve"],
    &["retain", "--age", "30"],
    &["retention"],
    &["purge-old", "--dry-run"],
    &["purge-old"],
    &["lift-retention"],
    &["purge", "00000000000000000000000000000000"],
    &["jobs"],
    &["reports"],
    &["settle", "7"],
    &["signing-keys"],
    &["new-signing-key"],
    &["end-signing-key", "1"],
    &["rotate-key", "0000000000000000"],
    &["erase-user", "bob", "--yes"],
    &["audit"],
    &["found", "club", "--open"],
    &["spaces"],
    &["--space", "club", "protect", "fields", "--field", "body.text"],
    &["--space", "club", "protect", "none"],
    &["--space", "club", "rotate"],
    &["found", "attic"],
    &["--space", "attic", "destroy-keys", "--yes"],
    &["--space", "club", "delete-space", "--yes"],
];

#[test]
fn every_command_of_administration_works_with_and_without_a_node() {
    let (served, alone) = (serve(), Home::ready());
    for home in [&served.home, &alone] {
        for words in ADMIN_COMMANDS {
            let ran = home.run(&[&["admin"], words].concat());
            assert!(!ran.err.contains("internal error"), "{words:?}: {}", ran.err);
            let is_about_nothing = ["settle", "rotate-key"].contains(&words[0]);
            assert_eq!(ran.code, i32::from(is_about_nothing), "{words:?}: {}{}", ran.out, ran.err);
        }
        home.run(&["admin", "audit"]).good();
    }
    alone.run(&["verify"]).good();
}
