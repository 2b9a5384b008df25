//! The `ngit` client, as people use it, against the node. `cargo xtask clients` installs it and runs this.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use common::git_work::clone;
use common::nostr_client::NostrClient;
use common::served::Served;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Somebody with a home of their own, an account and a working copy.
struct Person {
    home: TempDir,
    url: String,
}

impl Person {
    fn new(url: &str) -> Person {
        Person { home: tempfile::tempdir().unwrap(), url: url.to_owned() }
    }

    fn work(&self) -> PathBuf {
        self.home.path().join("work")
    }

    fn run(&self, program: &str, words: &[&str]) -> (bool, String) {
        self.run_in(&self.work(), program, words)
    }

    fn run_in(&self, folder: &Path, program: &str, words: &[&str]) -> (bool, String) {
        let clients = std::env::var("CLIENTS_FOLDER").expect("cargo xtask clients says where the clients are");
        let relay = self.url.replacen("http", "ws", 1);
        let mut command = Command::new(program);
        command
            .args(words)
            .current_dir(folder)
            .env("HOME", self.home.path())
            .env("PATH", format!("{clients}:{}", std::env::var("PATH").unwrap()))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("RUST_BACKTRACE", "0")
            .env("NGIT_GRASP_DEFAULT_SET", &self.url);
        for name in ["DEFAULT", "ANNOUNCEMENT_INDEXER", "BLASTER", "SIGNER_FALLBACK"] {
            command.env(format!("NGIT_RELAY_{name}_SET"), &relay);
        }
        for name in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{name}_NAME"), "A").env(format!("GIT_{name}_EMAIL"), "a@example.org");
        }
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    }

    #[track_caller]
    fn well(&self, program: &str, words: &[&str]) -> String {
        let (is_good, said) = self.run(program, words);
        assert!(is_good, "{program} {words:?}: {said}");
        said.trim().to_owned()
    }

    fn commit(&self, file: &str, text: &str) -> String {
        std::fs::write(self.work().join(file), text).unwrap();
        self.well("git", &["add", file]);
        self.well("git", &["commit", "--quiet", "--message", text]);
        self.well("git", &["rev-parse", "HEAD"])
    }

    fn log_in(&self, secret: u8) {
        let secret = hex::encode([secret; 32]);
        let words = ["account", "login", "--local", "--offline", "--secret-storage", "git-config", "--nsec", &secret];
        self.well("ngit", &words);
    }
}

#[test]
fn a_repository_is_published_cloned_and_contributed_to() {
    let served = Served::start(Home::ready(), &["--set", "git.enabled=1"]);
    let (owner, contributor) = (Person::new(&served.url), Person::new(&served.url));
    std::fs::create_dir(owner.work()).unwrap();
    owner.well("git", &["init", "--quiet", "--initial-branch=main"]);
    owner.log_in(41);
    owner.commit("file", "one");
    let server = ["--grasp-server", &served.url];
    owner.well("ngit", &[&["init", "--name", "Tool", "--identifier", "tool", "-d"], &server[..]].concat());
    let url = owner.well("git", &["remote", "get-url", "origin"]);
    let second = owner.commit("file", "two");
    owner.well("git", &["push", "origin", "main"]);
    // By its Nostr address and by plain git.
    let (is_cloned, said) = contributor.run_in(contributor.home.path(), "git", &["clone", "--quiet", &url, "work"]);
    assert!(is_cloned, "{said}");
    assert_eq!(contributor.well("git", &["rev-parse", "HEAD"]), second);
    let npub = url.trim_start_matches("nostr://").split('/').next().unwrap();
    let plain = format!("{}/{npub}/tool.git", served.url);
    let (_folder, copy) = clone(&plain, &[]);
    assert_eq!(std::fs::read_to_string(copy.join("file")).unwrap(), "two");
    // Pull requests, by a branch and by `send`.
    contributor.log_in(42);
    contributor.well("git", &["checkout", "--quiet", "-b", "pr/feature"]);
    let feature = contributor.commit("feature", "a feature");
    contributor.well("git", &["push", "--set-upstream", "origin", "pr/feature"]);
    contributor.well("git", &["checkout", "--quiet", "-b", "other", "main"]);
    let other = contributor.commit("other", "another");
    contributor.well("ngit", &["send", "HEAD~1", "-d", "--title", "Another", "--description", "It is another."]);
    let refs = contributor.well("git", &["ls-remote", &plain]);
    let mut relay = NostrClient::connect(&served.url);
    let requests = relay.stored(&json!({ "kinds": [1618] }));
    assert_eq!(requests.len(), 2, "{refs}");
    assert!(requests.iter().all(|id| refs.contains(&format!("refs/nostr/{id}"))), "{refs}");
    assert!(refs.contains(&feature) && refs.contains(&other), "{refs}");
    // An issue, which the owner sees.
    contributor.well("ngit", &["issue", "create", "--subject", "Broken", "--body", "It does not work."]);
    let issues = owner.well("ngit", &["issue", "list"]);
    assert!(issues.contains("Broken"), "{issues}");
    let listed = owner.well("ngit", &["pr", "list"]);
    assert!(listed.contains("Another") && listed.contains("a feature"), "{listed}");
    // Who is no maintainer changes no branch: the client says so, and so does the node.
    contributor.well("git", &["checkout", "--quiet", "main"]);
    contributor.commit("file", "mine");
    for remote in ["origin", &plain] {
        let (is_pushed, said) = contributor.run("git", &["push", remote, "main"]);
        assert!(
            !is_pushed && (said.contains("rejected") || said.contains("the newest repository state says")),
            "{said}"
        );
    }
    let (_folder, copy) = clone(&plain, &[]);
    assert_eq!(std::fs::read_to_string(copy.join("file")).unwrap(), "two");
}
