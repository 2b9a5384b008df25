//! What a push may do: make refs what the newest state of a confirmed maintainer says, and bring the commits of pull
//! requests.

use super::maintainers::{self, Known};
use crate::opened::Opened;
use crate::reads::{Reads, StoreResult};
use model::NostrKey;
use model::need::Oid;
use model::nostr::{Address, NostrId, RepositoryState, named_repositories, tip_of};
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
            // It would bring objects and change nothing.
            _ if update.old == update.new => Some("the ref is there already".to_owned()),
            Some(id) if update.new != NO_OBJECT => match commit_of(db, owner, identifier, &id)? {
                PullRequestCommit::Unknown => {
                    before_their_events.push((id, update.new));
                    None
                }
                PullRequestCommit::Is(oid) if oid == update.new => None,
                PullRequestCommit::Is(oid) => Some(format!("the event is about commit {}", hex::encode(oid))),
                PullRequestCommit::NotOne => Some("that event is no pull request to this repository".to_owned()),
            },
            Some(_) => Some("refs of pull requests are not deleted by pushes".to_owned()),
            None => why_not(state.as_ref(), update),
        };
        refused.extend(why.map(|why| (update.name.clone(), why)));
    }
    Ok(if refused.is_empty() { PushDecision::Allowed { before_their_events } } else { PushDecision::Refused(refused) })
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
        (None, _) => Some("the newest repository state does not have this ref".to_owned()),
    }
}

/// What is known of the event that a pull request is pushed for.
enum PullRequestCommit {
    Unknown,
    Is(Oid),
    NotOne,
}

fn commit_of(db: &impl Reads, owner: &NostrKey, identifier: &str, id: &NostrId) -> StoreResult<PullRequestCommit> {
    let Some(seq) = db.seq(&id.short())? else { return Ok(PullRequestCommit::Unknown) };
    let Some(Opened::Nostr(event)) = db.open_event(seq)? else { return Ok(PullRequestCommit::NotOne) };
    let is_deleted = db.event(seq)?.is_some_and(|row| matches!(row.content, ContentState::Deleted { .. }));
    let is_for = |address: &Address| address.author == *owner && address.identifier == identifier;
    let is_one = event.id == *id && !is_deleted && named_repositories(&event, &["a"]).iter().any(is_for);
    Ok(tip_of(&event).filter(|_| is_one).map_or(PullRequestCommit::NotOne, PullRequestCommit::Is))
}
