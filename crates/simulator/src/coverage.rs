//! Which states a run has reached: a search that never gets somewhere proves nothing about it.

use engine::rows::{JournalKind, Outcome};
use model::stage::RefusalReason;
use std::collections::{BTreeMap, BTreeSet};

/// At least one in so many runs must reach each state.
pub const RUNS_PER_STATE_MAX: u64 = 100;
/// Fewer runs say nothing about how often a state is reached.
pub const RUNS_MIN: u64 = 500;

/// The states that every search must reach, beside all refusals.
const WANTED: [&str; 38] = [
    "stage applied",
    "stage held",
    "stage carried",
    "stage refused",
    "stage expired",
    "content missing",
    "content processed",
    "content invalid",
    "content deleted",
    "content pruned",
    "waits for event",
    "waits for key",
    "waits for time",
    "waits for probe",
    "waits for address",
    "waits for git",
    "waits for repository",
    "arrived again",
    "journal applied",
    "journal processed",
    "journal deleted",
    "journal undeleted",
    "journal pruned",
    "journal hidden",
    "journal shown",
    "journal bytes-arrived",
    "crash Kept",
    "crash Dropped",
    "crash Torn",
    "crash during arrive",
    "crash during content",
    "crash during rotate",
    "crash during prune",
    "crash during gitarrived",
    "rebuilt",
    "rotated",
    "rewrapped",
    "restored",
];

/// The states that a run has reached.
#[derive(Clone, Debug, Default)]
pub struct Coverage(BTreeSet<String>);

impl Coverage {
    pub fn reach(&mut self, state: impl Into<String>) {
        self.0.insert(state.into());
    }

    /// What became of an arrival.
    pub fn reach_outcome(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Held(_, needs) => needs.iter().for_each(|need| self.reach(format!("waits for {}", need.word()))),
            Outcome::Refused(why) => self.reach(refusal(*why)),
            Outcome::Known(_) => self.reach("arrived again"),
            Outcome::TurnedAway(why) => self.reach(format!("turned away: {why:?}")),
            Outcome::Applied(_) | Outcome::Carried(_) => {}
        }
    }

    pub fn reach_journal(&mut self, kind: JournalKind) {
        self.reach(format!("journal {}", kind.word()));
    }

    pub fn states(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// The word for a refusal.
pub fn refusal(why: RefusalReason) -> String {
    format!("refused {why:?}")
}

/// How many of the runs reached each state.
#[derive(Debug, Default)]
pub struct Reached {
    runs: u64,
    states: BTreeMap<String, u64>,
}

impl Reached {
    pub fn add(&mut self, coverage: &Coverage) {
        self.runs += 1;
        for state in coverage.states() {
            *self.states.entry(state.to_owned()).or_default() += 1;
        }
    }

    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// A line per state.
    pub fn lines(&self) -> Vec<String> {
        self.states.iter().map(|(state, runs)| format!("  {state:28} {runs:6} of {}", self.runs)).collect()
    }

    /// The states that were wanted and reached by too few of the runs.
    pub fn missed(&self) -> Vec<String> {
        if self.runs < RUNS_MIN {
            return Vec::new();
        }
        let refusals = RefusalReason::ALL.into_iter().filter(|why| *why != RefusalReason::Blob).map(refusal);
        let wanted = WANTED.iter().map(|state| (*state).to_owned()).chain(refusals);
        wanted.filter(|state| self.states.get(state).copied().unwrap_or(0) * RUNS_PER_STATE_MAX < self.runs).collect()
    }
}
