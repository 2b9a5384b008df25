//! Which refs a repository should have: what applied states and pull requests say, and of a state that still waits what is
//! here already.

use super::arrival::ArrivedData;
use engine::Opened;
use engine::protocol::nostr::maintainers::{self, Known};
use engine::reads::{NostrReads as _, Reads, StoreResult};
use engine::rows::Alignment;
use git::RefWrite;
use model::NostrKey;
use model::need::Oid;
use model::nostr::{
    Address, NostrId, VerifiedNostr, contributed_repositories, is_contribution, named_repositories, tip_of,
};
use model::stage::ContentState;
use std::collections::BTreeMap;
use store::Db;
use store::tables::TableReads;

/// Branches, tags and `HEAD` as they should be.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WantedRefs {
    pub refs: BTreeMap<String, Oid>,
    pub head: Option<String>,
}

/// What a repository should have, whatever it has.
pub fn wanted_refs<V: TableReads>(db: &Db<V>, owner: &NostrKey, identifier: &str) -> StoreResult<WantedRefs> {
    let maintainers = maintainers::confirmed(db, owner, identifier)?;
    let applied = maintainers::newest_state(db, &maintainers, identifier, Known::Applied)?;
    let newest = maintainers::newest_state(db, &maintainers, identifier, Known::HeldOrApplied)?;
    let mut wanted = match &applied {
        Some((_, state)) => WantedRefs { refs: state.refs.clone(), head: state.head.clone() },
        None => WantedRefs::default(),
    };
    let Some((_, newest)) = newest.filter(|(seq, _)| applied.as_ref().is_none_or(|(other, _)| other != seq)) else {
        return Ok(wanted);
    };
    for (name, oid) in &newest.refs {
        // Every owner of the set has what one of them was given.
        let mut is_present = false;
        for maintainer in &maintainers {
            is_present = is_present || db.is_git_present(maintainer, identifier, oid)?;
        }
        if is_present {
            // A ref cannot be a folder of another.
            let is_around = |other: &str| {
                let (long, short) =
                    if other.len() > name.len() { (other, name.as_str()) } else { (name.as_str(), other) };
                long.strip_prefix(short).is_some_and(|rest| rest.starts_with('/'))
            };
            wanted.refs.retain(|other, _| !is_around(other));
            wanted.refs.insert(name.clone(), *oid);
        }
    }
    if let Some(head) = newest.head.filter(|head| wanted.refs.contains_key(head)) {
        wanted.head = Some(head);
    }
    Ok(wanted)
}

/// Where the ref of a pull request in a repository should point, if it should be there.
pub fn wanted_pull_request<V: TableReads>(db: &Db<V>, of: &Alignment, id: &NostrId) -> StoreResult<Option<Oid>> {
    let pushed = db.pushed_commit(of)?.map(|pushed| pushed.oid);
    let Some(seq) = db.seq(&id.short())? else { return Ok(pushed) };
    let (Some(row), Some(Opened::Nostr(event))) = (db.event(seq)?, db.open_event(seq)?) else { return Ok(None) };
    let is_for = event.id == *id && is_for(db, of, &event);
    let is_deleted = matches!(row.content, ContentState::Deleted { .. });
    let tip = tip_of(&event).filter(|_| is_for && !is_deleted);
    let Some(tip) = tip else { return Ok(None) };
    let is_here = db.is_git_present(&of.owner, &of.identifier, &tip)?;
    Ok((row.is_applied() && is_here || pushed == Some(tip)).then_some(tip))
}

/// Whether a pull request is for a repository, or says that its commit is in it.
fn is_for<V: TableReads>(db: &Db<V>, of: &Alignment, event: &VerifiedNostr) -> bool {
    if is_contribution(&of.identifier) {
        let service = db.policy().service;
        let own = service.map(|service| contributed_repositories(event, service)).unwrap_or_default();
        return event.author == of.owner && own.contains(&of.identifier);
    }
    let names = |address: &Address| address.author == of.owner && address.identifier == of.identifier;
    named_repositories(event, &["a"]).iter().any(names)
}

/// The repository for pull requests of its author that has the commit of a pull request which an announced repository lacks.
pub(super) fn contributed_commit<V: TableReads>(
    db: &Db<V>,
    of: &Alignment,
    id: &NostrId,
) -> StoreResult<Option<(NostrKey, String, Oid)>> {
    let Some(seq) = db.seq(&id.short())? else { return Ok(None) };
    let (Some(row), Some(Opened::Nostr(event))) = (db.event(seq)?, db.open_event(seq)?) else { return Ok(None) };
    let is_deleted = matches!(row.content, ContentState::Deleted { .. });
    let wanted = event.id == *id && row.is_applied() && !is_deleted && is_for(db, of, &event);
    let (Some(oid), Some(service)) = (tip_of(&event).filter(|_| wanted), db.policy().service) else { return Ok(None) };
    if db.is_git_present(&of.owner, &of.identifier, &oid)? {
        return Ok(None);
    }
    for identifier in contributed_repositories(&event, service) {
        if db.is_git_present(&event.author, &identifier, &oid)? {
            return Ok(Some((event.author, identifier, oid)));
        }
    }
    Ok(None)
}

/// What has to change, counted.
pub(super) fn differences(
    current: &BTreeMap<String, Oid>,
    wanted: &BTreeMap<String, Oid>,
    arrived: &mut ArrivedData,
) -> Vec<RefWrite> {
    let mut changes = Vec::new();
    for (name, oid) in wanted {
        match current.get(name) {
            Some(same) if same == oid => continue,
            Some(_) => arrived.refs_updated += 1,
            None => arrived.refs_created += 1,
        }
        changes.push(RefWrite { name: name.clone(), to: Some(*oid) });
    }
    for name in current.keys().filter(|name| !wanted.contains_key(*name)) {
        arrived.refs_deleted += 1;
        changes.push(RefWrite { name: name.clone(), to: None });
    }
    changes
}
