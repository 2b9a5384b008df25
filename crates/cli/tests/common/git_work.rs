//! Working copies and clones, made by plain `git`.

use super::nostr_client::{Author, NostrClient};
use std::io::{Read as _, Write as _};
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

    /// A tree of these lines, as `git ls-tree` writes them: its id.
    pub fn tree(&self, lines: &str) -> String {
        let mut child = Command::new("git")
            .args(["mktree"])
            .current_dir(self.path())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
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

/// Pushes a pack of exactly these objects of a working copy, as no `git` would: what the node answers.
pub fn push_raw(work: &Work, url: &str, name: &str, tip: &str, objects: &[&str]) -> String {
    let mut packing = Command::new("git")
        .args(["pack-objects", "--stdout", "--quiet"])
        .current_dir(work.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    packing.stdin.take().unwrap().write_all(objects.join("\n").as_bytes()).unwrap();
    let pack = packing.wait_with_output().unwrap().stdout;
    let command = format!("{} {tip} {name}\0 report-status", "0".repeat(40));
    let body = [format!("{:04x}{command}0000", command.len() + 4).into_bytes(), pack].concat();
    let (address, path) = url.trim_start_matches("http://").split_once('/').unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /{path}/git-receive-pack HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Object stores in a data folder.
pub fn object_stores(data: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(data.join("git")).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "git")).collect()
}

/// Bytes that cannot be compressed.
pub fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    });
    noise.take(bytes).collect()
}
