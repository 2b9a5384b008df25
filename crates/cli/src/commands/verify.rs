//! `anteroom verify`: checks the data folder.

use crate::context::Context;
use crate::data_folder::{self, ReadStore};
use crate::failure::Failure;
use crate::formatting::format_count;
use clap::Args;
use git::GitFolder;
use node::Clock as _;
use node::git::check_repositories;
use serde::{Deserialize, Serialize};
use std::fmt;
use store::Db;
use store::tables::Snapshot;

/// Check all invariants of the data and every page of the database; the exit code is 1 if there is a problem
///
/// The data is not changed: views are rebuilt separately and compared. Damaged pages of the database are repaired where
/// possible.
#[derive(Debug, Args, Serialize, Deserialize)]
pub(crate) struct Verify;

#[derive(Debug, Serialize)]
struct Answer {
    events: u64,
    contents: u64,
    digest: String,
    unreadable: u64,
    problems: Vec<String>,
    /// The node was running: git repositories, pages of the database, and whether the views follow from the events, were not
    /// checked.
    #[serde(rename = "partial")]
    is_running: bool,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} and {} checked", format_count(self.events, "event"), format_count(self.contents, "content"))?;
        writeln!(f, "digest of all views {}", self.digest)?;
        if self.unreadable > 0 {
            writeln!(f, "{} not readable because their keys were destroyed", format_count(self.unreadable, "content"))?;
        }
        if self.is_running {
            writeln!(
                f,
                "the node is running: to check git repositories and the database's pages, and rebuild the views too, stop it first"
            )?;
        }
        self.problems.iter().try_for_each(|problem| writeln!(f, "problem: {problem}"))?;
        match self.problems.len() {
            0 => write!(f, "no problems found"),
            _ => write!(
                f,
                "what to do: keep this folder as it is. If rows are damaged, `anteroom salvage FOLDER` brings everything \
                 readable into a new folder; otherwise restore a backup into another folder"
            ),
        }
    }
}

/// What is wrong with git repositories, if there are any.
fn check_git(context: &Context, db: &Db<Snapshot>) -> Result<Vec<String>, Failure> {
    let Some(folder) = GitFolder::open_existing(context.data_dir().join("git")) else { return Ok(Vec::new()) };
    check_repositories(db, &folder).map_err(|why| {
        Failure::new(format!("git repositories cannot be checked: {why}"), "install git 2.37 or later, then try again")
    })
}

impl Verify {
    pub(super) fn run(&self, context: &Context) -> Result<u8, Failure> {
        let report = match data_folder::open_to_read(context)? {
            ReadStore::Running(node) => node.store().verify_beside()?,
            ReadStore::Opened(mut store, _lock) => {
                let mut report = store.verify(context.clock.now())?;
                let db = store.snapshot()?;
                report.problems.extend(check_git(context, &db)?);
                drop(db);
                match store.check_pages() {
                    Ok(true) => {}
                    Ok(false) => report.problems.push("damaged pages of the database were repaired".into()),
                    Err(why) => report.problems.push(format!("the pages of the database cannot be checked: {why}")),
                }
                report
            }
        };
        let answer = Answer {
            events: report.events,
            contents: report.contents,
            digest: report.digest,
            unreadable: report.unreadable,
            problems: report.problems.into_iter().chain(report.parked).collect(),
            is_running: context.inside.is_some(),
        };
        context.print(&answer)?;
        Ok(u8::from(!answer.problems.is_empty()))
    }
}
