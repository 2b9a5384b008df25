//! What became of each mistake, kept so that a run can be stopped and go on.

use super::trial::Outcome;
use crate::process::{output, program, root, target};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

/// The outcomes so far, one line of JSON each, of one sample of one state of the repository.
#[derive(Debug)]
pub(crate) struct Record {
    path: PathBuf,
    outcomes: BTreeMap<String, Outcome>,
}

impl Record {
    /// The record of a sample. It begins anew when a source or a test has changed.
    pub(crate) fn open(seed: u64, sample: usize) -> Result<Record> {
        let path = target().join(format!("mutants/outcomes-{seed}-{sample}.jsonl"));
        let state = json!({ "sources": state_of_sources()? }).to_string();
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        let mut lines = kept.lines();
        let outcomes = match lines.next() {
            Some(first) if first == state => lines.filter_map(parse).collect(),
            _ => {
                std::fs::create_dir_all(path.parent().context("a file in a folder")?)?;
                std::fs::write(&path, state + "\n")?;
                BTreeMap::new()
            }
        };
        Ok(Record { path, outcomes })
    }

    pub(crate) fn outcome(&self, mutant: &str) -> Option<Outcome> {
        self.outcomes.get(mutant).cloned()
    }

    pub(crate) fn add(&mut self, mutant: &str, outcome: &Outcome) -> Result<()> {
        let by = match outcome {
            Outcome::CaughtBy(program) => Value::from(program.as_str()),
            Outcome::Survived => Value::Null,
        };
        let mut file = std::fs::OpenOptions::new().append(true).open(&self.path)?;
        writeln!(file, "{}", json!({ "mutant": mutant, "by": by }))?;
        self.outcomes.insert(mutant.to_owned(), outcome.clone());
        Ok(())
    }
}

fn parse(line: &str) -> Option<(String, Outcome)> {
    let value: Value = serde_json::from_str(line).ok()?;
    let mutant = value.get("mutant")?.as_str()?.to_owned();
    let outcome = match value.get("by")? {
        Value::String(program) => Outcome::CaughtBy(program.clone()),
        _ => Outcome::Survived,
    };
    Some((mutant, outcome))
}

/// A text that changes with anything that git would commit.
fn state_of_sources() -> Result<String> {
    let listed = output(&mut program("git", &["ls-files", "--cached", "--others", "--exclude-standard"]))?;
    let mut hash = FNV_START;
    for file in listed.lines().filter(|file| !file.ends_with(".md")) {
        let bytes = std::fs::read(root().join(file)).unwrap_or_default();
        hash = hash_on(hash_on(hash, file.as_bytes()), &bytes);
    }
    Ok(format!("{hash:016x}"))
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, gone on with.
fn hash_on(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
