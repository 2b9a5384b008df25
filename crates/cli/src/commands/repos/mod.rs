//! `anteroom repos`: the git repositories of this node.

pub(super) mod archive;
pub(super) mod sync;
mod verify;

use self::archive::ArchiveArguments;
use self::sync::SyncArguments;
use self::verify::VerifyArguments;
use crate::context::Context;
use crate::data_folder;
use crate::failure::Failure;
use crate::formatting::{escape_controls, format_count, format_hunt, format_size, format_source};
use clap::{Args, Subcommand};
use engine::fetch::NEVER;
use engine::protocol::nostr::maintainers::{Known, announcement, confirmed, newest_state};
use engine::reads::NostrReads as _;
use git::{GitFolder, StoreName};
use model::nostr::{npub, parse_repository};
use model::{Group, Need, NostrKey};
use node::explain::HuntState;
use node::fetch::reports::SourceReport;
use node::git::wanted_refs;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use store::Db;
use store::tables::Snapshot;

/// Needs of a repository that are listed.
const NEEDS_MAX: usize = 1000;
/// Announcements without data that are listed.
const WAITING_MAX: usize = 10_000;

/// List the git repositories of this node; show, fetch, check or archive one of them
#[derive(Debug, Args, Serialize, Deserialize)]
pub(crate) struct Repos {
    #[command(subcommand)]
    pub(super) action: ReposAction,
}

#[derive(Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ReposAction {
    /// List all repositories, with their sizes and what they wait for
    List,
    /// Show one: who maintains it, its refs, what is missing and where it can be fetched from
    Show(RepositoryArgument),
    /// Fetch now what events about a repository wait for, within the limits of each domain
    Sync(SyncArguments),
    /// Check a repository, or all of them: objects with `git fsck`, refs and what the database says of both
    Verify(VerifyArguments),
    /// Write a repository to one file, a git bundle that `git clone` reads
    Archive(ArchiveArguments),
}

#[derive(Debug, Args, Serialize, Deserialize)]
pub(super) struct RepositoryArgument {
    /// The repository: the public key of its owner, a slash and its identifier
    #[arg(value_name = "NPUB/IDENTIFIER", value_parser = check_repository)]
    repository: String,
}

fn check_repository(text: &str) -> Result<String, String> {
    parse_repository(text).map(|_| text.to_owned()).ok_or_else(|| NOT_ONE.to_owned())
}

const NOT_ONE: &str = "a repository is written npub1…/identifier, as `anteroom repos list` prints it";

impl RepositoryArgument {
    fn parse(&self) -> Result<(NostrKey, String), Failure> {
        named(&self.repository)
    }
}

/// The repository that somebody names.
fn named(text: &str) -> Result<(NostrKey, String), Failure> {
    parse_repository(text).ok_or_else(|| Failure::new(NOT_ONE, "see `anteroom help repos`"))
}

impl Repos {
    pub(super) fn run(&self, context: &Context) -> Result<u8, Failure> {
        match &self.action {
            ReposAction::List => list(context),
            ReposAction::Show(of) => show(context, of),
            ReposAction::Sync(arguments) => sync::run(context, arguments),
            ReposAction::Verify(arguments) => verify::run(context, arguments),
            ReposAction::Archive(arguments) => archive::run(context, arguments),
        }
    }
}

/// The folder of all object stores.
fn folder_of(context: &Context) -> Result<GitFolder, Failure> {
    let folder = GitFolder::open_existing(context.data_dir().join("git"));
    folder.ok_or_else(|| Failure::new("this node has no git repositories", "set git.enabled = 1 to host some"))
}

#[derive(Debug, Serialize)]
struct RepositoryRow {
    owner: String,
    identifier: String,
    bytes: u64,
    /// Needs that events about it wait for.
    missing: usize,
    has_data: bool,
}

#[derive(Debug, Serialize)]
struct RepositoryList {
    repositories: Vec<RepositoryRow>,
}

impl fmt::Display for RepositoryList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.repositories.is_empty() {
            return writeln!(f, "no git repository is announced here");
        }
        for RepositoryRow { owner, identifier, bytes, missing, has_data } in &self.repositories {
            let identifier = escape_controls(identifier).replace('\n', " ");
            let size = if *has_data { format_size(*bytes) } else { "no data yet".to_owned() };
            let waits = match missing {
                0 => String::new(),
                _ => format!(", waits for {}", format_count(*missing as u64, "thing")),
            };
            writeln!(f, "{owner}/{identifier}  {size}{waits}")?;
        }
        writeln!(f, "`anteroom repos show NPUB/IDENTIFIER` shows one of them")
    }
}

/// What events about a repository of an owner wait for.
fn needs_of(db: &Db<Snapshot>, owner: &NostrKey, identifier: &str) -> Result<Vec<Need>, Failure> {
    let mut needs = db.needs_of(&Group::Repository(identifier.to_owned()), NEEDS_MAX)?;
    needs.retain(|need| need.repository_owner() == Some(owner));
    Ok(needs)
}

fn list(context: &Context) -> Result<u8, Failure> {
    let (db, _store) = data_folder::open_snapshot(context)?;
    let folder = GitFolder::open_existing(context.data_dir().join("git"));
    let stores: BTreeMap<_, _> =
        db.git_repositories()?.into_iter().map(|kept| ((kept.owner, kept.identifier), kept.store)).collect();
    let mut all: BTreeSet<(NostrKey, String)> = stores.keys().cloned().collect();
    all.extend(db.repositories_waiting_for_data(WAITING_MAX)?);
    let mut repositories = Vec::new();
    for (owner, identifier) in all {
        let store = stores.get(&(owner, identifier.clone()));
        let bytes = store.zip(folder.as_ref()).and_then(|(name, folder)| folder.store(StoreName(*name)).bytes().ok());
        let (missing, has_data) = (needs_of(&db, &owner, &identifier)?.len(), db.has_git_data(&owner, &identifier)?);
        repositories.push(RepositoryRow {
            owner: npub(&owner),
            identifier,
            bytes: bytes.unwrap_or(0),
            missing,
            has_data,
        });
    }
    context.print(&RepositoryList { repositories })?;
    Ok(0)
}

#[derive(Debug, Serialize)]
struct RepositoryDetails {
    owner: String,
    identifier: String,
    maintainers: Vec<String>,
    clone: Vec<String>,
    relays: Vec<String>,
    head: Option<String>,
    refs: BTreeMap<String, String>,
    /// Whether a newer state waits for its objects.
    has_newer_state: bool,
    missing: Vec<String>,
    hunt: Option<HuntState>,
    sources: Vec<SourceReport>,
    #[serde(skip)]
    now: u64,
}

impl fmt::Display for RepositoryDetails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, what: &str, values: &[String]| {
            if values.is_empty() {
                return Ok(());
            }
            writeln!(f, "{what}:")?;
            values.iter().try_for_each(|value| writeln!(f, "  {}", escape_controls(value).replace('\n', " ")))
        };
        writeln!(f, "{}/{}", self.owner, escape_controls(&self.identifier).replace('\n', " "))?;
        list(f, "maintainers", &self.maintainers)?;
        list(f, "clone from", &self.clone)?;
        list(f, "relays", &self.relays)?;
        let refs: Vec<String> = self.refs.iter().map(|(name, oid)| format!("{oid} {name}")).collect();
        list(f, "refs", &refs)?;
        if let Some(head) = &self.head {
            writeln!(f, "HEAD is {}", escape_controls(head))?;
        }
        if self.has_newer_state {
            writeln!(f, "a newer state waits for its objects")?;
        }
        list(f, "missing", &self.missing)?;
        if let Some(hunt) = &self.hunt {
            writeln!(f, "hunt: {}", format_hunt(self.now, hunt))?;
        }
        let sources: Vec<String> = self.sources.iter().map(|source| format_source(self.now, source)).collect();
        list(f, "sources", &sources)
    }
}

fn not_announced(of: &RepositoryArgument) -> Failure {
    let what = format!("no announcement of {} is here", of.repository);
    Failure::new(what, "`anteroom repos list` lists all repositories")
}

fn show(context: &Context, of: &RepositoryArgument) -> Result<u8, Failure> {
    let (owner, identifier) = of.parse()?;
    let (db, _store) = data_folder::open_snapshot(context)?;
    let announced = announcement(&*db, &owner, &identifier)?.ok_or_else(|| not_announced(of))?;
    let maintainers = confirmed(&*db, &owner, &identifier)?;
    let state_of = |known| newest_state(&*db, &maintainers, &identifier, known).map(|found| found.map(|(seq, _)| seq));
    let (applied, newest) = (state_of(Known::Applied)?, state_of(Known::HeldOrApplied)?);
    let wanted = wanted_refs(&db, &owner, &identifier)?;
    let group = Group::Repository(identifier.clone());
    let sources = context.inside.as_ref().map(|inside| inside.node.source_reports(&group)).unwrap_or_default();
    let missing = needs_of(&db, &owner, &identifier)?;
    context.print(&RepositoryDetails {
        owner: npub(&owner),
        maintainers: maintainers.iter().map(npub).collect(),
        clone: announced.clones,
        relays: announced.relays,
        head: wanted.head,
        refs: wanted.refs.into_iter().map(|(name, oid)| (name, hex::encode(oid))).collect(),
        has_newer_state: applied != newest,
        hunt: db.schedule_row(&group)?.filter(|_| !missing.is_empty()).map(|row| HuntState {
            attempts: row.attempts,
            last: row.last,
            next: Some(row.next).filter(|next| *next != NEVER),
            group,
        }),
        missing: missing.iter().map(Need::to_string).collect(),
        sources,
        identifier,
        now: context.now(),
    })?;
    Ok(0)
}
