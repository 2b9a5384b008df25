//! `anteroom status`: what is here.

use super::Done;
use crate::context::Context;
use crate::data_folder;
use crate::failure::Failure;
use crate::formatting::{count, size};
use clap::Args;
use engine::reads::Reads as _;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use store::Db;
use store::tables::{Snapshot, TableClass, census};

/// Say what is here: events by stage, spaces, tables, sizes
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Also compute the digest of all views, by which two nodes can be compared
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
}

#[derive(Debug, Serialize)]
struct Space {
    id: String,
    joined: bool,
    events: u64,
    content_bytes: u64,
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
    content_files: u64,
    content_file_bytes: u64,
    free_bytes: u64,
}

impl Status {
    pub(super) fn run(&self, context: &Context) -> Done {
        let (db, store, _lock) = data_folder::read(context)?;
        let answer = Answer {
            data_dir: context.data_dir().display().to_string(),
            position: db.position()?.to_string(),
            stages: stages(&db)?,
            missing_contents: table_rows(&db, "content_waiting_v1")?,
            spaces: spaces(&db)?,
            tables: tables(&db)?,
            counts: db.counts()?.into_iter().collect(),
            sizes: sizes(context.data_dir(), store.disk().free_bytes().unwrap_or(0)),
            digest: if self.digest { Some(db.digest()?.to_string()) } else { None },
        };
        context.show(&answer)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// How many rows a table has.
pub(super) fn table_rows(db: &Db<Snapshot>, name: &str) -> Result<u64, Failure> {
    Ok(tables(db)?.iter().find(|table| table.name == name).map_or(0, |table| table.rows))
}

fn tables(db: &Db<Snapshot>) -> Result<Vec<Table>, Failure> {
    let rows = census(db.tables()).map_err(|why| {
        Failure::new(format!("the store failed: {why}"), "check the disk, then run `anteroom verify`")
    })?;
    let word = |class| match class {
        TableClass::Source => "source",
        TableClass::View => "view",
        TableClass::Local => "local",
    };
    Ok(rows.into_iter().map(|(class, name, rows)| Table { name, class: word(class), rows }).collect())
}

fn stages(db: &Db<Snapshot>) -> Result<Stages, Failure> {
    let tables = tables(db)?;
    let rows = |name| tables.iter().find(|table| table.name == name).map_or(0, |table| table.rows);
    let (held, ready, carried) = (rows("held_v1"), rows("ready_v1"), rows("carried_v1"));
    Ok(Stages {
        applied: rows("events_v1").saturating_sub(held + ready + carried),
        held,
        ready,
        carried,
        refused: rows("refused_v1"),
        expired: rows("expired_v1"),
    })
}

fn spaces(db: &Db<Snapshot>) -> Result<Vec<Space>, Failure> {
    let mut spaces = Vec::new();
    for (id, events, content_bytes) in db.spaces()? {
        spaces.push(Space { joined: db.joined(&id)?, id: id.to_string(), events, content_bytes });
    }
    Ok(spaces)
}

fn sizes(folder: &Path, free_bytes: u64) -> Sizes {
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let entries = std::fs::read_dir(folder.join("content")).into_iter().flatten().flatten();
    let files: Vec<u64> = entries.map(|entry| length(&entry.path())).collect();
    Sizes {
        database_bytes: length(&data_folder::database(folder)),
        content_files: files.len() as u64,
        content_file_bytes: files.iter().sum(),
        free_bytes,
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, journal at {}", self.data_dir, self.position)?;
        let Stages { applied, held, ready, carried, refused, expired } = &self.stages;
        writeln!(f, "\nevents")?;
        for (stage, rows, meaning) in [
            ("applied", applied, "their effects are in the views"),
            ("held", held, "waiting; `anteroom held` says for what"),
            ("ready", ready, "about to be looked at again"),
            ("carried", carried, "kept for others"),
            ("refused", refused, "ids remembered as never valid"),
            ("expired", expired, "ids that waited too long"),
        ] {
            writeln!(f, "  {stage:<10}{rows:>12}  {meaning}")?;
        }
        if self.missing_contents > 0 {
            writeln!(f, "  {} without their content so far", count(self.missing_contents, "applied event"))?;
        }
        writeln!(f, "\nspaces")?;
        for space in &self.spaces {
            let joined = if space.joined { ", joined" } else { "" };
            let (events, bytes) = (count(space.events, "event"), size(space.content_bytes));
            writeln!(f, "  {}  {events}, {bytes} of content{joined}", space.id)?;
        }
        if self.spaces.is_empty() {
            writeln!(f, "  none yet")?;
        }
        writeln!(f, "\ntables with rows")?;
        for table in self.tables.iter().filter(|table| table.rows > 0) {
            writeln!(f, "  {:<22}{:<8}{:>12}", table.name, table.class, table.rows)?;
        }
        if !self.counts.is_empty() {
            writeln!(f, "\ncounted so far")?;
        }
        for (word, number) in &self.counts {
            writeln!(f, "  {word:<30}{number:>12}")?;
        }
        let sizes = &self.sizes;
        writeln!(f, "\nsizes")?;
        writeln!(f, "  database       {}", size(sizes.database_bytes))?;
        let files = count(sizes.content_files, "file");
        writeln!(f, "  content        {} in {files}", size(sizes.content_file_bytes))?;
        write!(f, "  free on disk   {}", size(sizes.free_bytes))?;
        self.digest.as_ref().map_or(Ok(()), |digest| write!(f, "\n\ndigest of all views {digest}"))
    }
}
