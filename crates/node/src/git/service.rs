//! Does what rows and pushes ask for, with the `git` program.

use super::refs::{differences, wanted_pull_request, wanted_refs};
use crate::locks;
use crate::nostr::{AssignStore, GitArrived, NoteAligned, NotePushed};
use crate::running::Node;
use crate::threads;
use crate::writer_command::AskError;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use engine::Opened;
use engine::change::RowChange;
use engine::protocol::nostr::maintainers::{announcement, confirmed};
use engine::protocol::nostr::push::{NO_OBJECT, PushDecision, RefUpdate, decide};
use engine::reads::{NostrReads as _, Reads as _, StoreError};
use engine::rows::{Alignment, PushedCommit};
use git::{GitError, GitFolder, GitLimits, ObjectStore, Staging, StoreName};
use model::need::Oid;
use model::nostr::{NostrId, RepositoryState, tip_of};
use model::{Nanos, NostrKey};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a commit waits for the event of its pull request.
const PUSHED_NANOS: u64 = 30 * 60 * Nanos::SECOND;
/// Commits of one repository that wait for the events of their pull requests.
const PUSHED_MAX: usize = 32;
/// The same, of all repositories.
const PUSHED_TOTAL_MAX: usize = 1000;
/// Repositories that are looked at in one go.
const ALIGNMENTS_MAX: usize = 64;
/// Held events of one repository that are looked at when data arrives.
const HELD_MAX: usize = 4096;
/// How often it is looked whether a pushed commit has waited long enough.
const LOOK_AT_PUSHED: Duration = Duration::from_secs(60);
/// How long it waits after something failed.
const AFTER_FAILURE: Duration = Duration::from_secs(10);

/// Why a repository could not be served or changed.
#[derive(Debug, thiserror::Error)]
pub enum GitFailure {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Writer(String),
}

impl<E: std::error::Error> From<AskError<E>> for GitFailure {
    fn from(why: AskError<E>) -> GitFailure {
        GitFailure::Writer(why.to_string())
    }
}

/// A repository that is announced here.
#[derive(Clone, Debug)]
pub struct HostedRepository {
    pub owner: NostrKey,
    pub identifier: String,
    pub store: ObjectStore,
}

/// What the arrival of git data came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ArrivedData {
    /// Events that were woken.
    pub released: usize,
    /// Repositories whose refs were looked at.
    pub repositories_synced: usize,
    pub refs_created: usize,
    pub refs_updated: usize,
    pub refs_deleted: usize,
    pub errors: Vec<String>,
}

/// What wakes the thread that aligns refs.
enum GitWake {
    Commit,
    Stop,
}

/// The git repositories of a node.
pub struct GitService {
    node: Node,
    folder: GitFolder,
    /// Refs are changed by one at a time.
    aligning: Mutex<()>,
    wakes: Sender<GitWake>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for GitService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GitService({:?})", self.folder)
    }
}

impl GitService {
    /// Opens the folder of repositories and starts the thread that makes refs follow events.
    pub fn start(node: &Node, root: PathBuf, limits: GitLimits) -> Result<Arc<GitService>, GitFailure> {
        let folder = GitFolder::open(root, limits)?;
        let (wakes, woken) = bounded(1);
        let service = Arc::new(GitService {
            node: node.clone(),
            folder,
            aligning: Mutex::default(),
            wakes: wakes.clone(),
            thread: Mutex::default(),
        });
        node.on_commit(move |_| {
            // One that waits already stands for this one, too.
            let _ = wakes.try_send(GitWake::Commit);
        });
        let aligner = service.clone();
        let thread = threads::spawn("anteroom-git", move || aligner.follow_rows(&woken));
        let thread = thread.map_err(|why| GitFailure::Git(GitError::Folder(why)))?;
        *locks::lock(&service.thread) = Some(thread);
        Ok(service)
    }

    /// Ends the thread.
    pub fn stop(&self) {
        let thread = locks::lock(&self.thread).take();
        if let Some(thread) = thread {
            let _ = self.wakes.send(GitWake::Stop);
            let _ = thread.join();
        }
    }

    /// The repository of an owner, if its announcement is held or applied.
    pub fn repository(&self, owner: &NostrKey, identifier: &str) -> Result<Option<HostedRepository>, GitFailure> {
        let db = self.node.snapshot()?;
        let Some(announced) = announcement(&*db, owner, identifier)? else { return Ok(None) };
        if !db.policy().service.is_some_and(|service| announced.lists(service)) {
            return Ok(None);
        }
        let (owner, identifier) = (*owner, identifier.to_owned());
        let assigned = db.git_store(&owner, &identifier)?;
        let name = match assigned {
            Some(name) => name,
            None => {
                let own = StoreName::of(&owner, &identifier).0;
                self.node.ask(AssignStore { owner, identifier: identifier.clone(), own })?
            }
        };
        let store = self.folder.store(StoreName(name));
        store.create()?;
        if assigned.is_none() {
            self.align(&mut ArrivedData::default())?;
        }
        Ok(Some(HostedRepository { owner, identifier, store }))
    }

    /// Whether a push may do this, as of now.
    pub fn decide(&self, repository: &HostedRepository, updates: &[RefUpdate]) -> Result<PushDecision, GitFailure> {
        let db = self.node.snapshot()?;
        let decision = decide(&*db, &repository.owner, &repository.identifier, updates)?;
        let PushDecision::Allowed { before_their_events } = &decision else { return Ok(decision) };
        if before_their_events.is_empty() {
            return Ok(decision);
        }
        let waiting = db.pushed_commits()?;
        let of_this = waiting.iter().filter(|pushed| {
            (pushed.owner, pushed.identifier.as_str()) == (repository.owner, repository.identifier.as_str())
        });
        if of_this.count() + before_their_events.len() <= PUSHED_MAX && waiting.len() < PUSHED_TOTAL_MAX {
            return Ok(decision);
        }
        let why = "too many commits wait for the events of their pull requests; publish the event first";
        let named = updates.iter().filter(|update| update.pull_request().is_some());
        Ok(PushDecision::Refused(named.map(|update| (update.name.clone(), why.to_owned())).collect()))
    }

    /// Takes over what an allowed push brought: its objects, then the rows that release what waits for them, then the refs.
    pub fn receive(
        &self,
        repository: &HostedRepository,
        staging: &Staging,
        updates: &[RefUpdate],
        before_their_events: &[(NostrId, Oid)],
    ) -> Result<ArrivedData, GitFailure> {
        repository.store.adopt(staging)?;
        self.note_pushed(repository, before_their_events)?;
        let pushed = updates.iter().filter(|update| update.new != NO_OBJECT);
        // A deletion brings no data.
        let is_ref = |update: &RefUpdate| update.pull_request().is_none() && update.new != NO_OBJECT;
        let is_authorised = updates.iter().any(is_ref);
        self.arrive(repository, pushed.map(|update| update.new).collect(), is_authorised)
    }

    fn note_pushed(&self, repository: &HostedRepository, commits: &[(NostrId, Oid)]) -> Result<(), GitFailure> {
        if commits.is_empty() {
            return Ok(());
        }
        let until = self.node.now().plus(PUSHED_NANOS);
        let pushed = commits.iter().map(|(pull_request, oid)| PushedCommit {
            owner: repository.owner,
            identifier: repository.identifier.clone(),
            pull_request: *pull_request,
            oid: *oid,
            until,
        });
        Ok(self.node.ask(NotePushed(RowChange::Put, pushed.collect()))?)
    }

    /// Git data came, by whichever way: what it satisfies is released, and refs follow. Objects that are known to be
    /// complete are named; what else events wait for is looked for.
    pub fn arrive(
        &self,
        repository: &HostedRepository,
        known: BTreeSet<Oid>,
        is_authorised: bool,
    ) -> Result<ArrivedData, GitFailure> {
        let identifier = repository.identifier.clone();
        let db = self.node.snapshot()?;
        let mut owners = confirmed(&*db, &repository.owner, &identifier)?;
        owners.insert(repository.owner);
        let mut missing = BTreeSet::new();
        for owner in &owners {
            missing.extend(self.missing_objects(owner, &identifier)?);
        }
        missing.retain(|oid| !known.contains(oid));
        let mut present = repository.store.complete(&missing)?;
        present.extend(known);
        drop(db);
        let released = self.node.ask(GitArrived { owners, identifier, present, is_authorised })?;
        let mut arrived = ArrivedData { released, ..ArrivedData::default() };
        self.align(&mut arrived)?;
        tracing::info!(
            released = arrived.released,
            repositories = arrived.repositories_synced,
            created = arrived.refs_created,
            updated = arrived.refs_updated,
            deleted = arrived.refs_deleted,
            errors = arrived.errors.len(),
            "git data arrived"
        );
        Ok(arrived)
    }

    /// The objects that held events of a repository speak of.
    fn missing_objects(&self, owner: &NostrKey, identifier: &str) -> Result<BTreeSet<Oid>, GitFailure> {
        let db = self.node.snapshot()?;
        let mut oids = BTreeSet::new();
        for seq in db.waiting_for_objects(owner, identifier, HELD_MAX)? {
            let Some(Opened::Nostr(event)) = db.open_event(seq)? else { continue };
            oids.extend(tip_of(&event));
            oids.extend(RepositoryState::of(&event).into_iter().flat_map(|state| state.refs.into_values()));
        }
        Ok(oids)
    }

    /// Makes refs what rows ask for, until none does. One that fails does not stop the others; its row stays.
    pub fn align(&self, arrived: &mut ArrivedData) -> Result<(), GitFailure> {
        let _one_at_a_time = locks::lock(&self.aligning);
        let mut failed: BTreeSet<Alignment> = BTreeSet::new();
        loop {
            let db = self.node.snapshot()?;
            let mut asked = db.repositories_to_align(ALIGNMENTS_MAX + failed.len())?;
            asked.retain(|(alignment, _)| !failed.contains(alignment));
            if asked.is_empty() {
                return Ok(());
            }
            let mut done = Vec::new();
            for (alignment, version) in asked {
                match self.align_one(&db, &alignment, arrived) {
                    Ok(()) => done.push((alignment, version)),
                    Err(why) => {
                        tracing::warn!(owner = %alignment.owner, identifier = alignment.identifier, %why, "refs could not be changed");
                        arrived.errors.push(why.to_string());
                        failed.insert(alignment);
                    }
                }
            }
            drop(db);
            self.node.ask(NoteAligned(done))?;
        }
    }

    fn align_one(
        &self,
        db: &store::Db<store::tables::Snapshot>,
        alignment: &Alignment,
        arrived: &mut ArrivedData,
    ) -> Result<(), GitFailure> {
        let (owner, identifier) = (&alignment.owner, alignment.identifier.as_str());
        // Nothing was ever kept of it.
        let Some(name) = db.git_store(owner, identifier)? else { return Ok(()) };
        let store = self.folder.store(StoreName(name));
        if !store.exists() {
            return Ok(());
        }
        let mut current = store.refs(owner)?;
        let (wanted, head) = match &alignment.pull_request {
            Some(id) => {
                let name = format!("refs/nostr/{id}");
                current.retain(|other, _| *other == name);
                (wanted_pull_request(db, alignment, id)?.map(|oid| (name, oid)).into_iter().collect(), None)
            }
            None => {
                current.retain(|name, _| !name.starts_with("refs/nostr/"));
                let wanted = wanted_refs(db, owner, identifier)?;
                (wanted.refs, wanted.head)
            }
        };
        self.bring_objects(db, alignment, &store, &wanted)?;
        let changes = differences(&current, &wanted, arrived);
        store.change_refs(owner, &changes)?;
        if let Some(head) = head {
            store.set_head(owner, &head)?;
        }
        arrived.repositories_synced += 1;
        Ok(())
    }

    /// Where co-maintainers began apart, what one of them was given is copied for the other.
    fn bring_objects(
        &self,
        db: &store::Db<store::tables::Snapshot>,
        alignment: &Alignment,
        store: &ObjectStore,
        wanted: &BTreeMap<String, Oid>,
    ) -> Result<(), GitFailure> {
        let oids: BTreeSet<Oid> = wanted.values().copied().collect();
        let existing = store.existing(&oids)?;
        let missing: BTreeSet<Oid> = oids.difference(&existing).copied().collect();
        if missing.is_empty() {
            return Ok(());
        }
        for other in confirmed(db, &alignment.owner, &alignment.identifier)? {
            let Some(name) = db.git_store(&other, &alignment.identifier)? else { continue };
            let other = self.folder.store(StoreName(name));
            if other.exists() {
                for oid in other.existing(&missing)? {
                    store.copy_from(&other, &oid)?;
                }
            }
        }
        Ok(())
    }

    /// The thread: whenever something was committed, and at the start.
    fn follow_rows(&self, woken: &Receiver<GitWake>) {
        let mut wait = Duration::ZERO;
        loop {
            match woken.recv_timeout(wait) {
                Ok(GitWake::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(GitWake::Commit) | Err(RecvTimeoutError::Timeout) => {}
            }
            let done = self.forget_pushed().and_then(|()| {
                let mut arrived = ArrivedData::default();
                self.align(&mut arrived)?;
                Ok(arrived.errors.is_empty())
            });
            wait = match done {
                Ok(true) => LOOK_AT_PUSHED,
                Ok(false) => AFTER_FAILURE,
                Err(why) => {
                    tracing::warn!(%why, "git repositories could not be looked after");
                    AFTER_FAILURE
                }
            };
        }
    }

    /// Commits whose events came are theirs; those that have waited long enough go.
    fn forget_pushed(&self) -> Result<(), GitFailure> {
        let db = self.node.snapshot()?;
        let now = self.node.now();
        let mut over = Vec::new();
        for pushed in db.pushed_commits()? {
            let is_applied = match db.seq(&pushed.pull_request.short())? {
                Some(seq) => db.event(seq)?.is_some_and(|row| row.is_applied()),
                None => false,
            };
            if is_applied || pushed.until <= now {
                over.push(pushed);
            }
        }
        drop(db);
        if over.is_empty() { Ok(()) } else { Ok(self.node.ask(NotePushed(RowChange::Remove, over))?) }
    }
}
