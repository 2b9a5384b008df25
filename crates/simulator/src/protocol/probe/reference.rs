//! The naive model of the `probe` protocol: everything its views must show, recomputed from the set of events alone.

use super::MadeProbe;
use model::crypto::content_hash;
use model::probe::{ProbeKey, ProbeKind};
use model::{EventId, Stamp};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The set, and what of its content is here.
pub struct ProbeModel<'a> {
    valid: Vec<&'a MadeProbe>,
    here: &'a dyn Fn(&EventId) -> bool,
}

impl<'a> ProbeModel<'a> {
    /// The model of these events; `here` says whether the content of an event is here.
    pub fn new(events: impl Iterator<Item = &'a MadeProbe>, here: &'a dyn Fn(&EventId) -> bool) -> ProbeModel<'a> {
        let mut waiting: Vec<&MadeProbe> = events.filter(|made| made.statement.name != made.statement.after).collect();
        let mut valid: Vec<&MadeProbe> = Vec::new();
        loop {
            let (now, later): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|made| is_due(&valid, made));
            waiting = later;
            if now.is_empty() {
                return ProbeModel { valid, here };
            }
            valid.extend(now);
        }
    }

    /// Whether an event is ever applied.
    pub fn is_valid(&self, id: &EventId) -> bool {
        self.valid.iter().any(|made| made.id == *id)
    }

    fn of_kind(&self, kind: ProbeKind) -> impl Iterator<Item = &'a MadeProbe> {
        self.valid.iter().copied().filter(move |made| made.statement.kind == kind)
    }

    fn content(&self, made: &MadeProbe) -> String {
        let clears = self.of_kind(ProbeKind::Clear).filter(|clear| subject(clear) == subject(made));
        if let Some(by) = clears.map(MadeProbe::stamp).filter(|by| *by > made.stamp()).min() {
            return format!("deleted:{by}");
        }
        match (self.here)(&made.id) {
            false => "absent".into(),
            true if made.wire.starts_with(b"bad") => "invalid".into(),
            true => format!("here:{}", content_hash(&made.wire)),
        }
    }

    /// Every line of every view.
    pub fn lines(&self) -> BTreeSet<String> {
        let mut lines = BTreeSet::new();
        let mut winners: BTreeMap<(ProbeKey, &str), &MadeProbe> = BTreeMap::new();
        let rank = |made: &MadeProbe| (made.statement.at, Reverse(made.id));
        for made in self.of_kind(ProbeKind::Value) {
            let winner = winners.entry(subject(made)).or_insert(made);
            if rank(made) > rank(winner) {
                *winner = made;
            }
            lines.insert(format!("value {} {}", line(made), self.content(made)));
        }
        lines.extend(winners.values().map(|made| format!("winner {}", line(made))));
        lines
    }
}

fn subject(made: &MadeProbe) -> (ProbeKey, &str) {
    (made.statement.author, &made.statement.name)
}

fn line(made: &MadeProbe) -> String {
    let stamp: Stamp = made.stamp();
    format!("{} {} {stamp}", made.statement.author, made.statement.name)
}

/// Whether what it needs is among these.
fn is_due(valid: &[&MadeProbe], made: &MadeProbe) -> bool {
    let needed = match made.statement.kind {
        ProbeKind::Value if made.statement.after.is_empty() => return true,
        ProbeKind::Value => &made.statement.after,
        ProbeKind::Clear => &made.statement.name,
    };
    let is_needed = |other: &MadeProbe| subject(other) == (made.statement.author, needed);
    valid.iter().any(|other| other.statement.kind == ProbeKind::Value && is_needed(other))
}
