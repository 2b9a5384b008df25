//! `anteroom collect`: removes unreferenced content.

use super::CommandResult;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::formatting::format_count;
use clap::Args;
use node::node_commands::{self, Collected};
use node::{Clock as _, WriterCore};
use serde::Serialize;
use std::fmt;
use std::process::ExitCode;

/// Remove content that nothing has referred to for store.unreferenced_content_hours, and delete its files
///
/// A running node does this by itself.
#[derive(Debug, Args)]
pub(crate) struct Collect;

#[derive(Debug, Serialize)]
struct Answer {
    forgotten: usize,
    deleted: usize,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contents = format_count(self.forgotten as u64, "content");
        writeln!(f, "{contents} removed, {} deleted", format_count(self.deleted as u64, "file"))
    }
}

impl Collect {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        let (store, _lock) = data_folder::open(context, Access::Write)?;
        let core = WriterCore::resume(store, context.clock.now());
        let mut answer = Answer { forgotten: 0, deleted: 0 };
        // Each round is bounded, and a file is deleted in the round after the commit that removes its row.
        loop {
            let Collected { forgotten, deleted } = core.ask(node_commands::Collect, context.clock.now())?;
            if (forgotten, deleted) == (0, 0) {
                break;
            }
            answer.forgotten += forgotten;
            answer.deleted += deleted;
        }
        for part in node_commands::DeleteStrays::all(core.store())? {
            answer.deleted += core.ask(part, context.clock.now())?;
        }
        context.print(&answer)?;
        Ok(ExitCode::SUCCESS)
    }
}
