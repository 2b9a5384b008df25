//! A few events of the `nostr` protocol from a seed, and the git data that some of them wait for.

use super::{address, announcement, oid, pull_request, sign, state};
use crate::protocol::space::world::BEGINNING;
use crate::random::SeededRandom;
use model::Nanos;
use model::need::Oid;
use model::nostr::{NostrId, VerifiedNostr};
use std::collections::BTreeSet;

/// Those who write; the last one is never named by anybody, and names whom they like.
pub const AUTHORS: u8 = 4;
/// Branches, one of which is a folder of another.
const BRANCHES: [&str; 4] = ["main", "next", "next/one", "old"];
const OBJECTS: usize = 5;

/// Git data that a push or a fetch brings to an owner's repository.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MadeGitData {
    pub owner: u8,
    pub present: Vec<Oid>,
    /// Whether a state authorised the refs.
    pub is_authorised: bool,
}

/// Everything of the `nostr` protocol that exists and may or may not arrive somewhere.
#[derive(Debug)]
pub struct NostrWorld {
    pub events: Vec<VerifiedNostr>,
    pub data: Vec<MadeGitData>,
    /// Events that never arrive anywhere.
    pub lost: BTreeSet<NostrId>,
    /// When the latest of them says it was made.
    pub end: u64,
}

impl NostrWorld {
    /// The events and data of that stream of chance. Many worlds have none.
    pub fn new(random: &mut SeededRandom) -> NostrWorld {
        let count = if random.percent(50) { 0 } else { 3 + random.below(14) };
        let mut events: Vec<VerifiedNostr> = Vec::new();
        for _ in 0..count {
            let event = any_event(random, &events);
            events.push(event);
        }
        let mut seen = BTreeSet::new();
        events.retain(|event| seen.insert(event.id));
        let lost = events.iter().filter(|_| random.percent(8)).map(|event| event.id).collect();
        let data = (0..if count > 0 { 2 + random.below(4) } else { 0 }).map(|_| any_data(random)).collect();
        let end = events.iter().map(|event| event.at().0).max().unwrap_or_default();
        NostrWorld { events, data, lost, end }
    }

    /// What may arrive.
    pub fn kept(&self) -> impl Iterator<Item = (usize, &VerifiedNostr)> {
        self.events.iter().enumerate().filter(|(_, event)| !self.lost.contains(&event.id))
    }
}

fn any_event(random: &mut SeededRandom, before: &[VerifiedNostr]) -> VerifiedNostr {
    let author = 1 + random.below(AUTHORS as usize) as u8;
    // A few seconds, so that several have the same; and now and then one of the future.
    let ahead = if random.percent(4) { 3600 } else { 0 };
    let second = BEGINNING / Nanos::SECOND + random.below(12) as u64 + ahead;
    let owner = 1 + random.below(AUTHORS as usize) as u8;
    let number = 1 + random.below(OBJECTS) as u8;
    match random.below(20) {
        0..=5 => {
            let named: Vec<u8> = (0..random.below(3)).map(|_| 1 + random.below(AUTHORS as usize - 1) as u8).collect();
            announcement(author, second, random.percent(80), &named)
        }
        6..=11 => {
            let refs: Vec<(&str, u8)> =
                (0..random.below(4)).map(|_| (*random.pick(&BRANCHES), 1 + random.below(OBJECTS) as u8)).collect();
            state(author, second, &without_clashes(&refs))
        }
        12..=13 => pull_request(author, second, owner, number),
        14 => sign(author, second, 1621, &[&["a", &address(owner)]]),
        15 => sign(author, second, 0, &[]),
        16 => match before {
            [] => sign(author, second, 0, &[]),
            // A comment that names a repository and an event: one of them is enough.
            _ => {
                let id = random.pick(before).id.to_string();
                sign(author, second, 1111, &[&["a", &address(owner)], &["e", &id]])
            }
        },
        17 => sign(author, second, 5, &[&["a", &address(author)]]),
        18 if random.percent(30) => sign(author, second, 62, &[&["relay", "ALL_RELAYS"]]),
        _ => {
            // Somebody's own event, or that of another, of which nothing comes.
            let Some(target) = before.last().filter(|_| random.percent(80)) else {
                return sign(author, second, 5, &[&["a", &address(author)]]);
            };
            let own = (1..=AUTHORS).find(|other| super::key(*other) == target.author).unwrap_or(author);
            let by = if random.percent(80) { own } else { author };
            sign(by, second, 5, &[&["e", &target.id.to_string()]])
        }
    }
}

/// No ref is a folder of another in one state: git would not take them.
fn without_clashes<'a>(refs: &[(&'a str, u8)]) -> Vec<(&'a str, u8)> {
    let has_folder = refs.iter().any(|(name, _)| *name == "next/one");
    refs.iter().copied().filter(|(name, _)| !(has_folder && *name == "next")).collect()
}

fn any_data(random: &mut SeededRandom) -> MadeGitData {
    let present = (0..random.below(5)).map(|_| oid(1 + random.below(OBJECTS) as u8)).collect();
    MadeGitData { owner: 1 + random.below(AUTHORS as usize) as u8, present, is_authorised: random.percent(70) }
}
