//! `anteroom collect`: removes unreferenced content.

use super::CommandResult;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::formatting::format_count;
use clap::Args;
use node::large_content::{ForgetUnfinished, interrupted_objects, remove_forgotten};
use node::{Clock as _, WriterCore, node_commands};
use serde::Serialize;
use std::fmt;
use std::process::ExitCode;

/// Remove content that nothing has referred to for store.unreferenced_content_hours, and delete its objects
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
        writeln!(f, "{contents} removed, {} deleted", format_count(self.deleted as u64, "object"))
    }
}

impl Collect {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        let (store, _lock) = data_folder::open(context, Access::Write)?;
        let core = WriterCore::resume(store, context.clock.now());
        let mut answer = Answer { forgotten: 0, deleted: 0 };
        let unfinished = interrupted_objects(core.store())?;
        if !unfinished.is_empty() {
            core.ask(ForgetUnfinished(unfinished), context.clock.now())?;
        }
        // Each round is bounded.
        loop {
            let forgotten = core.ask(node_commands::Collect, context.clock.now())?;
            if forgotten == 0 {
                break;
            }
            answer.forgotten += forgotten;
        }
        answer.deleted = remove_forgotten(core.store(), |removed| core.ask(removed, context.clock.now()))?;
        context.print(&answer)?;
        Ok(ExitCode::SUCCESS)
    }
}
