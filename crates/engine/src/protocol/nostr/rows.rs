//! The rows of an applied event: where it is found by filters, its place at its address, whom it deletes; and which
//! repositories have to be looked at when it is applied.

use super::deletion::delete_rows;
use super::maintainers;
use crate::change::{Change, NostrChange};
use crate::protocol::AppliedEvent;
use crate::reads::{Reads, StoreResult};
use crate::rows::Alignment;
use model::nostr::{
    ANNOUNCEMENT, Address, AddressName, Announcement, RepositoryState, STATE, VerifiedNostr, contribution_identifier,
    named_repositories, tip_of,
};
use model::planted::{PlantedBug, is_planted};
use model::{EventId, Group, Stamp};
use std::collections::BTreeSet;

/// Where an event stands among those at its address: by time, and at the same time the least id last. The last wins.
/// The place of a place is the stamp again.
pub(crate) fn winning_place(stamp: Stamp) -> Stamp {
    if is_planted(PlantedBug::NostrGreatestIdWins) {
        return stamp;
    }
    Stamp { id: EventId(stamp.id.0.map(|byte| !byte)), ..stamp }
}

pub(super) fn standing_rows(event: AppliedEvent<'_, VerifiedNostr>) -> Vec<Change> {
    let AppliedEvent { seq, stamp, meta, opened } = event;
    let mut changes = vec![
        Change::ByAuthor(meta.space, meta.author, stamp, seq),
        NostrChange::Found { kind: opened.kind, stamp, tags: indexed_tags(opened), seq }.into(),
    ];
    if let Some(address) = Address::of(opened) {
        let name = AddressName::of(&address.identifier);
        changes.push(NostrChange::Address(opened.kind, name, meta.author, winning_place(stamp), seq).into());
    }
    changes.extend(delete_rows(meta.author, stamp, opened, seq));
    changes
}

/// The tags by which an event is found: those of one letter, with their first value.
fn indexed_tags(event: &VerifiedNostr) -> BTreeSet<(u8, AddressName)> {
    let letter = |name: &str| match name.as_bytes() {
        [letter] if letter.is_ascii_alphabetic() => Some(*letter),
        _ => None,
    };
    let tags = event.tags.iter().filter_map(|tag| Some((letter(tag.first()?)?, AddressName::of(tag.get(1)?))));
    tags.collect()
}

/// The repositories whose refs may have to change because an event came, is applied, is deleted or waits no more. What the
/// event changes itself is not in the store yet, or still is.
pub(super) fn alignments(db: &impl Reads, event: &VerifiedNostr) -> StoreResult<Vec<Change>> {
    let about = match event.kind {
        ANNOUNCEMENT => Announcement::of(event).map(|own| (own.identifier, own.maintainers)),
        STATE => RepositoryState::of(event).map(|state| (state.identifier, BTreeSet::new())),
        _ => None,
    };
    let mut aligned = Vec::new();
    if let Some((identifier, named)) = about {
        for owner in maintainers::concerned(db, &event.author, &identifier, &named)? {
            aligned.push(Alignment { owner, identifier: identifier.clone(), pull_request: None });
        }
    }
    if tip_of(event).is_some() {
        let is_contributed = event.tags_of("clone").flatten().any(|url| url.contains("/prs/"));
        for Address { author: owner, identifier, .. } in named_repositories(event, &["a"]) {
            if let Some(own) = contribution_identifier(&identifier).filter(|_| is_contributed) {
                aligned.push(Alignment { owner: event.author, identifier: own, pull_request: Some(event.id) });
            }
            aligned.push(Alignment { owner, identifier, pull_request: Some(event.id) });
        }
    }
    let mut changes: Vec<Change> = aligned.into_iter().map(|alignment| NostrChange::Align(alignment).into()).collect();
    // What its maintainers wait for may be where it says.
    let announced = Announcement::of(event).map(|own| Change::Source(Group::Repository(own.identifier)));
    changes.extend(announced);
    Ok(changes)
}
