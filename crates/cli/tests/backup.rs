//! Backups: a restored folder equals the original, and a failed restore changes nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use common::sample_events::everything;

const KEY: &str = "anteroom-data/master.key";

fn backed_up() -> Home {
    let home = Home::with(&everything().2);
    home.run(&["backup", "whole.backup"]).good();
    home
}

/// Expects a restore to fail with these texts and to leave nothing behind.
fn check_refused(home: &Home, file: &str, key: &str, says: &[&str]) {
    let before = home.names();
    home.run(&["--data-dir", "new", "--master-key", key, "restore", file]).bad(says);
    assert_eq!(home.names(), before, "{says:?}");
}

#[test]
fn a_restored_folder_shows_the_same_under_a_new_epoch() {
    let home = backed_up();
    let digest = home.digest();
    let restored =
        home.json(&["--data-dir", "new", "--master-key", "anteroom-data/master.key", "restore", "whole.backup"]);
    assert_eq!(restored["digest"], digest);
    let old = home.json(&["status"])["position"].as_str().unwrap().to_owned();
    let epoch = format!("{}-", restored["epoch"]);
    assert!(!old.starts_with(&epoch), "{old} {epoch}");
    assert_eq!(restored["objects"], 1);
    let new = ["--data-dir", "new", "--master-key", "anteroom-data/master.key"];
    let status = home.json(&[new.as_slice(), &["status", "--digest"]].concat());
    assert_eq!(status["digest"], digest);
    assert!(status["position"].as_str().unwrap().starts_with(&epoch), "{} {epoch}", status["position"]);
    home.run(&[new.as_slice(), &["verify"]].concat()).good();
    // The restored folder can be used like the old one.
    home.run(&[new.as_slice(), &["backup", "second.backup"]].concat()).good();
}

#[test]
fn a_folder_is_restored_with_the_recovery_text_alone() {
    let home = Home::new();
    let made = home.json(&["init"]);
    home.import(&everything().2).good();
    let digest = home.digest();
    home.run(&["backup", "whole.backup"]).good();
    std::fs::remove_dir_all(home.data()).unwrap();
    home.run(&["restore", "whole.backup"]).bad(&["restoring needs the master key", "--recover"]);
    let text = made["recovery_text"].as_str().unwrap();
    home.run(&["restore", "whole.backup", "--recover", text]).good();
    assert_eq!(home.digest(), digest);
}

#[test]
fn a_restore_needs_an_empty_folder_or_none() {
    let home = backed_up();
    let key = ["--master-key", "anteroom-data/master.key"];
    std::fs::create_dir(home.path().join("empty")).unwrap();
    home.run(&[&key, ["--data-dir", "empty"].as_slice(), &["restore", "whole.backup"]].concat()).good();
    std::fs::create_dir(home.path().join("full")).unwrap();
    home.write("full/mine", b"precious");
    home.run(&[&key, ["--data-dir", "full"].as_slice(), &["restore", "whole.backup"]].concat())
        .bad(&["full is not empty: it holds mine", "another --data-dir"]);
    assert_eq!(home.read("full/mine"), b"precious");
    home.run(&["restore", "whole.backup"]).bad(&["is not empty"]);
}

#[test]
fn truncated_changed_newer_and_foreign_files_are_named_and_change_nothing() {
    let home = backed_up();
    let whole = home.read("whole.backup");
    home.write("cut.backup", &whole[..whole.len() - 1]);
    check_refused(&home, "cut.backup", KEY, &["the backup was cut off", "copy the whole file again"]);
    home.write("short.backup", &whole[..40]);
    check_refused(&home, "short.backup", KEY, &["the backup was cut off"]);
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    home.write("flipped.backup", &flipped);
    check_refused(&home, "flipped.backup", KEY, &["the backup is damaged"]);
    let mut newer = whole.clone();
    newer[15] = 4;
    home.write("newer.backup", &newer);
    check_refused(&home, "newer.backup", KEY, &["the backup has version 4", "newer one"]);
    let mut later_format = whole.clone();
    later_format[23] = 99;
    home.write("format.backup", &later_format);
    check_refused(&home, "format.backup", KEY, &["a data folder of format 99"]);
    home.write("other.backup", b"something else entirely");
    check_refused(&home, "other.backup", KEY, &["this is not an anteroom backup"]);
    check_refused(&home, ".", KEY, &["not a regular file"]);
    check_refused(&home, "nowhere", KEY, &["cannot read the backup nowhere"]);
    home.write("wrong.key", "42".repeat(32).as_bytes());
    check_refused(&home, "whole.backup", "wrong.key", &["another master key", "--recover"]);
}

#[test]
fn a_backup_never_replaces_a_file_and_never_leaves_a_partial_one() {
    let home = backed_up();
    home.run(&["backup", "whole.backup"]).bad(&["whole.backup is there already"]);
    home.run(&["backup", "no/such/folder"]).bad(&["cannot write the backup"]);
    let before = home.names();
    home.run(&["backup", "master.key/second.backup"]).bad(&["cannot write the backup"]);
    assert_eq!(home.names(), before);
}

#[test]
fn the_master_key_is_not_in_the_backup() {
    let home = backed_up();
    let key = String::from_utf8(std::fs::read(home.data().join("master.key")).unwrap()).unwrap();
    let raw: Vec<u8> = (0..32).map(|at| u8::from_str_radix(&key[2 * at..2 * at + 2], 16).unwrap()).collect();
    let whole = home.read("whole.backup");
    let contains = |needle: &[u8]| whole.windows(needle.len()).any(|window| window == needle);
    assert!(!contains(&raw) && !contains(key.trim().as_bytes()));
}
