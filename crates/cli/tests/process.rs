//! The process: start and stop, locking, closed pipes, help, JSON, invalid arguments.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use common::sample_events::{World, bundle, everything};
use expect_test::expect_file;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Stdio};

/// Starts the node and waits until it says that it runs.
fn start(home: &Home) -> (Child, String) {
    let mut child =
        home.command(&["--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said = String::new();
    while !said.contains("anteroom help") {
        let line = lines.next().unwrap_or_else(|| panic!("it ended too early: {said}")).unwrap();
        said += &format!("{line}\n");
    }
    (child, said)
}

fn stop(mut child: Child, signal: Signal) -> String {
    kill_process(Pid::from_child(&child), signal).unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    said
}

#[test]
fn without_a_command_the_node_creates_its_folder_runs_and_stops_cleanly() {
    let home = Home::new();
    let (child, said) = start(&home);
    assert!(
        said.contains("Write down the recovery text") && said.contains("is running at http://127.0.0.1:"),
        "{said}"
    );
    assert!(stop(child, Signal::INT).contains("stopped"));
    let (child, said) = start(&home);
    assert!(!said.contains("recovery text") && said.contains("7 stored, 0 held"), "{said}");
    stop(child, Signal::TERM);
    home.run(&["verify"]).good();
}

#[test]
fn a_folder_in_use_names_who_uses_it() {
    let home = Home::new();
    let (child, _) = start(&home);
    let who = format!("another anteroom process ({}) is using ./anteroom-data", child.id());
    home.run(&["collect"]).bad(&[&who, "stop it first, or use another --data-dir"]);
    let failed = home.run(&["--json", "collect"]);
    let document: serde_json::Value = serde_json::from_str(&failed.err).unwrap();
    assert_eq!((failed.code, document["error"].as_str()), (1, Some(who.as_str())));
    stop(child, Signal::INT);
    home.run(&["status"]).good();
}

#[test]
fn a_reader_that_leaves_early_ends_the_command_quietly() {
    let home = Home::with(&everything().2);
    for words in [["status", "--digest"].as_slice(), &["config"], &["completions", "bash"], &["export"], &["--help"]] {
        let mut child = home.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        child.wait().unwrap();
        assert_eq!(said, "", "{words:?}");
    }
}

#[test]
fn a_bundle_can_be_piped_and_is_not_thrown_at_a_terminal() {
    let (_, events, bytes) = everything();
    let home = Home::with(&bytes);
    let output = home.command(&["--json", "export"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(report["events"], events.len() as u64);
    assert_eq!(Home::with(&output.stdout).digest(), home.digest());
}

#[test]
fn invalid_arguments_are_reported() {
    let home = Home::ready();
    let huge = "9".repeat(400);
    for words in [
        ["explain", "zz"].as_slice(),
        &["explain", &huge],
        &["explain", "ABABABABABABABABABABABABABABABAB"],
        &["retry", "moon:1"],
        &["retry", "event:"],
        &["retry", "\u{1b}[2J"],
        &["prune"],
        &["held", "--limit", &huge],
        &["held", "--limit", "-1"],
        &["held", "--kind", "moon"],
        &["export", "--after", &huge],
        &["completions", "moon"],
        &["bench", "moon"],
        &["no-such-command"],
        &["--data-dir"],
    ] {
        home.run(words).bad(&[]);
        let failed = home.run(&[&["--json"], words].concat());
        let document: serde_json::Value =
            serde_json::from_str(&failed.err).unwrap_or_else(|why| panic!("{words:?}: {why}: {}", failed.err));
        assert!(failed.code == 1 && document["error"].is_string() && document["what_to_do"].is_string(), "{words:?}");
    }
    home.run(&["--data-dir", "anteroom-data/master.key", "status"]).bad(&["is a file, not a data folder"]);
    home.run(&["--master-key", ".", "status"]).bad(&["cannot read the master key"]);
    home.run(&["man", "anteroom-data/master.key"]).bad(&["cannot write man pages"]);
    std::fs::write(home.data().join("anteroom.redb"), b"this was a database once").unwrap();
    home.run(&["status"]).bad(&[]);
    std::fs::remove_file(home.data().join("anteroom.redb")).unwrap();
    std::fs::create_dir(home.data().join("anteroom.redb")).unwrap();
    home.run(&["status"]).bad(&[]);
}

#[test]
fn completions_and_man_pages_are_generated() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(home.run(&["completions", shell]).good().out.contains("rebuild-views"), "{shell}");
    }
    let pages = home.json(&["man", "pages"])["written"].as_array().unwrap().len();
    assert!(pages > 15, "{pages}");
    let page = String::from_utf8(home.read("pages/anteroom-import.1")).unwrap();
    assert!(page.contains("Import events"), "{page}");
}

#[test]
fn the_help_text_is_as_recorded() {
    let home = Home::new();
    expect_file!["help.txt"].assert_eq(&home.run(&["-h"]).good().out);
    assert_eq!(home.run(&["--version"]).good().out.trim(), concat!("anteroom ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn an_interrupted_import_reports_its_progress() {
    let mut world = World::new();
    let thread = world.thread.clone();
    let messages: Vec<_> = (0..5).map(|number| world.message(&thread, &format!("{number}"))).collect();
    let bytes = bundle(&[world.foundation(), messages].concat());
    let home = Home::ready();
    let mut command = home.command(&["--log", "debug", "import", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut wait_for = |text: &str| {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "it ended too early");
        }
    };
    wait_for("reading the bundle");
    // The signal arrives while it waits for input; it stops when more input arrives.
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    wait_for("shutdown requested");
    let _ = input.write_all(&bytes);
    drop(input);
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{rest}");
    for text in ["the import was interrupted at byte", "run import again", "record"] {
        assert!(rest.contains(text), "{text:?} is not in {rest}");
    }
    home.import(&bytes).good();
    home.run(&["verify"]).good();
}
