//! Commands that read, and import, while the node runs: the node executes them, with the same output.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use common::sample_events::{World, bundle, everything, sealed};
use common::served::Served;
use serde_json::json;
use std::fs::File;

/// A folder whose node has run once, so that starting it changes nothing more.
fn settled_home(bytes: &[u8]) -> Home {
    let home = Home::with(bytes);
    Served::start(home, &[]).kill()
}

#[test]
fn reading_commands_say_the_same_with_and_without_a_running_node() {
    let (_, events, bytes) = everything();
    let home = settled_home(&bytes);
    let (first, last) = (events[0].id(), events.last().unwrap().id());
    let unknown = "0".repeat(32);
    let commands: [&[&str]; 6] = [
        &["explain", &first],
        &["show", &first],
        &["show", &last],
        &["show", &unknown],
        &["--json", "show", &unknown],
        &["held", "--limit", "0"],
    ];
    let run_all = |home: &Home| -> Vec<(i32, String, String)> {
        let json = commands.iter().map(|words| home.run(&[&["--json"], *words].concat()));
        let text = commands[1..].iter().map(|words| home.run(words));
        json.chain(text).map(|ran| (ran.code, ran.out, ran.err)).collect()
    };
    let status = |home: &Home| {
        let mut status = home.json(&["status", "--digest"]);
        // The disk is not ours alone, and the size of the database depends on who has it open.
        status.as_object_mut().unwrap().remove("sizes");
        status
    };
    let (before, status_before) = (run_all(&home), status(&home));
    home.json(&["export", "--out", "before"]);
    let node = Served::start(home, &[]);
    assert_eq!(run_all(&node.home), before);
    assert_eq!(status(&node.home), status_before);
    node.home.json(&["export", "--out", "running"]);
    assert!(node.home.read("running") == node.home.read("before"));
    let to_stdout = node.home.command(&["export"]).output().unwrap();
    assert!(to_stdout.status.success() && to_stdout.stdout == node.home.read("before"));
    assert!(String::from_utf8_lossy(&to_stdout.stderr).contains("last event number"));
    node.home.run(&["export", "--out", "running"]).bad(&["already exists", "choose another name"]);
}

#[test]
fn a_running_node_imports_bundles_from_files_and_pipes() {
    let (mut one, two) = (World::new(), World::numbered(2));
    let node = Served::start(Home::new(), &[]);
    let before = node.home.json(&["status"])["stages"]["applied"].as_u64().unwrap();
    node.home.write("one.bundle", &bundle(&one.foundation()));
    let imported = node.home.json(&["import", "one.bundle"]);
    assert_eq!((&imported["records"], &imported["waiting"]), (&(one.foundation().len() as u64).into(), &0.into()));
    node.home.import(&bundle(&two.foundation())).good();
    // Standard input under its name is that of whoever asks.
    let again = node
        .home
        .command(&["import", "/dev/stdin"])
        .stdin(File::open(node.home.path().join("one.bundle")).unwrap())
        .output()
        .unwrap();
    assert!(again.status.success() && String::from_utf8_lossy(&again.stdout).contains("already stored"), "{again:?}");
    let message = one.message(&one.thread.clone(), "while it runs");
    node.home.import(&bundle(std::slice::from_ref(&message))).good();
    let shown = node.home.run(&["show", &message.id()]).good();
    assert!(shown.out.contains("while it runs"), "{}", shown.out);
    let after = node.home.json(&["status"])["stages"]["applied"].as_u64().unwrap();
    assert_eq!(after - before, (one.foundation().len() + two.foundation().len() + 1) as u64);
    // What goes wrong is said as without a node.
    node.home.import(b"PK\x03\x04 something else").bad(&["this is not an anteroom bundle"]);
    node.home.run(&["import", "nowhere"]).bad(&["cannot read the bundle", "nowhere", "check the path"]);
    let whole = bundle(&one.foundation());
    node.home.import(&whole[..whole.len() / 2]).bad(&["imported before the error", "run import again"]);
    // Nothing is left of what went through a pipe.
    let left = std::fs::read_dir(node.home.data()).unwrap().flatten();
    assert!(left.into_iter().all(|entry| !entry.file_name().to_string_lossy().starts_with("spool-")));
    let audit = node.home.run(&["admin", "audit"]).good().out;
    assert!(audit.contains("import a bundle"), "{audit}");
}

#[test]
fn a_running_node_is_verified_and_says_what_was_not_checked() {
    let node = Served::start(Home::with(&everything().2), &[]);
    let verified = node.home.run(&["verify"]).good();
    assert!(verified.out.contains("the node is running") && verified.out.contains("no problems found"));
    assert_eq!(node.home.json(&["verify"])["partial"], true);
    let home = node.kill();
    assert_eq!(home.json(&["verify"])["partial"], false);
    assert!(!home.run(&["verify"]).good().out.contains("the node is running"));
}

#[test]
fn an_import_of_what_cannot_be_opened_says_so_and_what_to_do() {
    let home = Home::ready();
    let said = home.import(&bundle(&[sealed()])).good().out;
    assert!(said.contains("1 carried for other nodes"), "{said}");
    assert!(said.contains("whose key this node does not have"), "{said}");
    let said = home.import(&bundle(&World::new().foundation())).good().out;
    assert!(!said.contains("carried"), "{said}");
}

#[test]
fn a_bundle_with_keys_moves_a_space_to_another_node_under_a_passphrase() {
    // Sealed, with an edit, long content, and a user.
    let old = Served::start(Home::new(), &[]);
    let key = old.key("backend");
    let (status, _) = old.send(&key, "POST", "/v1/threads/t1/messages", Some(json!({ "body": "hello" })));
    assert_eq!(status, 201);
    let long = "x".repeat(5000);
    let (status, _) = old.send(&key, "POST", "/v1/threads/t1/messages", Some(json!({ "body": long })));
    assert_eq!(status, 201);
    old.home.write("passphrase", b"correct horse battery staple\nand a second line\n");
    old.home.write("wrong", b"correct horse battery stapler");
    old.home.write("short", b"too short");
    let spaces = old.home.json(&["status"])["spaces"].clone();
    let space = spaces[0]["id"].as_str().unwrap_or_else(|| panic!("{spaces}")).to_owned();
    let words = ["export", "--space", &space, "--out", "s.bundle"];
    old.home.run(&[words.as_slice(), &["--with-keys"]].concat()).bad(&["under a passphrase only", "--passphrase-file"]);
    old.home
        .run(&[words.as_slice(), &["--with-keys", "--passphrase-file", "short"]].concat())
        .bad(&["at least 12 characters"]);
    let said =
        old.home.run(&[words.as_slice(), &["--with-keys", "--passphrase-file", "passphrase"]].concat()).good().out;
    assert!(said.contains("with the keys of 1 space"), "{said}");
    let bundle = old.home.read("s.bundle");
    let secret = std::fs::read(old.home.data().join("master.key")).unwrap();
    assert!(!bundle.windows(32).any(|part| part == &secret[..32.min(secret.len())]));
    assert!(old.home.run(&["admin", "audit"]).good().out.contains("export keys"));

    let new = Served::start(Home::new(), &[]).kill();
    new.write("s.bundle", &bundle);
    for name in ["passphrase", "wrong"] {
        new.write(name, &old.home.read(name));
    }
    new.run(&["import", "s.bundle", "--passphrase-file", "wrong"])
        .bad(&["passphrase is not the one", "given to export"]);
    let said = new.run(&["import", "s.bundle"]).good().out;
    assert!(said.contains("carried for other nodes") && said.contains("includes keys, which were not read"), "{said}");
    let said = new.run(&["import", "s.bundle", "--passphrase-file", "passphrase"]).good().out;
    assert!(said.contains("keys of 1 space read; 1 space and 2 users are new on this node"), "{said}");
    assert!(said.contains("no event is held"), "{said}");
    new.run(&["verify"]).good();
    // It is read and written there as the same user.
    let new = Served::start(new, &[]);
    let key = new.home.json(&["key", "create", "backend", "--space", "home-2"])["key"].as_str().unwrap().to_owned();
    let (status, page) = new.send(&key, "GET", "/v1/threads/t1/messages", None);
    assert_eq!(status, 200, "{page}");
    let bodies: Vec<_> = page["messages"].as_array().unwrap().iter().map(|message| message["body"].clone()).collect();
    assert_eq!(bodies, [json!("hello"), json!(long)]);
    let id = page["messages"][0]["id"].as_str().unwrap();
    let (status, edited) =
        new.send(&key, "PUT", &format!("/v1/threads/t1/messages/{id}"), Some(json!({ "body": "edited there" })));
    assert_eq!(status, 200, "{edited}");
    let again = new.home.json(&["import", "s.bundle", "--passphrase-file", "passphrase"]);
    assert_eq!(
        (&again["spaces_adopted"], &again["users_adopted"], &again["applied"]),
        (&json!(0), &json!(0), &json!(0))
    );
}
