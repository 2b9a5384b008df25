//! The HTTP API through the real binary: the published Python client of ProgressDB, unmodified, and generated requests
//! that compare the OpenAPI document with what the node accepts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use common::served::Served;
use std::path::{Path, PathBuf};
use std::process::Command;

fn serve() -> Served {
    Served::start(Home::new(), &[])
}

/// The Python that `cargo xtask test` prepares in the target folder.
fn python(program: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_BIN_EXE_anteroom")).ancestors().nth(2).unwrap();
    let path = target.join("python/bin").join(program);
    assert!(path.exists(), "{} is missing; `cargo xtask test` installs it", path.display());
    path
}

#[test]
fn the_published_python_client_works_unmodified() {
    let served = serve();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/progressdb_client.py");
    let ran = Command::new(python("python")).arg(script).args([&served.url, &served.key("backend")]).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && out.ends_with("all good\n"), "{out}{err}");
}

#[test]
fn the_openapi_document_and_the_node_agree() {
    // It also sends wrong keys from one address, which is rate limited.
    let served = Served::start(Home::new(), &["--set", "http.address_requests_per_second=1000000"]);
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis.toml");
    let ran = Command::new(python("schemathesis"))
        .current_dir(served.home.path())
        .arg("--config-file")
        .arg(config)
        .args(["run", &format!("{}/v1/openapi.json", served.url)])
        .args(["--header", &format!("X-API-Key: {}", served.key("admin")), "--header", "X-User-ID: alice"])
        .args(["--max-examples", "10", "--seed", "1"])
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{out}");
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
