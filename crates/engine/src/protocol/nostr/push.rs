//! What a push may do: make refs what the newest state of a confirmed maintainer says, and bring the commits of pull
//! requests.

use super::maintainers::{self, Known};
use crate::opened::Opened;
use crate::reads::{Reads, StoreResult};
use model::NostrKey;
use model::need::Oid;
use model::nostr::{
    Address, NostrId, RepositoryState, ServiceName, VerifiedNostr, contributed_repositories, named_repositories, tip_of,
};
use model::stage::ContentState;
use std::collections::BTreeMap;

/// Where the commits of pull requests are pushed to.
const PULL_REQUEST_REFS: &str = "refs/nostr/";
/// No object: the ref is created, or deleted.
pub const NO_OBJECT: Oid = [0; 20];

/// A ref that a push wants to change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefUpdate {
    pub name: String,
    pub old: Oid,
    pub new: Oid,
}

impl RefUpdate {
    /// The pull request that a ref belongs to, if it is one of those.
    pub fn pull_request(&self) -> Option<NostrId> {
        // No event has this id, which stands for none.
        self.name.strip_prefix(PULL_REQUEST_REFS)?.parse().ok().filter(|id| *id != NostrId::ZERO)
    }
}

/// What becomes of a push.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PushDecision {
    /// All of it is what was announced; these are pull requests whose events are not here yet.
    Allowed { before_their_events: Vec<(NostrId, Oid)> },
    /// There is no such repository here.
    NoRepository,
    /// Each ref that it may not change so, and why.
    Refused(BTreeMap<String, String>),
}

/// Decides about a push, as of now.
pub fn decide(db: &impl Reads, owner: &NostrKey, identifier: &str, updates: &[RefUpdate]) -> StoreResult<PushDecision> {
    let maintainers = maintainers::confirmed(db, owner, identifier)?;
    if maintainers.is_empty() {
        return Ok(PushDecision::NoRepository);
    }
    let state = maintainers::newest_state(db, &maintainers, identifier, Known::HeldOrApplied)?.map(|(_, state)| state);
    let (mut refused, mut before_their_events) = (BTreeMap::new(), Vec::new());
    for update in updates {
        let why = match update.pull_request() {
            Some(id) => {
                let names = |address: &Address| address.author == *owner && address.identifier == identifier;
                let is_for = |event: &VerifiedNostr| named_repositories(event, &["a"]).iter().any(names);
                why_not_pull_request(update, commit_of(db, &id, is_for)?, &mut before_their_events)
            }
            // It would bring objects and change nothing. To delete what is gone already is no mistake: refs follow a new state
            // before the push comes that says the same.
            None if update.old == update.new && update.new != NO_OBJECT => Some("the ref is there already".to_owned()),
            None => why_not(state.as_ref(), update),
        };
        refused.extend(why.map(|why| (update.name.clone(), why)));
    }
    Ok(if refused.is_empty() { PushDecision::Allowed { before_their_events } } else { PushDecision::Refused(refused) })
}

/// Decides about a push to a contributor's repository for pull requests, as of now: it has nothing but those.
pub fn decide_contribution(
    db: &impl Reads,
    service: ServiceName,
    owner: &NostrKey,
    identifier: &str,
    updates: &[RefUpdate],
) -> StoreResult<PushDecision> {
    let (mut refused, mut before_their_events) = (BTreeMap::new(), Vec::new());
    for update in updates {
        let why = match update.pull_request() {
            None => Some("only commits of pull requests are pushed here, to refs/nostr/<event id>".to_owned()),
            Some(id) => {
                let is_for = |event: &VerifiedNostr| {
                    let own = contributed_repositories(event, service);
                    event.author == *owner && own.iter().any(|other| other == identifier)
                };
                why_not_pull_request(update, commit_of(db, &id, is_for)?, &mut before_their_events)
            }
        };
        refused.extend(why.map(|why| (update.name.clone(), why)));
    }
    Ok(if refused.is_empty() { PushDecision::Allowed { before_their_events } } else { PushDecision::Refused(refused) })
}

/// Why the ref of a pull request may not be changed so. One whose event is not here yet is noted.
fn why_not_pull_request(
    update: &RefUpdate,
    commit: PullRequestCommit,
    before_their_events: &mut Vec<(NostrId, Oid)>,
) -> Option<String> {
    match (update.pull_request(), commit) {
        // It would bring objects and change nothing.
        _ if update.old == update.new => Some("the ref is there already".to_owned()),
        _ if update.new == NO_OBJECT => Some("refs of pull requests are not deleted by pushes".to_owned()),
        (id, PullRequestCommit::Unknown) => {
            before_their_events.extend(id.map(|id| (id, update.new)));
            None
        }
        (_, PullRequestCommit::Is(oid)) if oid == update.new => None,
        (_, PullRequestCommit::Is(oid)) => Some(format!("the event is about commit {}", hex::encode(oid))),
        (_, PullRequestCommit::NotOne) => Some("that event is no pull request to this repository".to_owned()),
    }
}

/// Why a branch or tag may not be changed so; none if the state says the same.
fn why_not(state: Option<&RepositoryState>, update: &RefUpdate) -> Option<String> {
    let Some(state) = state else {
        return Some("publish a repository state (kind 30618) first: none by a maintainer is here".to_owned());
    };
    match (state.refs.get(&update.name), update.new) {
        (Some(_), NO_OBJECT) => Some("the newest repository state still has this ref".to_owned()),
        (None, NO_OBJECT) => None,
        (Some(oid), new) if *oid == new => None,
        (Some(oid), _) => Some(format!("the newest repository state says {}", hex::encode(oid))),
        (None, _) => Some("the newest repository state does not have this ref, or not as git takes it".to_owned()),
    }
}

/// What is known of the event that a pull request is pushed for.
enum PullRequestCommit {
    Unknown,
    Is(Oid),
    NotOne,
}

fn commit_of(db: &impl Reads, id: &NostrId, is_for: impl Fn(&VerifiedNostr) -> bool) -> StoreResult<PullRequestCommit> {
    let Some(seq) = db.seq(&id.short())? else { return Ok(PullRequestCommit::Unknown) };
    let Some(Opened::Nostr(event)) = db.open_event(seq)? else { return Ok(PullRequestCommit::NotOne) };
    let is_deleted = db.event(seq)?.is_some_and(|row| matches!(row.content, ContentState::Deleted { .. }));
    let is_one = event.id == *id && !is_deleted && is_for(&event);
    Ok(tip_of(&event).filter(|_| is_one).map_or(PullRequestCommit::NotOne, PullRequestCommit::Is))
}
