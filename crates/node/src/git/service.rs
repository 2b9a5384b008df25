//! Does what rows and pushes ask for, with the `git` program.

use super::access::GitAccess;
use super::arrival::{ArrivalCounts, ArrivedData};
use super::hunt::GitSources;
use super::upkeep::StoreLocks;
use crate::locks;
use crate::nostr::{AssignStore, GitArrived, NotePushed};
use crate::running::Node;
use crate::threads;
use crate::writer_command::AskError;
use crossbeam_channel::{Sender, bounded};
use engine::Opened;
use engine::change::RowChange;
use engine::protocol::nostr::maintainers::{announcement, confirmed};
use engine::protocol::nostr::push::{NO_OBJECT, PushDecision, RefUpdate};
use engine::reads::{NostrReads as _, Reads as _, StoreError};
use engine::rows::PushedCommit;
use git::{GitError, GitFolder, GitLimits, ObjectStore, Staging, StoreName};
use model::need::Oid;
use model::nostr::{NostrId, RepositoryState, contribution_identifier, tip_of};
use model::{Nanos, NostrKey};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// How long a commit waits for the event of its pull request.
const PUSHED_NANOS: u64 = 30 * 60 * Nanos::SECOND;
/// Held events of one repository that are looked at when data arrives.
const HELD_MAX: usize = 4096;

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
    pub name: StoreName,
    pub store: ObjectStore,
}

/// What came of taking over a push.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Received {
    Arrived(ArrivedData),
    /// Something that its refs reach is missing.
    Incomplete,
    /// There is no room for it.
    TooLarge(String),
    /// It is not what is announced any more: why, for each ref.
    Refused(BTreeMap<String, String>),
}

/// What wakes the threads.
#[derive(Debug)]
pub(super) enum GitWake {
    Commit,
    Stop,
}

/// The git repositories of a node.
pub struct GitService {
    pub(super) node: Node,
    pub(super) folder: GitFolder,
    pub(super) limits: GitLimits,
    pub(super) access: Arc<GitAccess>,
    /// Refs are changed by one at a time.
    pub(super) aligning: Mutex<()>,
    /// Who is at which object store.
    pub(super) stores: StoreLocks,
    /// Packs are measured one by one.
    pub(super) measuring: Mutex<()>,
    /// What all arrivals have come to since the start.
    pub counts: ArrivalCounts,
    /// Where missing data is fetched from.
    pub sources: Arc<GitSources>,
    threads: Mutex<Vec<(Sender<GitWake>, JoinHandle<()>)>>,
}

impl std::fmt::Debug for GitService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GitService({:?})", self.folder)
    }
}

impl GitService {
    /// Opens the folder of repositories and starts the threads that make refs follow events and stores stay small.
    pub fn start(
        node: &Node,
        root: PathBuf,
        limits: GitLimits,
        access: GitAccess,
        sources: Arc<GitSources>,
    ) -> Result<Arc<GitService>, GitFailure> {
        let folder = GitFolder::open(root, limits)?;
        let (aligning, threads, access) = (Mutex::default(), Mutex::default(), Arc::new(access));
        let (notes, noted) = bounded(1);
        let stores = StoreLocks::new(notes.clone());
        let (node, counts, measuring) = (node.clone(), ArrivalCounts::default(), Mutex::default());
        let service = Arc::new(GitService {
            node,
            folder,
            limits,
            access,
            aligning,
            stores,
            measuring,
            counts,
            sources,
            threads,
        });
        let (wakes, woken) = bounded(1);
        service.node.on_commit({
            let wakes = wakes.clone();
            move |_| {
                // One that waits already stands for this one, too.
                let _ = wakes.try_send(GitWake::Commit);
            }
        });
        service.unpack_restored()?;
        service.look_at_banned()?;
        let (aligner, wakes_aligner) = (service.clone(), wakes.clone());
        service.spawn("anteroom-git", wakes, move || aligner.follow_rows(&woken))?;
        let keeper = service.clone();
        service.spawn("anteroom-git-keep", notes, move || keeper.keep_small(&noted, &wakes_aligner))?;
        if service.folder.can_fetch()? {
            service.sources.serve(Arc::downgrade(&service));
            service.node.sources_changed();
        } else {
            tracing::warn!("missing git data is not fetched from other servers: that needs git 2.37 or later");
        }
        Ok(service)
    }

    fn spawn(
        &self,
        name: &'static str,
        wakes: Sender<GitWake>,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), GitFailure> {
        let thread = threads::spawn(name, work).map_err(|why| GitFailure::Git(GitError::Folder(why)))?;
        locks::lock(&self.threads).push((wakes, thread));
        Ok(())
    }

    /// Ends the threads.
    pub fn stop(&self) {
        let threads = std::mem::take(&mut *locks::lock(&self.threads));
        for (wakes, thread) in threads {
            let _ = wakes.send(GitWake::Stop);
            let _ = thread.join();
        }
    }

    /// Whom the operator wants here.
    pub fn access(&self) -> &Arc<GitAccess> {
        &self.access
    }

    /// The repository of an owner, if its announcement is held or applied.
    pub fn repository(&self, owner: &NostrKey, identifier: &str) -> Result<Option<HostedRepository>, GitFailure> {
        let db = self.node.snapshot()?;
        let Some(announced) = announcement(&*db, owner, identifier)? else { return Ok(None) };
        if !db.policy().service.is_some_and(|service| self.access.hosts(&announced, service)) {
            return Ok(None);
        }
        let is_new = db.git_store(owner, identifier)?.is_none();
        let mut is_shared = false;
        for other in confirmed(&*db, owner, identifier)? {
            is_shared = is_shared || db.git_store(&other, identifier)?.is_some();
        }
        drop(db);
        // Nothing is kept of it before something is pushed, to it or to a co-maintainer's.
        if is_new && !is_shared {
            let (name, store) = (StoreName::of(owner, identifier), self.folder.empty_store()?);
            return Ok(Some(HostedRepository { owner: *owner, identifier: identifier.to_owned(), name, store }));
        }
        let (name, store) = self.store_of(owner, identifier)?;
        if is_new {
            self.align(&mut ArrivedData::default())?;
        }
        Ok(Some(HostedRepository { owner: *owner, identifier: identifier.to_owned(), name, store }))
    }

    /// The repository for pull requests of a contributor, which every contributor has while they are taken (GRASP-06). It is
    /// empty, and nothing is kept of it, until a commit is pushed.
    pub fn contribution(&self, owner: &NostrKey, identifier: &str) -> Result<Option<HostedRepository>, GitFailure> {
        let db = self.node.snapshot()?;
        let is_banned = self.access.is_banned(owner, identifier);
        let Some(identifier) = contribution_identifier(identifier).filter(|_| db.policy().takes_contributions) else {
            return Ok(None);
        };
        if is_banned {
            return Ok(None);
        }
        let name = StoreName::of(owner, &identifier);
        let store = match db.git_store(owner, &identifier)? {
            Some(_) => self.folder.store(name),
            None => self.folder.empty_store()?,
        };
        Ok(Some(HostedRepository { owner: *owner, identifier, name, store }))
    }

    /// The object store of a repository, which is made if there is none.
    pub(super) fn store_of(&self, owner: &NostrKey, identifier: &str) -> Result<(StoreName, ObjectStore), GitFailure> {
        let assigned = self.node.snapshot()?.git_store(owner, identifier)?;
        let name = StoreName(match assigned {
            Some(name) => name,
            None => {
                let own = StoreName::of(owner, identifier).0;
                self.node.ask(AssignStore { owner: *owner, identifier: identifier.to_owned(), own })?
            }
        });
        let store = self.folder.store(name);
        store.create()?;
        Ok((name, store))
    }

    /// Takes over what an allowed push brought, if it is still what is announced: its objects, then the rows that release
    /// what waits for them, then the refs.
    pub fn receive(
        &self,
        repository: &HostedRepository,
        staging: &Staging,
        updates: &[RefUpdate],
    ) -> Result<Received, GitFailure> {
        // That of a new repository, or of a contributor, is not there yet.
        let assigned = self.node.snapshot()?.git_store(&repository.owner, &repository.identifier)?;
        let name = assigned.map_or(repository.name, StoreName);
        let lock = self.stores.of(name);
        let _nothing_goes = locks::read(&lock.objects);
        let before_their_events = match self.decide_updates(repository, updates)? {
            PushDecision::Allowed { before_their_events } => before_their_events,
            PushDecision::NoRepository => {
                return Ok(Received::Refused(for_all(updates, "the repository was just deleted")));
            }
            PushDecision::Refused(reasons) => return Ok(Received::Refused(reasons)),
        };
        // A deletion brings no data.
        let pushed = || updates.iter().filter(|update| update.new != NO_OBJECT);
        let tips: BTreeSet<Oid> = pushed().map(|update| update.new).collect();
        {
            let _one_by_one = locks::lock(&lock.adopting);
            // Others may have used the room meanwhile.
            let bytes = staging.bytes()?;
            match self.room(repository, updates)? {
                Err(why) if bytes > 0 => return Ok(Received::TooLarge(why)),
                Ok(room) if bytes > room => return Ok(Received::TooLarge("there is no room for the pack".to_owned())),
                Ok(_) | Err(_) => {}
            }
            let walk = {
                // One by one: the list of all objects is in memory.
                let _measuring = locks::lock(&self.measuring);
                // This takes longest; it ends at once if what came is not taken.
                let walk = self.folder.store(name).walk(staging, &tips)?;
                if let Some(why) = staging.exceeds_limits()? {
                    return Ok(Received::TooLarge(why));
                }
                walk
            };
            if let Some(refused) = why_not_commits(staging, updates)? {
                return Ok(Received::Refused(refused));
            }
            let (assigned, store) = self.store_of(&repository.owner, &repository.identifier)?;
            if assigned != name {
                return Ok(Received::Refused(for_all(updates, "the repository has just moved; push again")));
            }
            if !store.adopt(staging, walk)? {
                return Ok(Received::Incomplete);
            }
        }
        self.note_pushed(repository, &before_their_events)?;
        let is_authorised = pushed().any(|update| update.pull_request().is_none());
        let pull_requests = pushed().filter_map(RefUpdate::pull_request).collect();
        let stored = HostedRepository { name, ..repository.clone() };
        let arrived = self.arrive(&stored, tips, is_authorised, &pull_requests)?;
        let refs = self.folder.store(name).refs(&repository.owner)?;
        let is_done =
            |update: &&RefUpdate| refs.get(&update.name) == Some(&update.new).filter(|new| **new != NO_OBJECT);
        let why = "the ref could not be changed; push again";
        let left: BTreeMap<String, String> = updates
            .iter()
            .filter(|update| !is_done(update))
            .map(|update| (update.name.clone(), why.to_owned()))
            .collect();
        Ok(if left.is_empty() { Received::Arrived(arrived) } else { Received::Refused(left) })
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

    /// Commits whose events came are theirs; those that have waited long enough go.
    pub(super) fn forget_pushed(&self) -> Result<(), GitFailure> {
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

    /// Git data came, by whichever way, and these objects are complete: what waits for them is released, and refs follow.
    pub fn arrive(
        &self,
        repository: &HostedRepository,
        present: BTreeSet<Oid>,
        is_authorised: bool,
        pull_requests: &BTreeSet<NostrId>,
    ) -> Result<ArrivedData, GitFailure> {
        let identifier = repository.identifier.clone();
        let mut owners = confirmed(&*self.node.snapshot()?, &repository.owner, &identifier)?;
        owners.insert(repository.owner);
        // What follows is counted here, and not by the thread that the commit wakes.
        let alone = locks::lock(&self.aligning);
        let asked = GitArrived {
            owners: owners.clone(),
            identifier: identifier.clone(),
            present,
            is_authorised,
            looks_anyway: true,
            pull_requests: pull_requests.iter().map(|id| (repository.owner, *id)).collect(),
        };
        let mut arrived = ArrivedData { released: self.node.ask(asked)?, ..ArrivedData::default() };
        self.align_owners(&alone, &owners, &identifier, repository.name, &mut arrived)?;
        drop(alone);
        arrived.log();
        self.counts.add(&arrived);
        Ok(arrived)
    }

    /// The objects that held events of a repository wait for.
    pub(super) fn missing_objects(&self, owner: &NostrKey, identifier: &str) -> Result<BTreeSet<Oid>, GitFailure> {
        let db = self.node.snapshot()?;
        let mut oids = BTreeSet::new();
        for seq in db.waiting_for_objects(owner, identifier, HELD_MAX)? {
            let Some(Opened::Nostr(event)) = db.open_event(seq)? else { continue };
            oids.extend(tip_of(&event));
            oids.extend(RepositoryState::of(&event).into_iter().flat_map(|state| state.refs.into_values()));
        }
        let mut missing = BTreeSet::new();
        for oid in oids {
            if !db.is_git_present(owner, identifier, &oid)? {
                missing.insert(oid);
            }
        }
        Ok(missing)
    }
}

/// The same reason for every ref.
pub(super) fn for_all(updates: &[RefUpdate], why: &str) -> BTreeMap<String, String> {
    updates.iter().map(|update| (update.name.clone(), why.to_owned())).collect()
}

/// Why refs are refused that do not point at commits, if any are. A tag may point at anything.
fn why_not_commits(staging: &Staging, updates: &[RefUpdate]) -> Result<Option<BTreeMap<String, String>>, GitFailure> {
    let asked = updates.iter().filter(|update| update.new != NO_OBJECT && !update.name.starts_with("refs/tags/"));
    let tips: BTreeSet<Oid> = asked.clone().map(|update| update.new).collect();
    let others = staging.not_commits(&tips)?;
    let why = |update: &RefUpdate| (update.name.clone(), "a branch, or a pull request, points at a commit".to_owned());
    let refused: BTreeMap<String, String> = asked.filter(|update| others.contains(&update.new)).map(why).collect();
    Ok(Some(refused).filter(|refused| !refused.is_empty()))
}
