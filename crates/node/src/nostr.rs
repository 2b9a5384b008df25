//! What Nostr clients and git ask of the writer.

use crate::pipeline::{arrive, policy, step_context};
use crate::writer_command::WriterCommand;
use engine::Change;
use engine::change::{NostrChange, RowChange};
use engine::protocol::nostr::admit::{NotAdmitted, admit, admit_gathered};
use engine::protocol::nostr::maintainers::{announcement, confirmed};
use engine::reads::{NostrReads as _, Reads as _, StoreError, StoreResult};
use engine::receive::accept_nostr;
use engine::release;
use engine::rows::{Alignment, EventKind, Origin, Outcome, PushedCommit};
use model::need::Oid;
use model::nostr::{
    ANNOUNCEMENT, AddressName, NostrId, PULL_REQUEST, PULL_REQUEST_UPDATE, STATE, VerifiedNostr, is_contribution,
};
use model::planted::{PlantedBug, is_planted};
use model::{Need, NostrKey};
use std::collections::BTreeSet;
use store::Batch;

/// Takes an event of a client, if it is about something here.
#[derive(Clone, Debug)]
pub struct SubmitNostr(pub Box<VerifiedNostr>);

/// What became of an event of a client.
#[derive(Clone, PartialEq, Debug)]
pub enum NostrSubmission {
    /// It passed the door.
    Admitted(Outcome),
    /// It was turned away, and may come again.
    NotAdmitted(NotAdmitted),
}

impl WriterCommand for SubmitNostr {
    type Answer = NostrSubmission;
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<NostrSubmission> {
        let context = step_context(batch);
        let event = VerifiedNostr::clone(&self.0);
        // What is here already is known, whatever would be said of it today.
        if !is_known(batch, &event)?
            && let Err(why) = admit(batch.db(), &context.policy, context.now, &event)?
        {
            return Ok(NostrSubmission::NotAdmitted(why));
        }
        store_event(batch, event, Origin::Client)
    }
}

/// Takes an event that another relay had, if it may be about something here: what it refers to need not have come yet.
#[derive(Clone, Debug)]
pub struct GatherNostr(pub Box<VerifiedNostr>);

impl WriterCommand for GatherNostr {
    type Answer = NostrSubmission;
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<NostrSubmission> {
        let context = step_context(batch);
        let event = VerifiedNostr::clone(&self.0);
        if !is_known(batch, &event)?
            && let Err(why) = admit_gathered(batch.db(), context.now, &event)?
        {
            return Ok(NostrSubmission::NotAdmitted(why));
        }
        store_event(batch, event, Origin::Relay)
    }
}

fn store_event(batch: &mut Batch<'_>, event: VerifiedNostr, origin: Origin) -> StoreResult<NostrSubmission> {
    match accept_nostr(event, origin) {
        Ok(arrival) => arrive(batch, &arrival).map(NostrSubmission::Admitted),
        Err(why) => Ok(NostrSubmission::NotAdmitted(NotAdmitted { prefix: "invalid", why: why.to_string() })),
    }
}

fn is_known(batch: &Batch<'_>, event: &VerifiedNostr) -> StoreResult<bool> {
    Ok(batch.db().seq(&event.id.short())?.is_some())
}

/// Events that git data released, by what they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReleasedEvents {
    pub announcements: usize,
    pub states: usize,
    pub pull_requests: usize,
    /// Others, and lists of events that are released in transactions of their own.
    pub others: usize,
}

impl ReleasedEvents {
    fn count(&mut self, batch: &Batch<'_>, change: &Change) -> StoreResult<()> {
        let seq = match change {
            Change::Ready(RowChange::Put, seq) => *seq,
            Change::Task(RowChange::Put, _) => {
                self.others += 1;
                return Ok(());
            }
            _ => return Ok(()),
        };
        let kind = batch.db().event(seq)?.and_then(|row| row.meta).map(|meta| meta.kind);
        match kind {
            Some(EventKind::Nostr(ANNOUNCEMENT)) => self.announcements += 1,
            Some(EventKind::Nostr(STATE)) => self.states += 1,
            Some(EventKind::Nostr(PULL_REQUEST | PULL_REQUEST_UPDATE)) => self.pull_requests += 1,
            _ => self.others += 1,
        }
        Ok(())
    }
}

/// Git data came, by whichever way, and was found to be complete: what waited for it is released.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GitArrived {
    /// Repositories that share the data.
    pub owners: BTreeSet<NostrKey>,
    pub identifier: String,
    /// Objects that are there with all that they reach.
    pub present: BTreeSet<Oid>,
    /// Whether these are refs that a state authorised, which is what announcements wait for.
    pub is_authorised: bool,
    /// Whether refs are looked at even if all of this was known.
    pub looks_anyway: bool,
    /// Pull requests whose refs are looked at as well, with the owners in whose repositories.
    pub pull_requests: BTreeSet<(NostrKey, NostrId)>,
}

impl WriterCommand for GitArrived {
    type Answer = ReleasedEvents;
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<ReleasedEvents> {
        let mut needs = Vec::new();
        for owner in &self.owners {
            for oid in &self.present {
                if !batch.db().is_git_present(owner, &self.identifier, oid)? {
                    let row = NostrChange::Present(RowChange::Put, *owner, AddressName::of(&self.identifier), *oid);
                    batch.apply(vec![row.into()])?;
                    needs.push(Need::GitObject { owner: *owner, identifier: self.identifier.clone(), oid: *oid });
                }
            }
            if self.is_authorised && !batch.db().has_git_data(owner, &self.identifier)? {
                batch.apply(vec![NostrChange::Data(RowChange::Put, *owner, self.identifier.clone()).into()])?;
                needs.push(Need::GitData { owner: *owner, identifier: self.identifier.clone() });
            }
        }
        for owner in self.owners.iter().filter(|_| self.looks_anyway || !needs.is_empty()) {
            let (owner, identifier) = (*owner, self.identifier.clone());
            let refs = NostrChange::Align(Alignment { owner, identifier, pull_request: None });
            batch.apply(vec![refs.into()])?;
        }
        for (owner, id) in &self.pull_requests {
            let (owner, identifier) = (*owner, self.identifier.clone());
            let refs = NostrChange::Align(Alignment { owner, identifier, pull_request: Some(*id) });
            batch.apply(vec![refs.into()])?;
        }
        let mut released = ReleasedEvents::default();
        for need in needs.into_iter().filter(|_| !is_planted(PlantedBug::GitDataWakesNobody)) {
            // Each sees what the one before has changed, so that nobody is woken twice.
            let changes = release::met(batch.db(), &policy(batch), need)?;
            for change in &changes {
                released.count(batch, change)?;
            }
            batch.apply(changes)?;
        }
        Ok(released)
    }
}

/// Has the refs of repositories looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LookAtRefs(pub Vec<Alignment>);

impl WriterCommand for LookAtRefs {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<()> {
        batch.apply(self.0.iter().cloned().map(|alignment| NostrChange::Align(alignment).into()).collect())
    }
}

/// The refs of repositories are what events say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoteAligned(pub Vec<(Alignment, u64)>);

impl WriterCommand for NoteAligned {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<()> {
        self.0.iter().try_for_each(|(alignment, version)| batch.note_aligned(alignment, *version))
    }
}

/// Decides in which object store a repository is: that of a confirmed co-maintainer, or its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AssignStore {
    pub owner: NostrKey,
    pub identifier: String,
    /// The name that its own would have.
    pub own: [u8; 16],
}

impl WriterCommand for AssignStore {
    type Answer = [u8; 16];
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<[u8; 16]> {
        if let Some(store) = batch.db().git_store(&self.owner, &self.identifier)? {
            return Ok(store);
        }
        let mut store = None;
        for other in confirmed(batch.db(), &self.owner, &self.identifier)? {
            store = store.or(batch.db().git_store(&other, &self.identifier)?);
        }
        let (owner, identifier) = (self.owner, self.identifier.clone());
        let mut changes = Vec::new();
        // A co-maintainer's may have what this one should show; one of its own is empty. That of a contributor goes again if
        // the push that it is made for fails.
        if store.is_some() || is_contribution(&identifier) {
            changes.push(
                NostrChange::Align(Alignment { owner, identifier: identifier.clone(), pull_request: None }).into(),
            );
        }
        let store = store.unwrap_or(self.own);
        changes.push(NostrChange::Store(RowChange::Put, owner, identifier, store).into());
        batch.apply(changes)?;
        Ok(store)
    }
}

/// Keeps commits that were pushed for pull requests before their events, for a while; or forgets them.
#[derive(Clone, PartialEq, Debug)]
pub struct NotePushed(pub RowChange, pub Vec<PushedCommit>);

impl WriterCommand for NotePushed {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<()> {
        for pushed in &self.1 {
            let (owner, identifier) = (pushed.owner, pushed.identifier.clone());
            let refs = Alignment { owner, identifier, pull_request: Some(pushed.pull_request) };
            batch.apply(vec![NostrChange::Pushed(self.0, pushed.clone()).into(), NostrChange::Align(refs).into()])?;
        }
        Ok(())
    }
}

/// A repository is not announced here any more: what is known of its data is forgotten, at most so many objects at a time.
/// Nothing is, if it was announced again meanwhile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForgetRepository {
    pub owner: NostrKey,
    pub identifier: String,
    pub objects_max: usize,
    /// The operator does not want it, announced or not.
    pub is_banned: bool,
    /// The pull request because of which a contributor's repository may have become empty.
    pub after: Option<NostrId>,
}

impl WriterCommand for ForgetRepository {
    /// Whether nothing is left.
    type Answer = bool;
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<bool> {
        let (owner, name) = (self.owner, AddressName::of(&self.identifier));
        if !self.is_banned && self.is_needed(batch)? {
            return Ok(true);
        }
        let present = batch.db().present_objects(&owner, &name, None, self.objects_max)?;
        let is_all = present.len() < self.objects_max;
        batch.apply(absent(owner, name, present))?;
        if is_all {
            batch.apply(vec![NostrChange::Data(RowChange::Remove, owner, self.identifier.clone()).into()])?;
            let pushed = batch.db().pushed_commits()?.into_iter();
            for pushed in pushed.filter(|pushed| pushed.owner == owner && pushed.identifier == self.identifier) {
                batch.apply(vec![NostrChange::Pushed(RowChange::Remove, pushed).into()])?;
            }
            if let Some(store) = batch.db().git_store(&owner, &self.identifier)? {
                let row = NostrChange::Store(RowChange::Remove, owner, self.identifier.clone(), store);
                batch.apply(vec![row.into()])?;
            }
        }
        Ok(is_all)
    }
}

impl ForgetRepository {
    /// Whether it is announced, or, of a contributor's, whether a push is on its way into it or has just come.
    fn is_needed(&self, batch: &Batch<'_>) -> StoreResult<bool> {
        let (db, name) = (batch.db(), AddressName::of(&self.identifier));
        if !is_contribution(&self.identifier) {
            return Ok(announcement(db, &self.owner, &self.identifier)?.is_some());
        }
        let is_this = |pushed: &PushedCommit| (pushed.owner, &pushed.identifier) == (self.owner, &self.identifier);
        if db.pushed_commits()?.iter().any(is_this) {
            return Ok(true);
        }
        let asked = db.alignments_of(&self.owner, &name, usize::MAX)?;
        let is_other = |id: &Option<NostrId>| id.is_some() && *id != self.after;
        if asked.iter().any(|(alignment, _)| is_other(&alignment.pull_request)) {
            return Ok(true);
        }
        Ok(self.after.is_none() && !db.present_objects(&self.owner, &name, None, 1)?.is_empty())
    }
}

/// Objects that are said to be in a repository are not: they are forgotten, and asked for again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForgetObjects {
    pub owner: NostrKey,
    pub name: AddressName,
    pub oids: Vec<Oid>,
}

impl WriterCommand for ForgetObjects {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<()> {
        batch.apply(absent(self.owner, self.name, self.oids.clone()))
    }
}

/// Objects of a repository that nothing reaches are about to go. Not if its refs are to be looked at: they may be wanted
/// again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoteAbsent {
    pub owner: NostrKey,
    pub name: AddressName,
    pub oids: Vec<Oid>,
}

impl WriterCommand for NoteAbsent {
    /// Whether they may go.
    type Answer = bool;
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<bool> {
        if !batch.db().alignments_of(&self.owner, &self.name, 1)?.is_empty() {
            return Ok(false);
        }
        batch.apply(absent(self.owner, self.name, self.oids.clone()))?;
        Ok(true)
    }
}

fn absent(owner: NostrKey, name: AddressName, oids: Vec<Oid>) -> Vec<Change> {
    oids.into_iter().map(|oid| NostrChange::Present(RowChange::Remove, owner, name, oid).into()).collect()
}
