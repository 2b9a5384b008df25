//! Runs the real command in a temporary folder, with sample events as input.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code, unreachable_pub)]

pub mod browsing;
pub mod git_server;
pub mod git_work;
pub mod nostr_client;
pub mod prepared;
pub mod sample_events;
pub mod served;

use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A temporary folder in which the command runs.
pub struct Home {
    folder: TempDir,
}

/// The result of a run.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Home {
    pub fn new() -> Home {
        Home { folder: tempfile::tempdir().expect("a folder") }
    }

    /// A home with a data folder.
    pub fn ready() -> Home {
        let home = Home::new();
        home.run(&["init"]).good();
        home
    }

    /// A home into which these bytes were imported.
    pub fn with(bundle: &[u8]) -> Home {
        let home = Home::ready();
        home.import(bundle).good();
        home
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn data(&self) -> PathBuf {
        self.path().join("anteroom-data")
    }

    /// The command, without environment variables that could affect it.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anteroom"));
        let settings = std::env::vars_os().map(|(name, _)| name);
        for name in settings.filter(|name| name.to_string_lossy().starts_with("ANTEROOM_")) {
            command.env_remove(name);
        }
        command
            .env_remove("COLUMNS")
            .env_remove("CREDENTIALS_DIRECTORY")
            .args(words)
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, words: &[&str]) -> Ran {
        Ran::of(self.command(words).output().expect("the command runs"))
    }

    /// Runs with `--json` and parses the output.
    pub fn json(&self, words: &[&str]) -> Value {
        let ran = self.run(&[&["--json"], words].concat());
        assert_eq!(ran.err, "", "{words:?}");
        serde_json::from_str(&ran.out).unwrap_or_else(|why| panic!("{words:?}: {why}: {}", ran.out))
    }

    /// Runs with these bytes as standard input.
    pub fn feed(&self, words: &[&str], bytes: &[u8]) -> Ran {
        let mut command = self.command(words);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut input = child.stdin.take().expect("an input");
        // The command may stop reading early.
        let _ = input.write_all(bytes);
        drop(input);
        Ran::of(child.wait_with_output().expect("it ends"))
    }

    pub fn import(&self, bundle: &[u8]) -> Ran {
        self.feed(&["import", "-"], bundle)
    }

    /// The digest of all views.
    pub fn digest(&self) -> String {
        self.json(&["status", "--digest"])["digest"].as_str().expect("a digest").to_owned()
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> String {
        std::fs::write(self.path().join(name), bytes).expect("written");
        name.to_owned()
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path().join(name)).expect("readable")
    }

    /// The names of everything in the home, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).expect("readable");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Ran {
    fn of(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Expects success.
    #[track_caller]
    pub fn good(self) -> Ran {
        assert_eq!(self.code, 0, "out: {}\nerr: {}", self.out, self.err);
        self
    }

    /// Expects an orderly error that contains all of these texts.
    #[track_caller]
    pub fn bad(self, says: &[&str]) -> Ran {
        assert!(self.code == 1 || self.code == 2, "code {}\nout: {}\nerr: {}", self.code, self.out, self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        for text in says {
            assert!(self.err.contains(text), "{text:?} is not in: {}", self.err);
        }
        self
    }
}
