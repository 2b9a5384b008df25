//! What a client's event is taken for, as of now: it is about a repository here, or about something that is. What is turned
//! away is not remembered and may come again.

use super::deletion::deleted_by;
use super::maintainers::{announcement, confirmed};
use super::says_what_its_kind_asks;
use crate::opened::Opened;
use crate::policy::Policy;
use crate::reads::{Reads, StoreResult};
use crate::rows::Owner;
use model::nostr::{
    ANNOUNCEMENT, Address, Announcement, DELETION, PULL_REQUEST, PULL_REQUEST_UPDATE, RepositoryState, STATE,
    ServiceName, VANISH, VerifiedNostr, contributed_repositories, event_ids, named_repositories,
};
use model::{AuthorKey, Nanos, NostrKey, SpaceId, Stamp};

/// Announcements of one identifier that are looked at for whom they name.
const ANNOUNCEMENTS_MAX: usize = 256;
/// User grasp lists: the services on which somebody keeps repositories.
const GRASP_LIST: u16 = 10_317;
/// Profiles and lists of relays, which are taken of whoever takes part.
const OF_PARTICIPANTS: [u16; 3] = [0, 10_002, GRASP_LIST];

/// Private messages (NIP-04, NIP-17, NIP-59): everybody may read what is here.
const PRIVATE: [u16; 5] = [4, 13, 14, 15, 1059];

/// Why an event is turned away: a word that programs know, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotAdmitted {
    pub prefix: &'static str,
    pub why: String,
}

fn not_admitted(prefix: &'static str, why: impl Into<String>) -> Result<(), NotAdmitted> {
    Err(NotAdmitted { prefix, why: why.into() })
}

/// Whether an event of a client is taken.
pub fn admit<R: Reads>(
    db: &R,
    policy: &Policy,
    now: Nanos,
    event: &VerifiedNostr,
) -> StoreResult<Result<(), NotAdmitted>> {
    let Some(service) = policy.service else {
        return Ok(not_admitted("error", "this node does not know its own address: `public_url` is not set"));
    };
    if let Err(why) = admit_gathered(db, now, event)? {
        return Ok(Err(why));
    }
    Ok(match event.kind {
        ANNOUNCEMENT => admit_announcement(db, service, event)?,
        STATE => admit_state(db, event)?,
        PULL_REQUEST | PULL_REQUEST_UPDATE if is_about_a_repository(db, event)? => Ok(()),
        PULL_REQUEST | PULL_REQUEST_UPDATE
            if policy.takes_contributions && !contributed_repositories(event, service).is_empty() =>
        {
            Ok(())
        }
        VANISH if !names_service(event, service) => {
            not_admitted("blocked", "the request to vanish is for other relays")
        }
        DELETION | VANISH if is_participant(db, &event.author)? => Ok(()),
        kind if OF_PARTICIPANTS.contains(&kind) && is_participant(db, &event.author)? => Ok(()),
        GRASP_LIST if event.tags_of("g").flatten().any(|url| ServiceName::of_url(url) == Some(service)) => Ok(()),
        _ if refers_to_known(db, event)? || is_referred_to(db, event)? => Ok(()),
        _ => not_admitted("blocked", "nothing that this event refers to is here; send that first"),
    })
}

/// Whether an event that another relay had is taken: what is never taken is not, and the rest waits for what it refers to.
pub fn admit_gathered<R: Reads>(db: &R, now: Nanos, event: &VerifiedNostr) -> StoreResult<Result<(), NotAdmitted>> {
    if event.expires_at().is_some_and(|at| at <= now.0 / Nanos::SECOND) {
        return Ok(not_admitted("invalid", "the event has expired"));
    }
    if matches!(event.kind, ANNOUNCEMENT | STATE) && event.expires_at().is_some() {
        return Ok(not_admitted("blocked", "repositories do not expire here; delete the announcement instead"));
    }
    if is_deleted(db, event)? {
        return Ok(not_admitted("blocked", "its author has deleted it"));
    }
    if !says_what_its_kind_asks(event) {
        return Ok(not_admitted("invalid", "a tag that events of this kind must have is missing or malformed"));
    }
    Ok(match event.kind {
        kind if PRIVATE.contains(&kind) => not_admitted("blocked", "private messages are not relayed here"),
        20_000..=29_999 => not_admitted("blocked", "ephemeral events are not relayed here"),
        _ => Ok(()),
    })
}

/// Whether a delete of its author that is here reaches it.
fn is_deleted(db: &impl Reads, event: &VerifiedNostr) -> StoreResult<bool> {
    let Some(author) = db.number_of(&AuthorKey::Nostr(event.author))? else { return Ok(false) };
    Ok(deleted_by(db, &event.id.short(), author, event)?.is_some())
}

/// Whether a request to vanish (NIP-62) is for this relay.
fn names_service(event: &VerifiedNostr, service: ServiceName) -> bool {
    let mut relays = event.tags_of("relay").flatten();
    relays.any(|relay| relay == "ALL_RELAYS" || ServiceName::of_url(relay) == Some(service))
}

fn admit_announcement(
    db: &impl Reads,
    service: ServiceName,
    event: &VerifiedNostr,
) -> StoreResult<Result<(), NotAdmitted>> {
    let Some(own) = Announcement::of(event) else { return Ok(not_admitted("invalid", "it names no repository")) };
    if own.lists(service) || is_named(db, &own)? {
        return Ok(Ok(()));
    }
    Ok(not_admitted("blocked", "the announcement must list this service in its `clone` and its `relays` tag"))
}

/// Whether an announcement that is here names the owner of this one as a maintainer.
fn is_named(db: &impl Reads, own: &Announcement) -> StoreResult<bool> {
    let names = |event: &VerifiedNostr| {
        Announcement::of(event)
            .is_some_and(|other| other.identifier == own.identifier && other.maintainers.contains(&own.owner))
    };
    for seq in db.held_announcements(&own.identifier, ANNOUNCEMENTS_MAX)? {
        if matches!(db.open_event(seq)?, Some(Opened::Nostr(other)) if names(&other)) {
            return Ok(true);
        }
    }
    let name = model::nostr::AddressName::of(&own.identifier);
    for author in db.authors_at(ANNOUNCEMENT, &name, ANNOUNCEMENTS_MAX)? {
        let Some((_, seq)) = db.address_winner(ANNOUNCEMENT, author, &name)? else { continue };
        if matches!(db.open_event(seq)?, Some(Opened::Nostr(other)) if names(&other)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn admit_state(db: &impl Reads, event: &VerifiedNostr) -> StoreResult<Result<(), NotAdmitted>> {
    let Some(state) = RepositoryState::of(event) else { return Ok(not_admitted("invalid", "it names no repository")) };
    if confirmed(db, &state.author, &state.identifier)?.contains(&state.author) {
        return Ok(Ok(()));
    }
    Ok(not_admitted("blocked", "no announcement of this repository by the same author is here; send that first"))
}

fn is_about_a_repository(db: &impl Reads, event: &VerifiedNostr) -> StoreResult<bool> {
    for address in named_repositories(event, &["a", "A"]) {
        if announcement(db, &address.author, &address.identifier)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether something of an author is here, held or applied.
fn is_participant(db: &impl Reads, author: &NostrKey) -> StoreResult<bool> {
    let Some(number) = db.number_of(&AuthorKey::Nostr(*author))? else { return Ok(false) };
    if db.held_count(Owner::Author(number))? > 0 {
        return Ok(true);
    }
    let Some(commons) = db.space_no(&SpaceId::COMMONS)? else { return Ok(false) };
    Ok(!db.by_author(commons, number, Stamp::FIRST, 1)?.is_empty())
}

/// Whether one of the repositories or events that it names is here, held or applied.
fn refers_to_known(db: &impl Reads, event: &VerifiedNostr) -> StoreResult<bool> {
    if is_about_a_repository(db, event)? {
        return Ok(true);
    }
    for id in event_ids(event, &["e", "E", "q"]) {
        if db.seq(&id.short())?.is_some() {
            return Ok(true);
        }
    }
    for address in named_repositories(event, &["q"]) {
        if announcement(db, &address.author, &address.identifier)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether an applied event names it.
fn is_referred_to(db: &impl Reads, event: &VerifiedNostr) -> StoreResult<bool> {
    let id = event.id.to_string();
    for letter in [b'e', b'E', b'q'] {
        if db.has_tag(letter, &id)? {
            return Ok(true);
        }
    }
    let Some(address) = Address::of(event).map(|address| address.to_string()) else { return Ok(false) };
    Ok(db.has_tag(b'a', &address)? || db.has_tag(b'A', &address)? || db.has_tag(b'q', &address)?)
}
