//! What those who were asked have answered of late, for whoever wants to know why something is not here yet.
//!
//! It is kept in memory: after a restart everything is asked again, and answered again.

use crate::locks;
use model::{Group, Nanos};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Groups whose answers are remembered; those that were asked for longest ago are forgotten first.
const GROUPS_MAX: usize = 10_000;
/// Places whose latest answer is remembered, for one group.
const PLACES_MAX: usize = 8;
/// How much of what a place is called, and of what it said, is remembered.
const WORDS_CHARS_MAX: usize = 200;

/// Somebody who was asked, and the latest answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AskedSource {
    pub place: String,
    /// When the answer had come.
    pub at: Nanos,
    /// How much of what was asked for came, keys included.
    pub brought: usize,
    /// How much else came, which is not believed.
    pub unasked: usize,
    /// Why no more came, if something went wrong.
    pub failed: Option<String>,
}

/// The latest answers by what was asked for.
#[derive(Debug, Default)]
pub(crate) struct SourceAnswers(Mutex<BTreeMap<Group, Vec<AskedSource>>>);

impl SourceAnswers {
    /// Remembers an answer, in place of an earlier one from the same place.
    pub(crate) fn note(&self, group: &Group, asked: AskedSource) {
        let short = |text: String| text.chars().take(WORDS_CHARS_MAX).collect::<String>();
        let asked = AskedSource { place: short(asked.place), failed: asked.failed.map(short), ..asked };
        let mut groups = locks::lock(&self.0);
        if groups.len() >= GROUPS_MAX && !groups.contains_key(group) {
            forget_half(&mut groups);
        }
        let answers = groups.entry(group.clone()).or_default();
        answers.retain(|known| known.place != asked.place);
        answers.insert(0, asked);
        answers.truncate(PLACES_MAX);
    }

    /// The answers for a group, the latest first.
    pub(crate) fn of(&self, group: &Group) -> Vec<AskedSource> {
        locks::lock(&self.0).get(group).cloned().unwrap_or_default()
    }
}

/// Keeps the half that was asked for later, so that this is done rarely.
fn forget_half(groups: &mut BTreeMap<Group, Vec<AskedSource>>) {
    let latest = |answers: &[AskedSource]| answers.first().map(|asked| asked.at);
    let mut times: Vec<_> = groups.values().map(|answers| latest(answers)).collect();
    times.sort_unstable();
    let middle = times[times.len() / 2];
    groups.retain(|_, answers| latest(answers) > middle);
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{ContentHash, SpaceId};

    fn group(number: u64) -> Group {
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&number.to_be_bytes());
        Group::Content(SpaceId([1; 16]), ContentHash(hash))
    }

    fn asked(place: &str, at: u64, brought: usize) -> AskedSource {
        AskedSource { place: place.to_owned(), at: Nanos(at), brought, unasked: 0, failed: None }
    }

    #[test]
    fn the_latest_answer_of_each_place_is_remembered_and_not_too_many() {
        let answers = SourceAnswers::default();
        for number in 0..20 {
            let failed = Some("x".repeat(1000));
            answers.note(&group(0), AskedSource { failed, ..asked(&format!("place {}", number % 10), number, 0) });
        }
        answers.note(&group(0), asked("place 5", 30, 2));
        let found = answers.of(&group(0));
        assert_eq!(found.len(), PLACES_MAX);
        assert_eq!(found[0], asked("place 5", 30, 2));
        assert!(found[1..].iter().all(|asked| asked.failed == Some("x".repeat(WORDS_CHARS_MAX))));
        assert_eq!(answers.of(&group(1)), []);
    }

    #[test]
    fn groups_that_were_asked_for_long_ago_are_forgotten_first() {
        let answers = SourceAnswers::default();
        for number in 0..3 * GROUPS_MAX as u64 {
            answers.note(&group(number), asked("somewhere", number, 0));
            assert!(answers.0.lock().unwrap().len() <= GROUPS_MAX);
        }
        assert_eq!(answers.of(&group(3 * GROUPS_MAX as u64 - 1)).len(), 1);
        assert_eq!(answers.of(&group(0)), []);
        // Also when all were asked for in the same moment.
        let answers = SourceAnswers::default();
        for number in 0..=GROUPS_MAX as u64 {
            answers.note(&group(number), asked("somewhere", 1, 0));
        }
        assert_eq!(answers.of(&group(GROUPS_MAX as u64)).len(), 1);
    }
}
