//! Changes of storage keys and master keys: everything stays readable and unchanged.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use common::sample_events::everything;

#[test]
fn imported_content_is_already_encrypted() {
    let home = Home::with(&everything().2);
    let digest = home.digest();
    let report = home.json(&["encrypt"]);
    assert!(report["rows"].as_u64().unwrap() > 0);
    assert_eq!(report["written"], 0);
    assert_eq!(home.digest(), digest);
}

#[test]
fn a_rotated_space_shows_the_same() {
    let (_, events, bytes) = everything();
    let home = Home::with(&bytes);
    let digest = home.digest();
    let space = events[0].space.to_string();
    for _ in 0..2 {
        assert!(home.json(&["rotate", &space])["written"].as_u64().unwrap() > 0);
        assert_eq!(home.digest(), digest);
        home.run(&["verify"]).good();
    }
    home.run(&["rotate", "nowhere"]).bad(&["no space", "status"]);
}

#[test]
fn a_rewrapped_folder_needs_the_new_master_key() {
    let home = Home::with(&everything().2);
    let digest = home.digest();
    let done = home.json(&["rewrap", "--new-key", "new.key"]);
    assert_eq!(done["recovery_text"].as_str().unwrap().len(), 79);
    home.run(&["verify"]).bad(&["does not open", "--master-key"]);
    let status = home.json(&["--master-key", "new.key", "status", "--digest"]);
    assert_eq!(status["digest"], digest);
    home.run(&["--master-key", "new.key", "verify"]).good();
    // A second run changes nothing.
    assert_eq!(home.json(&["rewrap", "--new-key", "new.key"])["written"], 0);
    home.run(&["--master-key", "new.key", "backup", "whole.backup"]).good();
    home.run(&["--data-dir", "other", "--master-key", "new.key", "restore", "whole.backup"]).good();
}

#[test]
fn a_rewrap_that_was_begun_is_completed_while_the_node_serves() {
    let home = Home::with(&everything().2);
    home.run(&["rewrap", "--new-key", "new.key", "--begin"]).good();
    home.run(&["verify"]).bad(&["does not open", "--master-key"]);
    loop {
        let jobs = home.json(&["--master-key", "new.key", "admin", "jobs"]);
        assert_eq!(jobs["jobs"][0]["work"], "rewrap", "{jobs}");
        if jobs["jobs"][0]["ended_at"].is_string() {
            break;
        }
    }
    assert_eq!(home.json(&["rewrap", "--new-key", "new.key"])["written"], 0, "nothing is left to do");
    home.run(&["--master-key", "new.key", "verify"]).good();
}
