//! Who speaks for a repository: announcements that name each other.
//!
//! Announcements and states count from the moment they are here, held or applied: a push, which brings what they wait for,
//! is decided from them. Deleted ones and those of the future do not count.

use super::rows::winning_place;
use crate::opened::Opened;
use crate::protocol::deleted_by;
use crate::reads::{Reads, StoreResult};
use model::nostr::{ANNOUNCEMENT, AddressName, Announcement, RepositoryState, STATE, VerifiedNostr};
use model::planted::{PlantedBug, is_planted};
use model::stage::{ContentState, Stage};
use model::{AuthorKey, Need, NostrKey, Seq, Stamp};
use std::collections::{BTreeMap, BTreeSet};

/// Maintainers of one repository that are looked at: more do not count.
const MAINTAINERS_MAX: usize = 64;
/// Announcements that are looked at to find them: more are not there.
const LOOKS_MAX: usize = 512;
/// Held events of one author that are looked at, the latest to have come first.
const HELD_MAX: usize = 256;

/// Which events are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known {
    /// Applied ones: what is served.
    Applied,
    /// Held ones as well: what a push may bring.
    HeldOrApplied,
}

/// The newest announcement of a repository that is held or applied.
pub fn announcement(db: &impl Reads, owner: &NostrKey, identifier: &str) -> StoreResult<Option<Announcement>> {
    let waiting = db.waiting(&Need::GitData { owner: *owner, identifier: identifier.to_owned() }, Seq(0), HELD_MAX)?;
    let newest = newest_at(db, ANNOUNCEMENT, owner, identifier, waiting)?;
    Ok(newest.and_then(|(_, _, event)| Announcement::of(&event)))
}

/// Who is confirmed for a repository, its owner included: connected by announcements that name each other. Nobody, if there
/// is no announcement of its owner.
pub fn confirmed(db: &impl Reads, owner: &NostrKey, identifier: &str) -> StoreResult<BTreeSet<NostrKey>> {
    Walk { db, identifier, announced: BTreeMap::new() }.confirmed(owner)
}

/// Whose repositories may change because of what an announcement or state says, or does not say any more: its
/// author, whoever is or was confirmed with them, and whoever it names, with those confirmed with these.
pub(super) fn concerned(
    db: &impl Reads,
    author: &NostrKey,
    identifier: &str,
    named: &BTreeSet<NostrKey>,
) -> StoreResult<BTreeSet<NostrKey>> {
    let mut walk = Walk { db, identifier, announced: BTreeMap::new() };
    let mut concerned = walk.confirmed(author)?;
    concerned.insert(*author);
    for key in named {
        // Whoever was found with another is confirmed with the same.
        if !concerned.contains(key) {
            concerned.extend(walk.confirmed(key)?);
        }
    }
    Ok(concerned)
}

/// From announcement to announcement of one identifier; each is read once.
struct Walk<'a, R> {
    db: &'a R,
    identifier: &'a str,
    announced: BTreeMap<NostrKey, Option<Announcement>>,
}

impl<R: Reads> Walk<'_, R> {
    fn announcement_of(&mut self, key: &NostrKey) -> StoreResult<Option<&Announcement>> {
        if !self.announced.contains_key(key) {
            let is_enough = self.announced.len() >= LOOKS_MAX;
            let found = if is_enough { None } else { announcement(self.db, key, self.identifier)? };
            self.announced.insert(*key, found);
        }
        Ok(self.announced.get(key).and_then(Option::as_ref))
    }

    fn confirmed(&mut self, owner: &NostrKey) -> StoreResult<BTreeSet<NostrKey>> {
        let mut confirmed = BTreeSet::new();
        let mut next = vec![*owner];
        while let Some(key) = next.pop() {
            let Some(named) = self.announcement_of(&key)?.map(|own| own.maintainers.clone()) else { continue };
            if !confirmed.insert(key) || confirmed.len() >= MAINTAINERS_MAX {
                continue;
            }
            for other in named.into_iter().filter(|other| !confirmed.contains(other)) {
                let names_back = |theirs: &Announcement| {
                    theirs.maintainers.contains(&key) || is_planted(PlantedBug::StrangersMaintain)
                };
                if self.announcement_of(&other)?.is_some_and(names_back) {
                    next.push(other);
                }
            }
        }
        Ok(confirmed)
    }
}

/// The newest state of a repository by one of these.
pub fn newest_state(
    db: &impl Reads,
    maintainers: &BTreeSet<NostrKey>,
    identifier: &str,
    known: Known,
) -> StoreResult<Option<(Seq, RepositoryState)>> {
    let mut newest: Option<(Stamp, Seq, RepositoryState)> = None;
    for author in maintainers {
        let waiting = match known {
            Known::Applied => Vec::new(),
            Known::HeldOrApplied => held_states(db, author)?,
        };
        if let Some((place, seq, event)) = newest_at(db, STATE, author, identifier, waiting)?
            && newest.as_ref().is_none_or(|(other, _, _)| *other < place)
            && let Some(state) = RepositoryState::of(&event)
        {
            newest = Some((place, seq, state));
        }
    }
    Ok(newest.map(|(_, seq, state)| (seq, state)))
}

/// What of an author is held. What others send cannot crowd it out.
fn held_states(db: &impl Reads, author: &NostrKey) -> StoreResult<Vec<Seq>> {
    match db.number_of(&AuthorKey::Nostr(*author))? {
        Some(number) => db.held_of(number, HELD_MAX),
        None => Ok(Vec::new()),
    }
}

/// The newest event at an address: the winner of those that are applied, or one of these that wait.
fn newest_at(
    db: &impl Reads,
    kind: u16,
    author: &NostrKey,
    identifier: &str,
    waiting: Vec<Seq>,
) -> StoreResult<Option<(Stamp, Seq, VerifiedNostr)>> {
    let Some(number) = db.number_of(&AuthorKey::Nostr(*author))? else { return Ok(None) };
    let mut newest: Option<(Stamp, Seq, VerifiedNostr)> = None;
    let winner = db.address_winner(kind, number, &AddressName::of(identifier))?.map(|(_, seq)| seq);
    for seq in waiting.into_iter().chain(winner) {
        let (Some(row), Some(Opened::Nostr(event))) = (db.event(seq)?, db.open_event(seq)?) else { continue };
        let is_it = event.kind == kind && event.author == *author && event.value("d") == Some(identifier);
        let place = winning_place(event.stamp());
        if is_planted(PlantedBug::DeletedAddressComesBack) && matches!(row.content, ContentState::Deleted { .. }) {
            continue;
        }
        if is_it && newest.as_ref().is_none_or(|(other, _, _)| *other < place) && !is_ahead(&row.stage) {
            newest = Some((place, seq, event));
        }
    }
    // A deleted one keeps its place, so that nothing older comes back.
    let Some((place, seq, event)) = newest else { return Ok(None) };
    let Some(row) = db.event(seq)? else { return Ok(None) };
    let is_deleted = matches!(row.content, ContentState::Deleted { .. })
        || match &row.meta {
            Some(meta) => deleted_by(db, &row.id, meta, &Opened::Nostr(event.clone()))?.is_some(),
            None => false,
        };
    Ok((!is_deleted).then_some((place, seq, event)))
}

fn is_ahead(stage: &Stage) -> bool {
    matches!(stage, Stage::Held { unmet, .. } if unmet.iter().any(|need| matches!(need, Need::Time(_))))
}
