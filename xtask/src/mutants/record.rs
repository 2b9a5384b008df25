//! What became of each mistake, kept so that a run can be stopped and go on, and repeated when tests were added.
//!
//! A mistake that was caught, or does not compile, stays so while the code of its file is the same, not counting tests:
//! tests that are added take nothing away. One that survived is tried again as soon as anything has changed.

use super::tree::Mutant;
use super::trial::Outcome;
use crate::process::{output, program, root, target};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The outcomes so far, one line of JSON each; of two about one mistake the later one counts.
#[derive(Debug)]
pub(crate) struct Record {
    path: PathBuf,
    /// The state of the repository.
    state: String,
    outcomes: BTreeMap<String, Trial>,
}

/// A mistake that was tried.
#[derive(Debug)]
struct Trial {
    /// The code of its file, without tests.
    code: String,
    /// The state of the repository.
    state: String,
    outcome: Outcome,
}

impl Record {
    /// The outcomes of all samples so far.
    pub(crate) fn open() -> Result<Record> {
        Record::read(&target().join("mutants/outcomes.jsonl"), state_of_repository()?)
    }

    fn read(path: &Path, state: String) -> Result<Record> {
        std::fs::create_dir_all(path.parent().context("a file in a folder")?)?;
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        Ok(Record { path: path.to_owned(), state, outcomes: kept.lines().filter_map(parse).collect() })
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) -> Result<()> {
        self.outcomes.clear();
        std::fs::write(&self.path, "").with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// What became of a mistake, if that still holds.
    pub(crate) fn outcome(&self, mutant: &Mutant) -> Option<Outcome> {
        let tried = self.outcomes.get(&mutant.key()).filter(|tried| tried.code == hash_text(&mutant.code))?;
        match &tried.outcome {
            Outcome::CaughtBy(_) | Outcome::NotCompiled => Some(tried.outcome.clone()),
            Outcome::Survived => (tried.state == self.state).then_some(Outcome::Survived),
        }
    }

    pub(crate) fn add(&mut self, mutant: &Mutant, outcome: &Outcome) -> Result<()> {
        let by = match outcome {
            Outcome::CaughtBy(program) => Value::from(program.as_str()),
            Outcome::Survived => Value::Null,
            Outcome::NotCompiled => Value::Bool(false),
        };
        let (key, code, state) = (mutant.key(), hash_text(&mutant.code), self.state.clone());
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&self.path)?;
        writeln!(file, "{}", json!({ "mutant": key, "code": code, "state": state, "by": by }))?;
        self.outcomes.insert(key, Trial { code, state, outcome: outcome.clone() });
        Ok(())
    }
}

fn parse(line: &str) -> Option<(String, Trial)> {
    let value: Value = serde_json::from_str(line).ok()?;
    let text = |name: &str| value.get(name)?.as_str().map(str::to_owned);
    let outcome = match value.get("by")? {
        Value::String(program) => Outcome::CaughtBy(program.clone()),
        Value::Bool(_) => Outcome::NotCompiled,
        _ => Outcome::Survived,
    };
    Some((text("mutant")?, Trial { code: text("code")?, state: text("state")?, outcome }))
}

/// A text that changes with anything that git would commit.
fn state_of_repository() -> Result<String> {
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

fn hash_text(text: &str) -> String {
    format!("{:016x}", hash_on(FNV_START, text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::super::tree::mutants_of;
    use super::*;

    const SOURCE: &str = "fn f(a: u8) -> bool { a < 3 }\n\nfn g(a: u8) -> bool { a < 3 }\n";

    /// Whether each mistake of a source has an outcome that holds in a state of the repository.
    fn known(path: &Path, state: &str, source: &str) -> Vec<bool> {
        let record = Record::read(path, state.to_owned()).expect("a record");
        mutants_of("crates/model/src/f.rs", source)
            .expect("a source")
            .iter()
            .map(|m| record.outcome(m).is_some())
            .collect()
    }

    #[test]
    fn what_was_caught_is_tried_again_when_its_code_changes_and_what_survived_when_anything_does() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mutants/outcomes.jsonl");
        let mut record = Record::read(&path, "before".to_owned()).expect("a record");
        let mutants = mutants_of("crates/model/src/f.rs", SOURCE).expect("a source");
        // Both functions answer true or false, and compare otherwise; the mistakes of the second one are caught.
        for (index, mutant) in mutants.iter().enumerate() {
            let outcome = if index < 3 { Outcome::Survived } else { Outcome::CaughtBy("a test".to_owned()) };
            record.add(mutant, &outcome).expect("written");
        }
        assert_eq!(known(&path, "before", SOURCE), [true; 6], "a run that was stopped goes on");
        let caught = [false, false, false, true, true, true];
        assert_eq!(known(&path, "after", SOURCE), caught);
        let tested = format!(
            "#[cfg(test)]\nmod first {{ fn f(a: u8) -> bool {{ a < 3 }} }}\n{SOURCE}#[cfg(test)]\nmod tests;\n"
        );
        assert_eq!(known(&path, "after", &tested), caught);
        assert_eq!(known(&path, "after", &SOURCE.replace("g(a", "g(b").replace("{ a", "{ b")), [false; 6]);
        record.add(&mutants[0], &Outcome::CaughtBy("a new test".to_owned())).expect("written");
        assert_eq!(known(&path, "after", SOURCE), [true, false, false, true, true, true], "the later outcome counts");
        record.clear().expect("written");
        assert_eq!(known(&path, "before", SOURCE), [false; 6]);
    }
}
