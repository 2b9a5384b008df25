//! Kills the real binary with signal 9 while it writes, again and again, and looks at what it acknowledged.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use anteroom_simulator::random::SeededRandom;
use engine::policy::Policy;
use model::{EventId, Nanos};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use store::{FolderDisk, MasterKey, Store, StoreOptions};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let rounds = words.iter().position(|word| word == "--rounds").and_then(|at| words.get(at + 1)?.parse().ok());
    let rounds: u64 = rounds.unwrap_or(5);
    let folder = std::env::temp_dir().join(format!("anteroom-kill-{}", std::process::id()));
    let result = (0..rounds).try_fold(0, |total, round| kill_once(&folder, round).map(|count| total + count));
    let _ = std::fs::remove_dir_all(&folder);
    match result {
        Ok(total) => {
            println!("{total} acknowledged events survived {rounds} kills");
            println!("kill: {rounds} passed, 0 failed");
            ExitCode::SUCCESS
        }
        Err(what) => {
            println!("{what}\nkill: 0 passed, 1 failed");
            ExitCode::FAILURE
        }
    }
}

/// The binary beside this one.
fn program() -> PathBuf {
    let own = std::env::current_exe().expect("this program has a path");
    own.parent().expect("a folder").join("anteroom")
}

/// Lets it write a few batches, kills it in the next, and checks. Says how many events were acknowledged.
fn kill_once(folder: &Path, round: u64) -> Result<usize, String> {
    let mut random = SeededRandom::new(round);
    let mut child = Command::new(program())
        .args(["bench", "open-writer", "--dir"])
        .arg(folder)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{} did not start: {error}; build it first", program().display()))?;
    let output = child.stdout.take().expect("a pipe");
    let mut acknowledged = Vec::new();
    let mut lines = BufReader::new(output).lines();
    for _ in 0..1 + random.below(12) {
        match lines.next() {
            Some(Ok(line)) => acknowledged.extend(line.split(' ').filter_map(|id| id.parse::<EventId>().ok())),
            _ => return Err(format!("round {round}: the writer ended by itself")),
        }
    }
    child.kill().map_err(|error| error.to_string())?;
    child.wait().map_err(|error| error.to_string())?;
    // What was printed whole before the kill was acknowledged too; a line cut short was not.
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    for line in rest.iter().take(rest.len().saturating_sub(1)) {
        acknowledged.extend(line.split(' ').filter_map(|id| id.parse::<EventId>().ok()));
    }
    check(folder, &acknowledged).map_err(|what| format!("round {round}: {what}"))?;
    Ok(acknowledged.len())
}

fn check(folder: &Path, acknowledged: &[EventId]) -> Result<(), String> {
    let disk = Arc::new(FolderDisk::new(folder).map_err(|error| error.to_string())?);
    let options =
        StoreOptions { policy: Policy::default(), random: store::KeySource::Seed(1), ..StoreOptions::default() };
    let store = Store::open(disk, MasterKey::new(&[1; 32]), options).map_err(|why| why.to_string())?;
    let db = store.snapshot().map_err(|fault| fault.to_string())?;
    for id in acknowledged {
        if !db.is_known(id).map_err(|fault| fault.to_string())? {
            return Err(format!("{id} was acknowledged and is lost"));
        }
    }
    drop(db);
    let report = store.verify(Nanos(u64::MAX / 4)).map_err(|fault| fault.to_string())?;
    report.problems.first().map_or(Ok(()), |problem| Err(problem.clone()))
}
