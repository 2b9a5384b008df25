//! The repository that a path names, and the commit that a request is about.

use crate::shell::percent_encode;
use crate::state::WebState;
use axum::extract::{FromRef as _, FromRequestParts, RawPathParams};
use git::{GitError, ObjectStore};
use http::request::Parts;
use model::NostrKey;
use model::need::Oid;
use model::nostr::{npub, parse_npub};
use node::git::{GitFailure, GitService, wanted_refs};
use queries::repositories::{RepositoryReader, ShownRepository};
use server::Problem;
use server::context::RequestContext;
use server::git_programs::{ProgramPermit, TooManyPrograms};
use server::state::{ServerState, SharedState};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where the branches and tags of a repository begin.
pub(crate) const BRANCHES: &str = "refs/heads/";
pub(crate) const TAGS: &str = "refs/tags/";

/// A repository that is announced here, as of one request.
pub(crate) struct OpenRepository {
    pub(crate) state: SharedState,
    pub(crate) context: RequestContext,
    pub(crate) store: ObjectStore,
    pub(crate) shown: ShownRepository,
    /// All refs that it has.
    pub(crate) refs: Arc<BTreeMap<String, Oid>>,
    /// The branch that is shown where none is named.
    pub(crate) head: Option<String>,
    /// What paths of its pages begin with.
    pub(crate) base: String,
    /// As long as somebody keeps it, programs may run: whoever runs one does, also when nobody waits for the page any more.
    pub(crate) permit: Arc<ProgramPermit>,
}

/// A commit, as a request names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Revision {
    /// What links say: a branch, a tag, or the id of a commit.
    pub(crate) name: String,
    pub(crate) commit: Oid,
}

impl Revision {
    /// The name as people write it.
    pub(crate) fn label(&self) -> &str {
        short_name(&self.name)
    }
}

/// A ref as people write it; of a commit the first digits.
pub(crate) fn short_name(name: &str) -> &str {
    match name.strip_prefix(BRANCHES).or_else(|| name.strip_prefix(TAGS)) {
        Some(short) => short,
        None if parse_oid(name).is_some() => &name[..10],
        None => name,
    }
}

pub(crate) fn parse_oid(text: &str) -> Option<Oid> {
    let mut oid = [0; 20];
    hex::decode_to_slice(text, &mut oid).ok()?;
    Some(oid)
}

/// What is said of a repository that is not here.
pub(crate) fn not_hosted() -> Problem {
    let mut problem = Problem::not_found(
        "this repository is not hosted here: no announcement of it that lists this service is known",
    );
    problem.action = "check the address; whoever owns the repository can announce it to this node";
    problem
}

/// The path of a repository's pages.
pub(crate) fn repository_path(owner: &NostrKey, identifier: &str) -> String {
    format!("/{}/{}.git", npub(owner), percent_encode(identifier))
}

/// The owner and the identifier that a path names, and whether it does so without `.git`.
fn named(parameters: &RawPathParams) -> Option<(NostrKey, String, bool)> {
    let value = |name: &str| parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| value);
    let owner = parse_npub(&format!("npub1{}", value("owner")?))?;
    let name = value("repository")?;
    let (identifier, is_short) = match name.strip_suffix(".git") {
        Some(identifier) => (identifier, false),
        None => (name, true),
    };
    (!identifier.is_empty()).then(|| (owner, identifier.to_owned(), is_short))
}

impl FromRequestParts<WebState> for OpenRepository {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, web: &WebState) -> Result<OpenRepository, Problem> {
        let state = SharedState::from_ref(web);
        let context = RequestContext::from_request_parts(parts, web).await?;
        let parameters = RawPathParams::from_request_parts(parts, web).await.map_err(|_| not_hosted())?;
        let (owner, identifier, _) = named(&parameters).ok_or_else(not_hosted)?;
        let permit = Arc::new(permit(&state, &context).await?);
        let shared = state.0.clone();
        let found = blocking(permit.clone(), move || look_up(&shared, &owner, &identifier)).await??;
        let (store, shown, refs, head) = found.ok_or_else(not_hosted)?;
        let base = repository_path(&owner, &shown.identifier);
        Ok(OpenRepository { state, context, store, shown, refs: Arc::new(refs), head, base, permit })
    }
}

/// The path of the page of a repository that was asked for without `.git`, or nothing.
pub(crate) struct ShortPath(pub(crate) Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for ShortPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<ShortPath, Problem> {
        let parameters = RawPathParams::from_request_parts(parts, state).await.map_err(|_| not_hosted())?;
        let (owner, identifier, is_short) = named(&parameters).ok_or_else(not_hosted)?;
        Ok(ShortPath(is_short.then(|| repository_path(&owner, &identifier))))
    }
}

/// Waits until a program may run.
async fn permit(state: &ServerState, context: &RequestContext) -> Result<ProgramPermit, Problem> {
    state.git_programs.permit(context.via.network).await.map_err(|why| match why {
        TooManyPrograms::OfNetwork => Problem::too_often(why.to_string()).after(1),
        TooManyPrograms::Together => Problem::overloaded(why.to_string()).after(5),
    })
}

/// Runs work that waits for disks and programs.
async fn blocking<T: Send + 'static>(
    permit: Arc<ProgramPermit>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(permit);
        done
    });
    done.await.map_err(|why| {
        tracing::error!(%why, "a page of a repository was cut off");
        Problem::broken("the page could not be made")
    })
}

/// The git repositories of this node.
pub(crate) fn service(state: &ServerState) -> Result<&Arc<GitService>, Problem> {
    state.git().ok_or_else(|| Problem::not_found("this node hosts no git repositories"))
}

type Found = (ObjectStore, ShownRepository, BTreeMap<String, Oid>, Option<String>);

fn look_up(state: &ServerState, owner: &NostrKey, identifier: &str) -> Result<Option<Found>, Problem> {
    let service = service(state)?;
    let broken = |why: GitFailure| {
        tracing::error!(%why, "a repository cannot be shown");
        Problem::broken("the repository cannot be read")
    };
    let Some(hosted) = service.repository(owner, identifier).map_err(broken)? else { return Ok(None) };
    let db = state.node.snapshot()?;
    let reader = RepositoryReader { db: &*db, access: service.access(), now: state.node.now() };
    let Some(shown) = reader.repository(owner, identifier)? else { return Ok(None) };
    // Before its announcement is applied, nothing of it is shown.
    let refs = if shown.card.is_some() { hosted.store.refs(owner).map_err(git_problem)? } else { BTreeMap::new() };
    let head = wanted_refs(&db, owner, identifier)?.head.filter(|head| refs.contains_key(head));
    let head = head.or_else(|| refs.keys().find(|name| name.starts_with(BRANCHES)).cloned());
    Ok(Some((hosted.store, shown, refs, head)))
}

/// What a page says where git failed.
pub(crate) fn git_problem(why: GitError) -> Problem {
    match why {
        GitError::OverLimit { .. } => {
            let mut problem = Problem::unprocessable("this is too large to be shown on a page");
            problem.action = "clone the repository to look at it";
            problem
        }
        why => {
            tracing::error!(%why, "a repository cannot be read");
            Problem::broken("the repository cannot be read")
        }
    }
}

impl OpenRepository {
    /// A link to one of its pages.
    pub(crate) fn link(&self, page: &str, query: &[(&str, &str)]) -> String {
        crate::repository::frame::link(&self.base, page, query)
    }

    /// Reads with git, off the threads that answer requests.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ObjectStore) -> Result<T, GitError> + Send + 'static,
    ) -> Result<T, Problem> {
        let store = self.store.clone();
        blocking(self.permit.clone(), move || work(&store)).await?.map_err(git_problem)
    }

    /// The commit that a request names with `at`; its default branch, if it names none. Nothing, if there is no branch.
    pub(crate) async fn revision(&self, at: Option<&str>) -> Result<Option<Revision>, Problem> {
        let asked = at.filter(|at| !at.is_empty());
        let Some(name) = asked.or(self.head.as_deref()) else { return Ok(None) };
        let not_found = || Problem::not_found("there is no such branch, tag or commit in this repository");
        let (name, oid) = self.resolve(name).ok_or_else(not_found)?;
        let (owner, is_ref) = (self.shown.owner, self.refs.contains_key(&name));
        let commit = self.read(move |store| {
            let Some(commit) = store.commit_at(&oid)? else { return Ok(None) };
            // What only others of the same object store have is not shown here.
            Ok((is_ref || store.is_reached(&owner, &commit)?).then_some(commit))
        });
        let commit = commit.await?.ok_or_else(not_found)?;
        Ok(Some(Revision { name, commit }))
    }

    /// The ref that a name means, or the commit that it is the id of.
    fn resolve(&self, name: &str) -> Option<(String, Oid)> {
        let candidates = [name.to_owned(), format!("{BRANCHES}{name}"), format!("{TAGS}{name}")];
        let found = candidates.into_iter().find_map(|full| self.refs.get(&full).map(|oid| (full, *oid)));
        found.or_else(|| parse_oid(name).map(|oid| (name.to_owned(), oid)))
    }

    /// The commit that a request is about; there has to be one.
    pub(crate) async fn need_revision(&self, at: Option<&str>) -> Result<Revision, Problem> {
        let empty = || Problem::not_found("this repository has no branch yet");
        self.revision(at).await?.ok_or_else(empty)
    }

    /// Reads events about it.
    pub(crate) fn with_reader<T>(
        &self,
        work: impl FnOnce(&RepositoryReader<'_, store::tables::Snapshot>) -> Result<T, queries::QueryError>,
    ) -> Result<T, Problem> {
        let db = self.state.node.snapshot()?;
        let access = service(&self.state)?.access();
        Ok(work(&RepositoryReader { db: &*db, access, now: self.state.node.now() })?)
    }
}
