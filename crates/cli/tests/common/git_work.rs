//! Working copies and clones, made by plain `git`.

use super::nostr_client::{Author, NostrClient};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A working copy of somebody, with what git says.
pub struct Work {
    folder: TempDir,
}

impl Work {
    pub fn new() -> Work {
        let work = Work { folder: tempfile::tempdir().unwrap() };
        work.git(&["init", "--quiet", "--initial-branch=main"]);
        work
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn run(&self, words: &[&str]) -> (bool, String) {
        run_git(self.path(), words)
    }

    #[track_caller]
    pub fn git(&self, words: &[&str]) -> String {
        let (is_good, said) = self.run(words);
        assert!(is_good, "git {words:?}: {said}");
        said.trim().to_owned()
    }

    /// A new commit: its id.
    pub fn commit(&self, text: &str) -> String {
        std::fs::write(self.path().join("file"), text).unwrap();
        self.git(&["add", "file"]);
        self.git(&["commit", "--quiet", "--message", text]);
        self.git(&["rev-parse", "HEAD"])
    }
}

pub fn run_git(folder: &Path, words: &[&str]) -> (bool, String) {
    let output = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.version=2"])
        .args(words)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// What a fresh clone has checked out.
pub fn clone(url: &str, options: &[&str]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (is_good, said) = run_git(folder.path(), &[&["clone", "--quiet"], options, &[url, "copy"]].concat());
    assert!(is_good, "{said}");
    let copy = folder.path().join("copy");
    (folder, copy)
}

/// A repository of an author that was announced and pushed: its address.
pub fn host_repository(client: &mut NostrClient, url: &str, owner: &Author, identifier: &str) -> String {
    let work = Work::new();
    let commit = work.commit("one");
    client.publish_well(&owner.announcement(url, identifier, &[]));
    client.publish_well(&owner.state(identifier, &[("refs/heads/main", &commit)]));
    work.git(&["push", &format!("{url}/{}/{identifier}.git", owner.npub()), "main"]);
    format!("30617:{}:{identifier}", owner.key())
}
