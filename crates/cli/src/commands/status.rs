//! `anteroom status`: counts and sizes of the data folder.

use crate::context::Context;
use crate::data_folder;
use crate::failure::Failure;
use crate::formatting::{format_count, format_size};
use clap::Args;
use engine::reads::Reads as _;
use git::{GitFolder, StoreName};
use model::nostr::npub;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use store::Db;
use store::nostr::KeptRepository;
use store::tables::{Snapshot, TableClass, census};

/// Show counts and sizes: events by stage, spaces, tables, disk usage
#[derive(Debug, Args, Serialize, Deserialize)]
pub(crate) struct Status {
    /// Also compute the digest of all views; two nodes with equal digests show the same
    #[arg(long)]
    digest: bool,
}

#[derive(Debug, Serialize)]
struct Answer {
    data_dir: String,
    position: String,
    stages: Stages,
    missing_contents: u64,
    spaces: Vec<Space>,
    repositories: Vec<Repository>,
    tables: Vec<Table>,
    counts: BTreeMap<String, u64>,
    sizes: Sizes,
    digest: Option<String>,
}

#[derive(Debug, Serialize)]
struct Stages {
    applied: u64,
    held: u64,
    ready: u64,
    carried: u64,
    refused: u64,
    expired: u64,
    parked: u64,
}

#[derive(Debug, Serialize)]
struct Space {
    id: String,
    joined: bool,
    events: u64,
    content_bytes: u64,
}

/// A git repository. Co-maintainers share one store, whose bytes are told for each of them.
#[derive(Debug, Serialize)]
struct Repository {
    owner: String,
    identifier: String,
    store: String,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct Table {
    name: &'static str,
    class: &'static str,
    rows: u64,
}

#[derive(Debug, Serialize)]
struct Sizes {
    database_bytes: u64,
    objects: u64,
    object_bytes: u64,
    free_bytes: u64,
}

impl Status {
    pub(super) fn run(&self, context: &Context) -> Result<u8, Failure> {
        let (db, store) = data_folder::open_snapshot(context)?;
        let answer = Answer {
            data_dir: context.data_dir().display().to_string(),
            position: db.position()?.to_string(),
            stages: count_stages(&db)?,
            missing_contents: count_table_rows(&db, "content_waiting_v1")?,
            spaces: list_spaces(&db)?,
            repositories: list_repositories(context, &db)?,
            tables: count_tables(&db)?,
            counts: db.counts()?.into_iter().collect(),
            sizes: measure_sizes(context.data_dir(), store.disk().free_bytes().unwrap_or(0)),
            digest: if self.digest { Some(db.digest()?.to_string()) } else { None },
        };
        context.print(&answer)?;
        Ok(0)
    }
}

pub(super) fn count_table_rows(db: &Db<Snapshot>, name: &str) -> Result<u64, Failure> {
    Ok(count_tables(db)?.iter().find(|table| table.name == name).map_or(0, |table| table.rows))
}

fn count_tables(db: &Db<Snapshot>) -> Result<Vec<Table>, Failure> {
    let rows = census(db.tables()).map_err(|why| {
        Failure::new(format!("cannot read the database: {why}"), "check the disk, then run `anteroom verify`")
    })?;
    let class_name = |class| match class {
        TableClass::Source => "source",
        TableClass::View => "view",
        TableClass::Shared => "shared",
        TableClass::Local => "local",
    };
    Ok(rows.into_iter().map(|(class, name, rows)| Table { name, class: class_name(class), rows }).collect())
}

fn count_stages(db: &Db<Snapshot>) -> Result<Stages, Failure> {
    let tables = count_tables(db)?;
    let rows = |name| tables.iter().find(|table| table.name == name).map_or(0, |table| table.rows);
    let (held, ready, carried) = (rows("held_v1"), rows("ready_v1"), rows("carried_v1"));
    let parked = rows("parked_v1");
    Ok(Stages {
        applied: rows("events_v1").saturating_sub(held + ready + carried + parked),
        held,
        ready,
        carried,
        refused: rows("refused_v1"),
        expired: rows("expired_v1"),
        parked,
    })
}

fn list_spaces(db: &Db<Snapshot>) -> Result<Vec<Space>, Failure> {
    let mut spaces = Vec::new();
    for (id, events, content_bytes) in db.spaces()? {
        spaces.push(Space { joined: db.joined(&id)?, id: id.to_string(), events, content_bytes });
    }
    Ok(spaces)
}

fn list_repositories(context: &Context, db: &Db<Snapshot>) -> Result<Vec<Repository>, Failure> {
    let folder = GitFolder::open_existing(context.data_dir().join("git"));
    let mut repositories = Vec::new();
    for KeptRepository { owner, identifier, store } in db.git_repositories()? {
        let bytes = folder.as_ref().and_then(|folder| folder.store(StoreName(store)).bytes().ok());
        let (owner, store, bytes) = (npub(&owner), hex::encode(store), bytes.unwrap_or_default());
        repositories.push(Repository { owner, identifier, store, bytes });
    }
    Ok(repositories)
}

fn measure_sizes(folder: &Path, free_bytes: u64) -> Sizes {
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let entries = std::fs::read_dir(folder.join(store::disk::OBJECTS)).into_iter().flatten().flatten();
    let files: Vec<u64> = entries.map(|entry| length(&entry.path())).collect();
    Sizes {
        database_bytes: length(&data_folder::database_path(folder)),
        objects: files.len() as u64,
        object_bytes: files.iter().sum(),
        free_bytes,
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, journal position {}", self.data_dir, self.position)?;
        let Stages { applied, held, ready, carried, refused, expired, parked } = &self.stages;
        writeln!(f, "\nevents")?;
        for (stage, rows, meaning) in [
            ("applied", applied, "visible in the views"),
            ("held", held, "waiting for something that has not arrived; see `anteroom held`"),
            ("ready", ready, "all needs met, about to be applied"),
            ("carried", carried, "stored for other nodes, not readable here"),
            ("refused", refused, "invalid; only their ids are kept"),
            ("expired", expired, "held too long; only their ids are kept"),
            ("parked", parked, "left alone because a step failed on them; see `anteroom verify`"),
        ] {
            writeln!(f, "  {stage:<10}{rows:>12}  {meaning}")?;
        }
        if self.missing_contents > 0 {
            writeln!(f, "  {} still without content", format_count(self.missing_contents, "applied event"))?;
        }
        writeln!(f, "\nspaces")?;
        for space in &self.spaces {
            let joined = if space.joined { ", joined" } else { "" };
            let (events, bytes) = (format_count(space.events, "event"), format_size(space.content_bytes));
            writeln!(f, "  {}  {events}, {bytes} of content{joined}", space.id)?;
        }
        if self.spaces.is_empty() {
            writeln!(f, "  none")?;
        }
        if !self.repositories.is_empty() {
            writeln!(f, "\ngit repositories")?;
        }
        for Repository { owner, identifier, bytes, .. } in &self.repositories {
            writeln!(f, "  {owner}/{identifier}  {}", format_size(*bytes))?;
        }
        writeln!(f, "\ntables with rows")?;
        for table in self.tables.iter().filter(|table| table.rows > 0) {
            writeln!(f, "  {:<22}{:<8}{:>12}", table.name, table.class, table.rows)?;
        }
        if !self.counts.is_empty() {
            writeln!(f, "\ncounters")?;
        }
        for (word, number) in &self.counts {
            writeln!(f, "  {word:<30}{number:>12}")?;
        }
        let sizes = &self.sizes;
        writeln!(f, "\nsizes")?;
        writeln!(f, "  database       {}", format_size(sizes.database_bytes))?;
        let files = format_count(sizes.objects, "object");
        writeln!(f, "  content        {} in {files}", format_size(sizes.object_bytes))?;
        write!(f, "  free on disk   {}", format_size(sizes.free_bytes))?;
        self.digest.as_ref().map_or(Ok(()), |digest| write!(f, "\n\ndigest of all views {digest}"))
    }
}
