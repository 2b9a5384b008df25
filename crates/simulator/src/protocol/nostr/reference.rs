//! The naive model of the `nostr` protocol: what is served, and which refs each repository has, from the set of events and
//! what git data is here. It reads tags by itself and shares nothing with the engine.

use super::{IDENTIFIER, URL};
use model::Stamp;
use model::crypto::content_hash;
use model::nostr::VerifiedNostr;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The git data that is here, by the text of its owner's key.
#[derive(Clone, Debug, Default)]
pub struct GitHere {
    pub objects: BTreeSet<(String, String)>,
    pub repositories: BTreeSet<String>,
}

/// The refs of a repository: names and objects, and the branch that is checked out.
pub type NaiveRefs = (BTreeMap<String, String>, Option<String>);

/// The set, and what follows from it.
#[derive(Debug)]
pub struct NostrModel<'a> {
    events: Vec<&'a VerifiedNostr>,
    git: &'a GitHere,
    applied: BTreeSet<String>,
}

impl<'a> NostrModel<'a> {
    /// The model of these events. Whatever can be applied is, again and again until nothing more can.
    pub fn new(events: impl Iterator<Item = &'a VerifiedNostr>, git: &'a GitHere) -> NostrModel<'a> {
        let mut model = NostrModel { events: events.collect(), git, applied: BTreeSet::new() };
        loop {
            let is_new = |event: &&VerifiedNostr| !model.applied.contains(&event.id.to_string());
            let events = model.events.iter().copied();
            let more: Vec<String> = events
                .filter(is_new)
                .filter(|event| model.can_be_applied(event))
                .map(|event| event.id.to_string())
                .collect();
            if more.is_empty() {
                return model;
            }
            model.applied.extend(more);
        }
    }

    pub fn is_applied(&self, event: &VerifiedNostr) -> bool {
        self.applied.contains(&event.id.to_string())
    }

    fn can_be_applied(&self, event: &VerifiedNostr) -> bool {
        let author = event.author.to_string();
        let is_here = |owner: &str, oid: &str| self.git.objects.contains(&(owner.to_owned(), oid.to_owned()));
        match event.kind {
            5 | 62 => true,
            30617 => !values(event, "clone").contains(&URL) || self.git.repositories.contains(&author),
            30618 => self.is_announced(&author) && refs_of(event).values().all(|oid| is_here(&author, oid)),
            1618 => {
                let commit = values(event, "c")[0];
                values(event, "a").into_iter().any(|address| is_here(owner_of(address), commit))
            }
            _ => {
                let addresses = values(event, "a");
                addresses.is_empty()
                    || addresses.into_iter().any(|address| self.is_announced(owner_of(address)))
                    || values(event, "e").into_iter().any(|id| self.applied.contains(id))
            }
        }
    }

    /// Whether an announcement of an author is applied.
    fn is_announced(&self, author: &str) -> bool {
        let mut announcements = self.events.iter().filter(|event| event.kind == 30617 && self.is_applied(event));
        announcements.any(|event| event.author.to_string() == author)
    }

    /// The least delete that reaches an event: by its id, or by its address or a request to vanish up to its time.
    fn deleted_by(&self, event: &VerifiedNostr) -> Option<Stamp> {
        if matches!(event.kind, 5 | 62) {
            return None;
        }
        let reaches = |delete: &&&VerifiedNostr| {
            let by_id = delete.kind == 5 && values(delete, "e").contains(&event.id.to_string().as_str());
            let address = address_of(event);
            let by_address = delete.kind == 5
                && address.is_some_and(|address| values(delete, "a").contains(&address.as_str()))
                && delete.created_at >= event.created_at;
            let by_vanishing = delete.kind == 62 && delete.created_at >= event.created_at;
            delete.author == event.author && (by_id || by_address || by_vanishing)
        };
        self.events.iter().filter(reaches).map(|delete| delete.stamp()).min()
    }

    /// Whether a delete reaches an event, which may still wait.
    pub fn is_deleted(&self, event: &VerifiedNostr) -> bool {
        self.deleted_by(event).is_some()
    }

    /// Every line of every view.
    pub fn lines(&self) -> BTreeSet<String> {
        let applied: Vec<&VerifiedNostr> = self.events.iter().copied().filter(|event| self.is_applied(event)).collect();
        let wins = |event: &VerifiedNostr, address: &String| {
            let others = applied.iter().filter(|other| address_of(other).as_ref() == Some(address));
            others.max_by_key(|other| place(other)).is_some_and(|winner| winner.id == event.id)
        };
        let line = |event: &&VerifiedNostr| {
            let content = match self.deleted_by(event) {
                Some(by) => format!("deleted:{by}"),
                None => format!("here:{}", content_hash(&[])),
            };
            let place = match address_of(event) {
                None => "",
                Some(address) if wins(event, &address) => " wins",
                Some(_) => " lost",
            };
            format!("nostr {} kind {} {} {content}{place}", event.id, event.kind, event.stamp())
        };
        applied.iter().map(line).collect()
    }

    /// The newest event of an author at the address of their repository. A deleted one keeps its place.
    fn newest(&self, kind: u16, author: &str, of_applied: bool) -> Option<&'a VerifiedNostr> {
        let own = self.events.iter().copied().filter(|event| event.kind == kind && event.author.to_string() == author);
        let newest = own.filter(|event| !of_applied || self.is_applied(event)).max_by_key(|event| place(event))?;
        self.deleted_by(newest).is_none().then_some(newest)
    }

    /// Who is connected with an owner by announcements that name each other; nobody without an announcement.
    pub fn confirmed(&self, owner: &str) -> BTreeSet<String> {
        let names = |one: &str, other: &str| {
            self.newest(30617, one, false).is_some_and(|event| values(event, "maintainers").contains(&other))
        };
        let everybody: BTreeSet<String> = self.events.iter().map(|event| event.author.to_string()).collect();
        let mut confirmed = BTreeSet::new();
        if self.newest(30617, owner, false).is_some() {
            confirmed.insert(owner.to_owned());
        }
        loop {
            let is_next = |other: &&String| {
                !confirmed.contains(*other) && confirmed.iter().any(|one| names(one, other) && names(other, one))
            };
            let Some(next) = everybody.iter().find(is_next).cloned() else { return confirmed };
            confirmed.insert(next);
        }
    }

    fn newest_state(&self, maintainers: &BTreeSet<String>, of_applied: bool) -> Option<&'a VerifiedNostr> {
        let states = maintainers.iter().filter_map(|author| self.newest(30618, author, of_applied));
        states.max_by_key(|event| place(event))
    }

    /// The branches of a repository: those of the newest applied state, and of a newer one that waits what is here.
    pub fn refs(&self, owner: &str) -> NaiveRefs {
        let maintainers = self.confirmed(owner);
        let applied = self.newest_state(&maintainers, true);
        let (mut refs, mut head) = applied.map_or_else(Default::default, |state| (refs_of(state), head_of(state)));
        let newest = self.newest_state(&maintainers, false);
        if let Some(newest) = newest.filter(|newest| applied.is_none_or(|applied| applied.id != newest.id)) {
            let is_here =
                |oid: &String| maintainers.iter().any(|key| self.git.objects.contains(&(key.clone(), oid.clone())));
            for (name, oid) in refs_of(newest).into_iter().filter(|(_, oid)| is_here(oid)) {
                let clashes =
                    |other: &String| other.starts_with(&format!("{name}/")) || name.starts_with(&format!("{other}/"));
                refs.retain(|other, _| !clashes(other));
                refs.insert(name, oid);
            }
            head = head_of(newest).filter(|head| refs.contains_key(head)).or(head);
        }
        (refs, head)
    }

    /// Where the ref of a pull request points in an owner's repository, if it is there.
    pub fn pull_request(&self, owner: &str, event: &VerifiedNostr) -> Option<String> {
        let names_owner = values(event, "a").into_iter().any(|address| owner_of(address) == owner);
        let commit = values(event, "c").first().map(|commit| (*commit).to_owned())?;
        let is_here = self.git.objects.contains(&(owner.to_owned(), commit.clone()));
        let is_open = self.is_applied(event) && self.deleted_by(event).is_none();
        Some(commit).filter(|_| names_owner && is_here && is_open)
    }
}

/// The order of events at an address: the latest wins, and of two of the same second the one with the lowest id.
fn place(event: &VerifiedNostr) -> (u64, Reverse<String>) {
    (event.created_at, Reverse(event.id.to_string()))
}

fn values<'e>(event: &'e VerifiedNostr, name: &str) -> Vec<&'e str> {
    let tags = event.tags.iter().filter(|tag| tag[0] == name);
    // Of an `a`, `c`, or `e` the first value counts; of the others all do.
    let most = if name.len() == 1 { 2 } else { usize::MAX };
    tags.flat_map(|tag| tag.iter().take(most).skip(1).map(String::as_str)).collect()
}

fn owner_of(address: &str) -> &str {
    address.split(':').nth(1).unwrap_or_default()
}

fn address_of(event: &VerifiedNostr) -> Option<String> {
    match event.kind {
        0 => Some(format!("0:{}:", event.author)),
        30617 | 30618 => Some(format!("{}:{}:{IDENTIFIER}", event.kind, event.author)),
        _ => None,
    }
}

/// Of two that name one ref the first counts, and of two of which one is a folder of the other the shorter.
fn refs_of(event: &VerifiedNostr) -> BTreeMap<String, String> {
    let mut refs: BTreeMap<String, String> = BTreeMap::new();
    for tag in event.tags.iter().filter(|tag| tag[0].starts_with("refs/")) {
        refs.entry(tag[0].clone()).or_insert_with(|| tag[1].clone());
    }
    let all = refs.clone();
    refs.retain(|name, _| !all.keys().any(|other| name.starts_with(&format!("{other}/"))));
    refs
}

fn head_of(event: &VerifiedNostr) -> Option<String> {
    values(event, "HEAD").first().map(|head| head.trim_start_matches("ref: ").to_owned())
}
