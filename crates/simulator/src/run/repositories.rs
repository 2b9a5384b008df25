//! The `nostr` protocol in a run: events about git repositories and their git data arrive among all others, and an aligner
//! without a disk makes refs follow rows as the thread of a real node does.

use super::ending::difference;
use super::{Item, Run, SimNode};
use crate::protocol::nostr::reference::{GitHere, NaiveRefs, NostrModel};
use crate::protocol::nostr::world::AUTHORS;
use crate::protocol::nostr::{IDENTIFIER, URL, key};
use crate::requests::SimRequest;
use engine::protocol::nostr::maintainers::{announcement, confirmed};
use engine::reads::{NostrReads as _, Reads as _, StoreError, StoreResult};
use engine::receive::accept_nostr;
use engine::rows::{Alignment, Origin};
use model::need::Oid;
use model::nostr::{AddressName, NostrId, ServiceName};
use model::{ContentState, NostrKey};
use node::git::{WantedRefs, wanted_pull_request, wanted_refs};
use node::nostr::{GitArrived, NoteAligned};
use std::collections::{BTreeMap, BTreeSet};

/// Alignments that were done, with their versions.
type DoneAlignments = Vec<(Alignment, u64)>;

/// Objects of one repository that a run knows: fewer than that.
const OBJECTS_MAX: usize = 1000;
/// Rounds of the aligner; more mean that it does not come to an end.
const ROUNDS_MAX: usize = 200;

/// The refs of the repositories on a node's disk, which no crash of the node changes.
#[derive(Debug, Default)]
pub(super) struct SimRepositories {
    branches: BTreeMap<NostrKey, WantedRefs>,
    pull_requests: BTreeMap<(NostrKey, NostrId), Oid>,
}

impl Run<'_> {
    pub(super) fn nostr_items(&self) -> Vec<Item> {
        let events = self.nostr.kept().map(|(index, _)| Item::Nostr(index));
        events.chain((0..self.nostr.data.len()).map(Item::GitData)).collect()
    }

    pub(super) fn nostr_request(&self, index: usize) -> Option<SimRequest> {
        accept_nostr(self.nostr.events[index].clone(), Origin::Import).ok().map(SimRequest::arrive)
    }

    /// What came for one owner is there for everybody who is confirmed by now.
    pub(super) fn git_request(&self, at: usize, index: usize) -> Option<SimRequest> {
        let data = &self.nostr.data[index];
        let owner = key(data.owner);
        let db = self.nodes[at].core.as_ref()?.store().snapshot().ok()?;
        let mut owners = confirmed(&*db, &owner, IDENTIFIER).ok()?;
        owners.insert(owner);
        Some(SimRequest::GitArrived(GitArrived {
            owners,
            identifier: IDENTIFIER.to_owned(),
            present: data.present.iter().copied().collect(),
            is_authorised: data.is_authorised,
            looks_anyway: false,
            pull_requests: BTreeSet::new(),
        }))
    }

    /// Makes some refs what rows ask for. Says whether any did.
    pub(super) fn align(&mut self, at: usize, most: usize) -> Result<bool, String> {
        let planned = self.nodes[at].plan_alignments(most);
        let (requests, done) = match planned {
            Err(_) if self.nodes[at].disk.is_dead() => return Ok(false),
            planned => planned.map_err(|fault| fault.to_string())?,
        };
        if done.is_empty() {
            return Ok(false);
        }
        let all = requests.into_iter().chain([SimRequest::NoteAligned(NoteAligned(done))]).collect();
        self.ask(at, all)?;
        Ok(true)
    }

    /// In the end everything that exists reaches the node, and refs follow.
    pub(super) fn bring_nostr(&mut self, at: usize) -> Result<(), String> {
        let mut items = self.nostr_items();
        self.random.shuffle(&mut items);
        self.bring(at, items)?;
        for _ in 0..ROUNDS_MAX {
            if !self.align(at, OBJECTS_MAX)? {
                return self.nodes[at].settle();
            }
            self.nodes[at].settle()?;
        }
        Err(format!("node {at}: refs are looked at without an end"))
    }

    /// The node serves what the model does, and its repositories have the refs that the model says.
    pub(super) fn compare_nostr(&self, node: &SimNode) -> Result<(), String> {
        let git = node.git_here()?;
        self.check_git_here(node, &git)?;
        let model = NostrModel::new(self.nostr.kept().map(|(_, event)| event), &git);
        let shown = node.lines()?.into_iter().filter(|line| is_nostr_line(line)).collect();
        difference(node.index, &model.lines(), &shown)?;
        for (_, event) in self.nostr.kept() {
            if node.is_applied(&event.id.short()) != model.is_applied(event) {
                return Err(format!("node {}: Nostr event {} is applied or not, wrongly", node.index, event.id));
            }
            if node.is_deleted(&event.id)? != model.is_deleted(event) {
                return Err(format!("node {}: Nostr event {} is deleted or not, wrongly", node.index, event.id));
            }
        }
        for owner in (1..=AUTHORS).map(key) {
            let (want, have) = (model.refs(&owner.to_string()), node.repositories.refs(&owner));
            if want != have {
                return Err(format!("node {}: refs of {owner} are {have:?} and should be {want:?}", node.index));
            }
            for (_, event) in self.nostr.kept().filter(|(_, event)| event.kind == 1618) {
                let want = model.pull_request(&owner.to_string(), event);
                let have = node.repositories.pull_requests.get(&(owner, event.id)).map(text);
                if want != have {
                    let (index, id) = (node.index, event.id);
                    return Err(format!("node {index}: pull request {id} at {owner} is {have:?}, not {want:?}"));
                }
            }
        }
        Ok(())
    }

    /// Whatever was brought is known to be here, and nothing is of which nobody who was ever confirmed has brought it.
    fn check_git_here(&self, node: &SimNode, git: &GitHere) -> Result<(), String> {
        let everything = NostrModel::new(self.nostr.kept().map(|(_, event)| event), git);
        let mut brought: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for data in &self.nostr.data {
            let owner = key(data.owner).to_string();
            for owner in everything.confirmed(&owner).into_iter().chain([owner]) {
                let lacks = data.present.iter().any(|oid| !git.objects.contains(&(owner.clone(), text(oid))));
                if lacks || data.is_authorised && !git.repositories.contains(&owner) {
                    return Err(format!("node {}: git data of {owner} came and is not known", node.index));
                }
            }
            for friend in self.ever_together(data.owner) {
                brought.entry(friend).or_default().extend(data.present.iter().map(text));
            }
        }
        let is_stray = |(owner, oid): &&(String, String)| !brought.get(owner).is_some_and(|oids| oids.contains(oid));
        match git.objects.iter().find(is_stray) {
            Some((owner, oid)) => {
                Err(format!("node {}: {oid} of a stranger is in the repository of {owner}", node.index))
            }
            None => Ok(()),
        }
    }

    /// Whoever may have been confirmed together with an author, at any time: some announcements of both name each other.
    fn ever_together(&self, author: u8) -> BTreeSet<String> {
        let names = |one: u8, other: u8| {
            let mut announcements = self.nostr.kept().map(|(_, event)| event).filter(|event| event.kind == 30617);
            announcements.any(|event| {
                let named = event.tags.iter().filter(|tag| tag[0] == "maintainers").flatten();
                event.author == key(one) && named.into_iter().any(|name| *name == key(other).to_string())
            })
        };
        let mut together = BTreeSet::from([author]);
        while let Some(next) = (1..=AUTHORS).find(|other| {
            !together.contains(other) && together.iter().any(|one| names(*one, *other) && names(*other, *one))
        }) {
            together.insert(next);
        }
        together.into_iter().map(|author| key(author).to_string()).collect()
    }
}

impl SimNode {
    /// What the thread of a real node would do: refs first, on the disk; then rows for what co-maintainers share; then the
    /// word that it is done.
    fn plan_alignments(&mut self, most: usize) -> StoreResult<(Vec<SimRequest>, DoneAlignments)> {
        let Some(core) = &self.core else { return Ok(Default::default()) };
        let db = core.store().snapshot()?;
        let asked = db.repositories_to_align(most)?;
        let mut requests = Vec::new();
        for (alignment, _) in &asked {
            let owner = alignment.owner;
            if let Some(id) = alignment.pull_request {
                match wanted_pull_request(&db, alignment, &id)? {
                    Some(oid) => drop(self.repositories.pull_requests.insert((owner, id), oid)),
                    None => drop(self.repositories.pull_requests.remove(&(owner, id))),
                }
                continue;
            }
            let wanted = wanted_refs(&db, &owner, IDENTIFIER)?;
            let present: BTreeSet<Oid> = wanted.refs.values().copied().collect();
            self.repositories.branches.insert(owner, wanted);
            let service = ServiceName::of_url(URL);
            let is_listed = announcement(&*db, &owner, IDENTIFIER)?
                .is_some_and(|announced| service.is_some_and(|service| announced.lists(service)));
            if is_listed && !present.is_empty() {
                let (owners, identifier) = ([owner].into(), IDENTIFIER.to_owned());
                let shared = GitArrived {
                    owners,
                    identifier,
                    present,
                    is_authorised: true,
                    looks_anyway: false,
                    pull_requests: BTreeSet::new(),
                };
                requests.push(SimRequest::GitArrived(shared));
            }
        }
        Ok((requests, asked))
    }

    /// Whether an event is deleted, be it applied or held.
    fn is_deleted(&self, id: &NostrId) -> Result<bool, String> {
        let read = || -> StoreResult<bool> {
            let db = self.core().map_err(StoreError::Broken)?.store().snapshot()?;
            let row = db.seq(&id.short())?.map(|seq| db.event(seq)).transpose()?.flatten();
            Ok(row.is_some_and(|row| matches!(row.content, ContentState::Deleted { .. })))
        };
        read().map_err(|fault| fault.to_string())
    }

    /// The git data that is known to be here.
    fn git_here(&self) -> Result<GitHere, String> {
        let read = || -> StoreResult<GitHere> {
            let db = self.core().map_err(StoreError::Broken)?.store().snapshot()?;
            let mut here = GitHere::default();
            for owner in (1..=AUTHORS).map(key) {
                let oids = db.present_objects(&owner, &AddressName::of(IDENTIFIER), None, OBJECTS_MAX)?;
                here.objects.extend(oids.iter().map(|oid| (owner.to_string(), text(oid))));
                if db.has_git_data(&owner, IDENTIFIER)? {
                    here.repositories.insert(owner.to_string());
                }
            }
            Ok(here)
        };
        read().map_err(|fault| fault.to_string())
    }
}

impl SimRepositories {
    fn refs(&self, owner: &NostrKey) -> NaiveRefs {
        let refs = self.branches.get(owner).cloned().unwrap_or_default();
        (refs.refs.iter().map(|(name, oid)| (name.clone(), text(oid))).collect(), refs.head)
    }
}

fn text(oid: &Oid) -> String {
    oid.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a line belongs to the views of this protocol.
pub(super) fn is_nostr_line(line: &str) -> bool {
    line.starts_with("nostr ")
}
