//! `anteroom verify`: checks the data folder.

use super::CommandResult;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::formatting::format_count;
use clap::Args;
use node::Clock as _;
use serde::Serialize;
use std::fmt;
use std::process::ExitCode;

/// Check all invariants of the data and every page of the database; the exit code is 1 if there is a problem
///
/// The data is not changed: views are rebuilt separately and compared. Damaged pages of the database are repaired where
/// possible.
#[derive(Debug, Args)]
pub(crate) struct Verify;

#[derive(Debug, Serialize)]
struct Answer {
    events: u64,
    contents: u64,
    digest: String,
    unreadable: u64,
    problems: Vec<String>,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} and {} checked", format_count(self.events, "event"), format_count(self.contents, "content"))?;
        writeln!(f, "digest of all views {}", self.digest)?;
        if self.unreadable > 0 {
            writeln!(f, "{} not readable because their keys were destroyed", format_count(self.unreadable, "content"))?;
        }
        self.problems.iter().try_for_each(|problem| writeln!(f, "problem: {problem}"))?;
        match self.problems.len() {
            0 => write!(f, "no problems found"),
            _ => write!(f, "what to do: keep this folder as it is, and restore a backup into another folder"),
        }
    }
}

impl Verify {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        let (mut store, _lock) = data_folder::open(context, Access::Read)?;
        let report = store.verify(context.clock.now())?;
        let mut answer = Answer {
            events: report.events,
            contents: report.contents,
            digest: report.digest,
            unreadable: report.unreadable,
            problems: report.problems,
        };
        match store.check_pages() {
            Ok(true) => {}
            Ok(false) => answer.problems.push("damaged pages of the database were repaired".into()),
            Err(why) => answer.problems.push(format!("the pages of the database cannot be checked: {why}")),
        }
        context.print(&answer)?;
        Ok(if answer.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
