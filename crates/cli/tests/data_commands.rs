//! The commands on a data folder: init, import, export, held, explain, show, retry, prune, collect, verify, admin.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use common::sample_events::{World, bundle, everything, sealed};
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn init_creates_a_key_that_only_its_owner_can_read_and_prints_its_recovery_text() {
    let home = Home::new();
    let ran = home.run(&["init"]).good();
    let groups: Vec<&str> = ran
        .out
        .split_whitespace()
        .filter(|word| word.len() == 4 && word.chars().all(|c| c.is_ascii_hexdigit()))
        .collect();
    assert_eq!(groups.len(), 16, "{}", ran.out);
    let key = home.data().join("master.key");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    home.run(&["init"]).bad(&["already has a master key", "another --data-dir"]);
    home.run(&["status"]).good();

    // The key is lost, and comes back from the text; another text is refused.
    std::fs::remove_file(&key).unwrap();
    home.run(&["status"]).bad(&["there is no master key at", "--recover"]);
    home.run(&["init"]).bad(&["has a database, but its master key is not at", "init --recover TEXT"]);
    home.run(&["init", "--recover", &"0".repeat(64)]).bad(&["does not match", "no key file was written"]);
    home.run(&["init", "--recover", "hello"]).bad(&["must have 64 hexadecimal digits"]);
    assert!(!key.exists());
    home.feed(&["init", "--recover", "-"], groups.join("\n").as_bytes()).good();
    home.run(&["status"]).good();
}

#[test]
fn an_exported_bundle_shows_the_same_on_another_node() {
    let (_, events, bytes) = everything();
    let home = Home::ready();
    home.write("in.bundle", &bytes);
    let imported = home.json(&["import", "in.bundle"]);
    assert_eq!(imported["records"], events.len() as u64 + 2);
    assert_eq!((&imported["contents"], &imported["waiting"]), (&2.into(), &1.into()));
    let status = home.json(&["status"]);
    let stages = &status["stages"];
    assert_eq!((&stages["applied"], &stages["held"]), (&(events.len() as u64 - 1).into(), &1.into()));
    assert_eq!(status["sizes"]["objects"], 1);

    let exported = home.json(&["export", "--out", "out.bundle"]);
    assert_eq!((&exported["events"], &exported["contents"]), (&(events.len() as u64).into(), &2.into()));
    let other = Home::with(&home.read("out.bundle"));
    assert_eq!(other.digest(), home.digest());
    home.run(&["verify"]).good();
    other.run(&["verify"]).good();
    home.run(&["export", "--out", "out.bundle"]).bad(&["already exists"]);
}

#[test]
fn importing_again_changes_nothing_and_says_so() {
    let (_, events, bytes) = everything();
    let home = Home::with(&bytes);
    let digest = home.digest();
    home.write("in.bundle", &bytes);
    let again = home.json(&["import", "in.bundle"]);
    assert_eq!((&again["known"], &again["contents_known"]), (&(events.len() as u64).into(), &2.into()));
    assert_eq!(again["applied"], 0);
    assert_eq!(home.digest(), digest);
}

#[test]
fn a_truncated_import_is_resumed_with_the_whole_bundle() {
    let (_, _, bytes) = everything();
    let home = Home::ready();
    home.import(&bytes[..bytes.len() / 4]).bad(&[
        "the bundle ends too early at byte",
        "run import again",
        "records read",
    ]);
    let failed = home.feed(&["--json", "import", "-"], &bytes[..bytes.len() / 2]);
    let document: serde_json::Value = serde_json::from_str(&failed.err).unwrap();
    assert!(document["error"].as_str().unwrap().contains("was cut off"), "{document}");
    assert!(document["so_far"]["known"].as_u64() > Some(0), "{document}");
    home.import(&bytes).good();
    assert_eq!(home.digest(), Home::with(&bytes).digest());
}

#[test]
fn damaged_and_foreign_bundles_are_reported() {
    let (_, _, bytes) = everything();
    let home = Home::ready();
    home.import(b"PK\x03\x04 something else").bad(&["this is not an anteroom bundle"]);
    home.import(b"").bad(&["this is not an anteroom bundle"]);
    let mut newer = bytes.clone();
    newer[15] = 9;
    home.import(&newer).bad(&["version 9", "newer release"]);
    let mut flipped = bytes.clone();
    flipped[300] ^= 1;
    home.import(&flipped).bad(&["the checksum of the bundle is wrong", "invalid, dropped", "at byte "]);
    home.run(&["import", "."]).bad(&["cannot read the bundle .", "pass a file, not a folder"]);
    home.run(&["import", "nowhere"]).bad(&["cannot read the bundle nowhere", "check the path"]);
}

#[test]
fn invalid_records_are_dropped_and_invalid_events_refused() {
    let mut world = World::new();
    let invalid = world.invalid();
    let mut writer = node::bundle::BundleWriter::new(Vec::new()).unwrap();
    writer.event(b"", b"").unwrap();
    writer.event(&[0; 300], &[1; 1024]).unwrap();
    writer.event(&[9; 300], b"").unwrap();
    writer.event(&invalid.blob, &invalid.content).unwrap();
    writer.content(&world.space, &invalid.hash(), b"other bytes").unwrap();
    writer.content(&world.space, &model::crypto::content_hash(b"nobody asked"), b"nobody asked").unwrap();
    // What the invalid event refers to is here first: the records of one bundle are checked side by side.
    let home = Home::with(&bundle(&world.foundation()));
    home.write("in.bundle", &writer.finish().unwrap());
    let imported = home.json(&["import", "in.bundle"]);
    assert_eq!((&imported["dropped"]["blob"], &imported["dropped"]["version"]), (&2.into(), &1.into()), "{imported}");
    assert_eq!((&imported["dropped"]["content"], &imported["contents_unwanted"]), (&1.into(), &1.into()));
    assert_eq!(imported["first_dropped"].as_array().unwrap().len(), 4);
    let refused = imported["refused"].as_object().unwrap();
    assert_eq!(refused.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), 1, "{imported}");
    let explained = home.json(&["explain", &invalid.id()]);
    assert_eq!(
        (&explained["stage"], refused.keys().next()),
        (&"refused".into(), explained["why"].as_str().map(String::from).as_ref())
    );
    home.run(&["show", &invalid.id()]).bad(&["was refused and is not stored"]);
    home.run(&["verify"]).good();
}

#[test]
fn an_export_can_be_limited_to_a_space_or_to_later_events() {
    let (mut one, mut two) = (World::new(), World::numbered(2));
    let home = Home::with(&bundle(&one.foundation()));
    let last = home.json(&["export", "--out", "first"])["last"].as_u64().unwrap();
    let message = two.message(&two.thread.clone(), "later");
    home.import(&bundle(&[two.foundation(), vec![message]].concat())).good();
    let later = home.json(&["export", "--out", "later", "--after", &last.to_string()]);
    assert_eq!((&later["events"], &later["last"]), (&4.into(), &(last + 4).into()));
    let space = home.json(&["export", "--out", "one", "--space", &one.space.to_string()]);
    assert_eq!(space["events"], 3);
    home.run(&["export", "--out", "x", "--space", &"0".repeat(32)]).bad(&["has no data of space"]);
    let beyond = home.json(&["export", "--out", "none", "--after", &u64::MAX.to_string()]);
    assert_eq!(beyond["events"], 0);
    drop(one.make_thread("unused"));
}

#[test]
fn a_held_event_is_listed_explained_and_applied_when_its_need_arrives() {
    let mut world = World::new();
    let missing = world.make_thread("missing");
    let early = world.message(&missing, "too early");
    let home = Home::with(&bundle(&[world.foundation(), vec![early.clone()]].concat()));
    let need = format!("event:{}", missing.id);

    let held = home.json(&["held"]);
    assert_eq!(
        (&held["held"], &held["needs"][0]["need"], &held["needs"][0]["waiting"]),
        (&1.into(), &need.clone().into(), &1.into())
    );
    home.run(&["held", "--kind", "content"]).good();
    assert!(home.run(&["held"]).good().out.contains(&need));

    let explained = home.json(&["explain", &early.id()]);
    assert_eq!((&explained["stage"], &explained["needs"][0]["state"]), (&"held".into(), &"absent".into()));
    assert_eq!(explained["needs"][0]["hunted"]["group"], format!("space:{}", world.space));
    let text = home.run(&["explain", &early.id()]).good().out;
    for expected in ["is held", &need, "has not arrived", "hunt in group space:", "it expires"] {
        assert!(text.contains(expected), "{expected:?} is not in {text}");
    }
    let unknown = home.json(&["explain", &missing.id()]);
    assert_eq!((&unknown["stage"], &unknown["waiters"]["first"][0]), (&"unknown".into(), &early.id().into()));

    assert_eq!(home.json(&["retry", &early.id()])["stage"], "held");
    home.run(&["retry", &need]).good();
    home.import(&bundle(std::slice::from_ref(&missing))).good();
    assert_eq!(home.json(&["explain", &early.id()])["stage"], "applied");
    home.run(&["retry", &need]).bad(&["no event waits for"]);
    assert!(home.run(&["held"]).good().out.contains("no event is held"));
}

#[test]
fn an_explanation_follows_chains_of_held_events() {
    let mut world = World::new();
    let thread = world.make_thread("missing");
    let message = world.message(&thread, "waits");
    let mut events = world.foundation();
    // Without its membership the thread waits too, and the message waits for a thread that waits.
    events.remove(1);
    let home = Home::with(&bundle(&[events, vec![thread.clone(), message.clone()]].concat()));
    let explained = home.json(&["explain", &message.id()]);
    let needs = explained["needs"].as_array().unwrap();
    let through = needs.iter().find(|need| need["need"] == format!("event:{}", thread.id)).unwrap();
    assert_eq!(through["state"], "held");
    assert_eq!(through["needs"][0]["need"], format!("event:{}", world.membership.id));
    assert_eq!(through["needs"][0]["state"], "absent");
}

#[test]
fn an_explanation_names_the_events_that_ended_a_membership_or_deleted() {
    let mut world = World::new();
    let thread = world.thread.clone();
    let before = world.message(&thread, "before");
    let delete = world.delete(&before);
    let removal = world.removal();
    let after = world.message(&thread, "after");
    let events = vec![before.clone(), delete.clone(), removal.clone(), after.clone()];
    let home = Home::with(&bundle(&[world.foundation(), events].concat()));
    let fallen = home.json(&["explain", &after.id()]);
    assert_eq!((&fallen["counts"], &fallen["not_counting"]["by"]), (&false.into(), &removal.id().into()));
    let deleted = home.json(&["explain", &before.id()]);
    assert_eq!((&deleted["counts"], &deleted["content"]["deleted_by"]), (&true.into(), &delete.id().into()));
    assert!(home.run(&["explain", &after.id()]).good().out.contains(&format!("ended by event {}", removal.id)));
}

#[test]
fn an_event_is_shown_without_control_characters_and_unknown_ids_are_reported() {
    let mut world = World::new();
    let thread = world.thread.clone();
    let message = world.message(&thread, "hello \u{9b}2J");
    let home = Home::with(&bundle(&[world.foundation(), vec![message.clone()]].concat()));
    let shown = home.json(&["show", &message.id()]);
    assert_eq!((&shown["stage"], &shown["envelope"]["kind"]), (&"applied".into(), &"message".into()));
    assert_eq!(shown["body"]["json"]["text"], "hello \u{9b}2J");
    let text = home.run(&["show", &message.id()]).good().out;
    assert!(text.contains("hello \\u{9b}2J"), "{text}");
    home.run(&["show", &"ab".repeat(16)]).bad(&["there is no event abab", "check the id"]);
    home.run(&["show", "xyz"]).bad(&["32 hexadecimal digits"]);
    home.run(&["prune", &"ab".repeat(16)]).bad(&[]);
}

#[test]
fn pruned_content_is_collected_after_its_retention() {
    let mut world = World::new();
    let large = world.unknown(&[1; 100_000]);
    let home = Home::with(&bundle(&[world.foundation(), vec![large.clone()]].concat()));
    let files = || home.json(&["status"])["sizes"]["objects"].clone();
    assert_eq!(files(), 1);
    assert_eq!(home.json(&["prune", &large.id()])["pruned"][0]["dropped"], true);
    assert_eq!(home.json(&["prune", &large.id()])["pruned"][0]["why_not"], "pruned");
    assert_eq!(home.json(&["collect"])["forgotten"], 0);
    assert_eq!(home.json(&["--set", "store.unreferenced_content_hours=0", "collect"])["forgotten"], 1);
    assert_eq!(files(), 0);
    home.run(&["verify"]).good();
}

#[test]
fn verify_finds_what_is_missing_and_exits_with_1() {
    let (_, _, bytes) = everything();
    let home = Home::with(&bytes);
    let file = std::fs::read_dir(home.data().join("objects")).unwrap().next().unwrap().unwrap();
    std::fs::remove_file(file.path()).unwrap();
    let ran = home.run(&["verify"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("its bytes are missing or changed"), "{}", ran.out);
}

#[test]
fn rebuilt_views_have_the_same_digest() {
    let (_, events, bytes) = everything();
    let home = Home::with(&bytes);
    let before = home.digest();
    let rebuilt = home.json(&["rebuild-views"]);
    assert_eq!((&rebuilt["changed"], &rebuilt["events"]), (&false.into(), &(events.len() as u64 - 1).into()));
    assert_eq!(rebuilt["digest"], before);
    assert_eq!(home.digest(), before);
}

#[test]
fn an_event_that_cannot_be_decrypted_is_carried_and_exported() {
    let event = sealed();
    let home = Home::with(&bundle(std::slice::from_ref(&event)));
    let explained = home.json(&["explain", &event.id()]);
    assert_eq!((&explained["stage"], &explained["space"]), (&"carried".into(), &event.space.to_string().into()));
    assert!(home.run(&["show", &event.id()]).good().out.contains("cannot be decrypted by this node"));
    let space = event.space.to_string();
    assert_eq!(home.json(&["export", "--out", "out.bundle", "--space", &space])["events"], 1);
    let other = Home::with(&home.read("out.bundle"));
    assert_eq!(other.json(&["status"])["stages"]["carried"], 1);
    home.run(&["verify"]).good();
}

#[test]
fn spaces_users_and_retention_are_administered_without_a_running_node() {
    let home = Home::new();
    home.run(&["init"]).good();
    assert_eq!(home.json(&["admin", "spaces"])["spaces"][0]["name"], "home");
    home.run(&["admin", "role", "bob", "member"]).good();
    assert_eq!(home.json(&["admin", "users"])["users"][0]["id"], "bob");
    home.run(&["admin", "retain", "--age", "30", "--count", "100"]).good();
    assert_eq!(home.json(&["admin", "retention"])["rules"][0]["age_seconds"], 2_592_000);
    assert_eq!(home.json(&["admin", "purge-old", "--dry-run"])["going"], 0);
    assert!(home.json(&["admin", "purge-old"])["ended_at"].is_string());
    home.run(&["admin", "erase-user", "bob"]).bad(&["--yes"]);
    assert!(home.json(&["admin", "erase-user", "bob", "--yes"])["ended_at"].is_string());
    home.run(&["admin", "erase-user", "bob", "--yes"]).bad(&["no such user"]);
    home.run(&["admin", "found", "club", "--open"]).good();
    home.run(&["admin", "--space", "club", "protect", "fields", "--field", "body.text"]).good();
    assert!(home.json(&["admin", "--space", "club", "delete-space", "--yes"])["ended_at"].is_string());
    home.run(&["admin", "--space", "club", "stats"]).bad(&["no such space"]);
    assert_eq!(home.json(&["admin", "audit"])["entries"][0]["what"], "delete space");
}

#[test]
fn the_recovery_text_is_shown_again_only_when_that_is_meant() {
    let home = Home::new();
    let made = home.json(&["init"]);
    let text = made["recovery_text"].as_str().unwrap().to_owned();
    let refused = home.run(&["recovery-text"]).bad(&["whoever reads it can decrypt", "recovery-text --yes"]);
    assert!(!refused.out.contains(&text[..9]) && !refused.err.contains(&text[..9]));
    assert_eq!(home.json(&["recovery-text", "--yes"])["recovery_text"], text);
    let shown = home.run(&["recovery-text", "--yes"]).good().out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains(&text), "{shown}");
}

#[test]
fn what_others_put_among_the_objects_is_left_alone() {
    let home = Home::ready();
    let foreign = home.data().join("objects").join("lost+found");
    std::fs::create_dir_all(&foreign).unwrap();
    std::fs::write(home.data().join("objects").join("notes"), b"somebody's").unwrap();
    assert_eq!(home.json(&["collect"])["deleted"], 0);
    assert!(foreign.is_dir() && home.data().join("objects").join("notes").is_file());
    home.run(&["verify"]).good();
}

#[test]
fn an_import_that_gives_up_what_waited_says_so() {
    let home = Home::ready();
    let mut world = World::new();
    let thread = world.thread.clone();
    let messages: Vec<_> = (0..5).map(|number| world.message(&thread, &number.to_string())).collect();
    home.write("events.bundle", &bundle(&messages));
    home.write("small.toml", b"[held]\nper_author_max = 3\n");
    let said = home.run(&["--config", "small.toml", "import", "events.bundle"]).good().out;
    assert!(said.contains("2 events that waited expired meanwhile"), "{said}");
    assert!(said.contains("3 events held now"), "{said}");
    let said = home.run(&["import", "events.bundle"]).good().out;
    assert!(!said.contains("expired meanwhile"), "{said}");
}

#[test]
fn a_first_start_that_was_cut_off_is_completed_and_shows_the_recovery_text() {
    // After the key, and after the database.
    for has_database in [false, true] {
        let home = Home::ready();
        std::fs::write(home.data().join("first-start"), b"").unwrap();
        if !has_database {
            std::fs::remove_file(home.data().join("anteroom.redb")).unwrap();
        }
        let made = home.json(&["init"]);
        assert_eq!(made["recovery_text"], home.json(&["recovery-text", "--yes"])["recovery_text"]);
        home.run(&["verify"]).good();
        home.run(&["init"]).bad(&["already has a master key"]);
    }
    // Whoever lost a database hears so.
    let home = Home::ready();
    std::fs::remove_file(home.data().join("anteroom.redb")).unwrap();
    home.run(&["init"]).bad(&["already has a master key"]);
    home.run(&["verify"]).bad(&[]);
}

#[test]
fn lists_are_shown_to_their_end_or_say_that_there_is_more() {
    let home = Home::ready();
    for number in 0..3 {
        home.run(&["admin", "role", &format!("user{number}"), "member"]).good();
    }
    let shown = home.run(&["admin", "users", "--limit", "2"]).good();
    assert_eq!((shown.out.lines().count(), shown.err.as_str()), (3, "there are more; --limit N shows so many\n"));
    let shown = home.run(&["admin", "users", "--limit", "3"]).good();
    assert_eq!((shown.out.lines().count(), shown.err.as_str()), (4, ""));
    assert!(home.json(&["admin", "users", "--limit", "2"])["next"].is_string());
    home.run(&["admin", "threads", "--limit", "0"]).bad(&["--limit"]);
}
