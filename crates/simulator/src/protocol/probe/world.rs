//! A few events of the `probe` protocol from a seed: values that come after others, ties, and clears.

use super::MadeProbe;
use crate::protocol::space::world::BEGINNING;
use crate::random::SeededRandom;
use model::EventId;
use model::probe::ProbeKind;
use std::collections::BTreeSet;

const NAMES: [&str; 3] = ["red", "green", "blue"];

/// Everything of the `probe` protocol that exists and may or may not arrive somewhere.
#[derive(Debug)]
pub struct ProbeWorld {
    /// Every event.
    pub events: Vec<MadeProbe>,
    /// Events that never arrive anywhere.
    pub lost: BTreeSet<EventId>,
}

impl ProbeWorld {
    /// The events of that stream of chance.
    pub fn new(random: &mut SeededRandom) -> ProbeWorld {
        let mut events: Vec<MadeProbe> = (0..random.below(14)).map(|_| any_event(random)).collect();
        let mut seen = BTreeSet::new();
        events.retain(|made| seen.insert(made.id));
        let lost = events.iter().filter(|_| random.percent(8)).map(|made| made.id).collect();
        ProbeWorld { events, lost }
    }

    /// What may arrive.
    pub fn kept(&self) -> impl Iterator<Item = (usize, &MadeProbe)> {
        self.events.iter().enumerate().filter(|(_, made)| !self.lost.contains(&made.id))
    }
}

fn any_event(random: &mut SeededRandom) -> MadeProbe {
    let author = 1 + random.below(2) as u8;
    // A few moments, so that several values have the same.
    let at = BEGINNING + 1_000_000_000 * random.below(4) as u64;
    let name = NAMES[random.below(NAMES.len())];
    if random.percent(20) {
        return MadeProbe::new(ProbeKind::Clear, author, at, name, "", b"");
    }
    let after = if random.percent(40) { NAMES[random.below(NAMES.len())] } else { "" };
    let content = match random.below(6) {
        0 => Vec::new(),
        1 => b"bad content".to_vec(),
        2 | 3 => vec![b'0' + random.below(3) as u8; 2000 + 2000 * random.below(2)],
        _ => format!("value {}", random.below(1000)).into_bytes(),
    };
    MadeProbe::new(ProbeKind::Value, author, at, name, after, &content)
}
