//! What an event waits for.
//!
//! Where one of several will do, all of them are listed while none is met: POST looks at the event again whenever one is.

use crate::context::StepContext;
use crate::reads::{Reads, StoreResult};
use model::nostr::{
    ANNOUNCEMENT, Address, AddressName, Announcement, DELETION, PULL_REQUEST, PULL_REQUEST_UPDATE, RepositoryState,
    STATE, VANISH, VerifiedNostr, contributed_repositories, event_ids, named_repositories, tip_of,
};
use model::{AuthorKey, Need, NostrKey};
use std::collections::BTreeSet;

/// Of one event, so many missing objects are rows at a time; the next follow when these are here.
const MISSING_OBJECTS_MAX: usize = 16;

/// The need for something at an address.
pub(super) fn need_for(address: Address) -> Need {
    Need::Address { kind: address.kind, author: address.author, identifier: address.identifier }
}

/// Whether an event at an address is applied.
pub(super) fn is_applied_at(db: &impl Reads, kind: u16, author: &NostrKey, identifier: &str) -> StoreResult<bool> {
    let Some(author) = db.number_of(&AuthorKey::Nostr(*author))? else { return Ok(false) };
    Ok(db.address_winner(kind, author, &AddressName::of(identifier))?.is_some())
}

/// What is missing before the event can be applied; nothing if it can.
pub(super) fn unmet(db: &impl Reads, context: &StepContext, event: &VerifiedNostr) -> StoreResult<Vec<Need>> {
    let opens_at = event.at().minus(context.policy.future_nanos);
    if opens_at > context.now {
        return Ok(vec![Need::Time(opens_at)]);
    }
    match event.kind {
        ANNOUNCEMENT => unmet_of_announcement(db, context, event),
        STATE => unmet_of_state(db, event),
        PULL_REQUEST | PULL_REQUEST_UPDATE => unmet_of_pull_request(db, context, event),
        // A delete reaches what is held, and what comes later, as well.
        DELETION | VANISH => Ok(Vec::new()),
        _ => unmet_of_other(db, event),
    }
}

/// An announcement waits until its repository here has data; one of a repository elsewhere waits for nothing.
fn unmet_of_announcement(db: &impl Reads, context: &StepContext, event: &VerifiedNostr) -> StoreResult<Vec<Need>> {
    let Some(announcement) = Announcement::of(event) else { return Ok(Vec::new()) };
    if !context.policy.service.is_some_and(|service| announcement.lists(service))
        || db.has_git_data(&announcement.owner, &announcement.identifier)?
    {
        return Ok(Vec::new());
    }
    Ok(vec![Need::GitData { owner: announcement.owner, identifier: announcement.identifier }])
}

/// A state waits for the announcement by the same author, and for everything that its refs point at.
fn unmet_of_state(db: &impl Reads, event: &VerifiedNostr) -> StoreResult<Vec<Need>> {
    let Some(state) = RepositoryState::of(event) else { return Ok(Vec::new()) };
    let mut unmet = Vec::new();
    if !is_applied_at(db, ANNOUNCEMENT, &state.author, &state.identifier)? {
        let (kind, author, identifier) = (ANNOUNCEMENT, state.author, state.identifier.clone());
        unmet.push(Need::Address { kind, author, identifier });
    }
    let oids: BTreeSet<_> = state.refs.values().copied().collect();
    for oid in oids {
        if unmet.len() >= MISSING_OBJECTS_MAX {
            break;
        }
        if !db.is_git_present(&state.author, &state.identifier, &oid)? {
            unmet.push(Need::GitObject { owner: state.author, identifier: state.identifier.clone(), oid });
        }
    }
    Ok(unmet)
}

/// A pull request waits for its commit in one of the repositories that it names, or in the one for pull requests that its
/// author has here.
fn unmet_of_pull_request(db: &impl Reads, context: &StepContext, event: &VerifiedNostr) -> StoreResult<Vec<Need>> {
    let Some(oid) = tip_of(event) else { return Ok(Vec::new()) };
    let contributed = context.policy.service.map(|service| contributed_repositories(event, service));
    let named = named_repositories(event, &["a"]).into_iter().map(|address| (address.author, address.identifier));
    let own = contributed.into_iter().flatten().map(|identifier| (event.author, identifier));
    let mut unmet = Vec::new();
    for (owner, identifier) in own.chain(named) {
        if db.is_git_present(&owner, &identifier, &oid)? {
            return Ok(Vec::new());
        }
        if unmet.len() < MISSING_OBJECTS_MAX {
            unmet.push(Need::GitObject { owner, identifier, oid });
        }
    }
    Ok(unmet)
}

/// Anything else that names repositories waits for one of them, or for one of the events that it names.
fn unmet_of_other(db: &impl Reads, event: &VerifiedNostr) -> StoreResult<Vec<Need>> {
    let mut unmet = Vec::new();
    for Address { kind, author, identifier } in named_repositories(event, &["a", "A"]) {
        if is_applied_at(db, kind, &author, &identifier)? {
            return Ok(Vec::new());
        }
        unmet.push(Need::Address { kind, author, identifier });
    }
    if unmet.is_empty() {
        return Ok(unmet);
    }
    for id in event_ids(event, &["e", "E", "q"]) {
        match db.seq(&id.short())? {
            Some(seq) if db.event(seq)?.is_some_and(|row| row.is_applied()) => return Ok(Vec::new()),
            // It will never come.
            None if db.refused(&id.short())?.is_some() => {}
            Some(_) | None => unmet.push(Need::Event(id.short())),
        }
    }
    Ok(unmet)
}
