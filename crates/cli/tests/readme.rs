//! The README, followed literally: every command in it runs, one after the other, as a reader would type them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use common::served::Served;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Where the README says that a node listens.
const ADDRESS: &str = "127.0.0.1:7117";

/// The lines of the shell blocks of the README, in order, without comments.
fn commands() -> Vec<String> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let blocks = readme.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    let lines = blocks.flat_map(str::lines).filter(|line| !line.trim().is_empty());
    lines.map(|line| line.split("  #").next().unwrap_or_default().trim_end().to_owned()).collect()
}

/// Runs a line in the shell that ran the ones before it: what they exported is there.
struct Shell {
    home: Home,
    address: String,
    exported: Vec<String>,
}

impl Shell {
    fn bash(&self, line: &str) -> Command {
        // A test does not take a port that others may use.
        let line = line.replace("localhost:7117", &self.address);
        let script = format!("set -e\n{}\n{line}", self.exported.join("\n"));
        let binary = Path::new(env!("CARGO_BIN_EXE_anteroom")).parent().unwrap();
        let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("bash");
        command.current_dir(self.home.path()).env("PATH", path).args(["-c", &script]);
        command
    }

    /// Runs what does not end by itself until it says something, and ends it.
    fn run_until(&self, line: &str, text: &str) {
        let mut child =
            self.bash(&format!("exec {line}")).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let found =
            BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok).any(|said| said.contains(text));
        let _ = child.kill();
        child.wait().unwrap();
        assert!(found, "{line} did not say {text:?}");
    }

    fn must_run(&self, line: &str) -> String {
        let ran = self.bash(line).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "{line}\n{out}{err}");
        format!("{out}{err}")
    }
}

#[test]
fn every_command_runs_in_the_order_of_the_readme() {
    let commands = commands();
    assert_eq!(commands.first().map(String::as_str), Some("cargo run --release"), "{commands:?}");
    assert!(commands.len() > 15, "{commands:?}");
    let mut served = Some(Served::start(Home::new(), &[]));
    let running = served.as_ref().unwrap();
    let address = running.url.trim_start_matches("http://").to_owned();
    assert_ne!(address, ADDRESS);
    let data = running.home.data();
    let mut shell =
        Shell { home: Home::new(), address, exported: vec![format!("export ANTEROOM_DATA_DIR={}", data.display())] };
    let mut stopped = None;
    for line in &commands {
        match line.as_str() {
            // The node above, and the program that is being tested.
            "cargo run --release" | "export PATH=\"$PWD/target/release:$PATH\"" => {}
            // This test is part of it.
            "cargo xtask test" => {}
            line if line.starts_with("KEY=") => {
                let key = shell.must_run(&format!("{line}\necho \"$KEY\""));
                assert!(key.starts_with("ark_"), "{key}");
                shell.exported.push(format!("KEY={}", key.trim()));
            }
            // A stream goes on until somebody ends it.
            line if line.starts_with("curl -N") => shell.run_until(&line.replacen("-N", "-N --include", 1), "200 OK"),
            line if line.starts_with("curl") => {
                let told = shell.must_run(&line.replacen("curl", "curl --silent --show-error --fail-with-body", 1));
                assert!(told.contains("obby"), "{line}: {told}");
            }
            line if line.starts_with("anteroom demo") => shell.run_until(line, "sign in"),
            // As it says before these, the node is stopped.
            "anteroom compact" => {
                stopped = served.take().map(Served::kill);
                shell.must_run(line);
            }
            "anteroom" => shell.run_until("anteroom --listen 127.0.0.1:0", "is running at"),
            line => {
                let told = shell.must_run(line);
                assert!(line != "anteroom admin threads" || told.contains("Lobby"), "its example has no name: {told}");
            }
        }
    }
    assert!(stopped.is_some_and(|home| home.data().exists()));
}
