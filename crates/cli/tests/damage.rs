//! Damage on disk: named, left out of backups, restored without, and salvaged around.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use common::sample_events::{Made, World, bundle, everything};
use common::served::Served;
use std::path::PathBuf;

/// Flips a bit in the row of an event, wherever the database has it.
fn damage_row(home: &Home, event: &Made) {
    let file = home.data().join("anteroom.redb");
    let mut bytes = std::fs::read(&file).unwrap();
    let places: Vec<usize> = bytes
        .windows(event.blob.len())
        .enumerate()
        .filter(|(_, window)| *window == event.blob.as_slice())
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at + event.blob.len() / 2] ^= 4;
    }
    std::fs::write(&file, bytes).unwrap();
}

fn object_of(home: &Home) -> PathBuf {
    let mut files = std::fs::read_dir(home.data().join("objects")).unwrap();
    files.next().unwrap().unwrap().path()
}

/// A folder in which one message of three is damaged.
fn damaged_home() -> (Home, Vec<Made>) {
    let mut world = World::new();
    let thread = world.thread.clone();
    let messages: Vec<Made> = ["one", "two", "three"].iter().map(|text| world.message(&thread, text)).collect();
    let home = Home::with(&bundle(&[world.foundation(), messages.clone()].concat()));
    damage_row(&home, &messages[1]);
    (home, messages)
}

#[test]
fn verify_names_a_damaged_event_and_goes_on_and_the_others_are_read() {
    let (home, messages) = damaged_home();
    let verified = home.run(&["verify"]);
    assert_eq!(verified.code, 1);
    let named = format!("is damaged: it is the event {}", messages[1].id());
    assert!(verified.out.contains(&named) && verified.out.contains("anteroom salvage FOLDER"), "{}", verified.out);
    for message in [&messages[0], &messages[2]] {
        home.run(&["show", &message.id()]).good();
    }
    home.run(&["show", &messages[1].id()]).bad(&["damaged"]);
    // A running node names it too, and serves the others.
    let node = Served::start(home, &[]);
    let verified = node.home.run(&["verify"]);
    assert!(verified.code == 1 && verified.out.contains(&named), "{}", verified.out);
    node.home.run(&["show", &messages[2].id()]).good();
}

#[test]
fn a_backup_of_a_damaged_folder_says_what_is_missing_and_is_restored_when_that_is_accepted() {
    let (home, messages) = damaged_home();
    let backup = home.run(&["backup", "now"]);
    assert_eq!(backup.code, 3, "{}", backup.err);
    assert!(backup.out.contains("1 item could not be read") && backup.out.contains("events_v1"), "{}", backup.out);
    let key = home.data().join("master.key");
    let key = key.to_str().unwrap();
    home.run(&["--data-dir", "new", "--master-key", key, "restore", "now"])
        .bad(&["the backup lacks 1 of what was stored", "--incomplete"]);
    let restored = home.run(&["--data-dir", "new", "--master-key", key, "restore", "--incomplete", "now"]);
    assert_eq!(restored.code, 3, "{}", restored.err);
    home.run(&["--data-dir", "new", "--master-key", key, "verify"]).good();
    home.run(&["--data-dir", "new", "--master-key", key, "show", &messages[2].id()]).good();
    home.run(&["--data-dir", "new", "--master-key", key, "show", &messages[1].id()]).bad(&["there is no event"]);
    assert!(!home.names().iter().any(|name| name.contains("incomplete") || name.contains("salvaging")));
}

#[test]
fn everything_readable_is_salvaged_into_a_new_folder() {
    let (home, messages) = damaged_home();
    let salvaged = home.run(&["--json", "salvage", "new"]);
    assert_eq!(salvaged.code, 3, "{}", salvaged.err);
    let document: serde_json::Value = serde_json::from_str(&salvaged.out).unwrap();
    assert_eq!(document["damaged"].as_array().unwrap().len(), 1, "{document}");
    home.run(&["--data-dir", "new", "verify"]).good();
    for message in [&messages[0], &messages[2]] {
        assert!(home.run(&["--data-dir", "new", "show", &message.id()]).good().out.contains("stage      applied"));
    }
    // What was lost can come again.
    home.write("again", &bundle(&messages[1..2]));
    home.run(&["--data-dir", "new", "import", "again"]).good();
    home.run(&["--data-dir", "new", "show", &messages[1].id()]).good();
    home.run(&["salvage", "new"]).bad(&["is not empty"]);
}

#[test]
fn salvaging_a_sound_folder_loses_nothing() {
    let home = Home::with(&everything().2);
    let node = Served::start(home, &[]);
    let key = node.key("backend");
    let home = node.kill();
    let before = home.digest();
    home.run(&["salvage", "new"]).good();
    let status = |folder: &str| home.json(&["--data-dir", folder, "status", "--digest"]);
    assert_eq!(status("new")["digest"], before.as_str());
    assert_eq!(status("new")["stages"], status("./anteroom-data")["stages"]);
    let keys = home.run(&["--data-dir", "new", "key", "list"]).good().out;
    assert!(keys.contains(key.split('_').nth(1).unwrap_or(&key)) || keys.contains("backend"), "{keys}");
}

#[test]
fn a_damaged_or_missing_object_is_named_and_left_out_of_backups() {
    let home = Home::with(&everything().2);
    let file = object_of(&home);
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let verified = home.run(&["verify"]);
    assert!(verified.code == 1 && verified.out.contains(&name), "{}", verified.out);
    let backup = home.run(&["backup", "damaged"]);
    assert!(backup.code == 3 && backup.out.contains(&format!("the object {name} is damaged")), "{}", backup.out);
    std::fs::remove_file(&file).unwrap();
    let backup = home.run(&["backup", "missing"]);
    assert!(backup.code == 3 && backup.out.contains(&name), "{}", backup.out);
}
