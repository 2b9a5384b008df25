//! `anteroom verify`: whether everything is in order.

use super::Done;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::formatting::count;
use clap::Args;
use node::Clock as _;
use serde::Serialize;
use std::fmt;
use std::process::ExitCode;

/// Check everything against the rules, and every page of the database; exit with 1 if something is wrong
///
/// Nothing is changed: views are built again beside the old ones and compared.
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
        writeln!(f, "{} and {} looked at", count(self.events, "event"), count(self.contents, "content"))?;
        writeln!(f, "digest of all views {}", self.digest)?;
        if self.unreadable > 0 {
            writeln!(f, "{} under keys that were destroyed", count(self.unreadable, "content"))?;
        }
        self.problems.iter().try_for_each(|problem| writeln!(f, "problem: {problem}"))?;
        match self.problems.len() {
            0 => write!(f, "everything is in order"),
            _ => write!(f, "what to do: keep this folder as it is, and restore a backup into another one"),
        }
    }
}

impl Verify {
    pub(super) fn run(&self, context: &Context) -> Done {
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
            Ok(false) => answer.problems.push("pages of the database did not match and were repaired".into()),
            Err(why) => answer.problems.push(format!("the pages of the database cannot be checked: {why}")),
        }
        context.show(&answer)?;
        Ok(if answer.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
