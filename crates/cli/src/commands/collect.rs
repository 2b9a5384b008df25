//! `anteroom collect`: forget what nobody refers to.

use super::Done;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::formatting::count;
use clap::Args;
use node::node_commands::{self, Collected};
use node::{Clock as _, WriterCore};
use serde::Serialize;
use std::fmt;
use std::process::ExitCode;

/// Forget content that nobody refers to any more, after its grace period, and delete its files
#[derive(Debug, Args)]
pub(crate) struct Collect;

#[derive(Debug, Serialize)]
struct Answer {
    forgotten: usize,
    deleted: usize,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contents = count(self.forgotten as u64, "content");
        writeln!(f, "{contents} forgotten, {} deleted", count(self.deleted as u64, "file"))
    }
}

impl Collect {
    pub(super) fn run(&self, context: &Context) -> Done {
        let (store, _lock) = data_folder::open(context, Access::Write)?;
        let core = WriterCore::new(store);
        let mut answer = Answer { forgotten: 0, deleted: 0 };
        // Each turn is bounded, and files go in the turn after the one that forgets them.
        loop {
            let Collected { forgotten, deleted } = core.ask(node_commands::Collect, context.clock.now())?;
            if (forgotten, deleted) == (0, 0) {
                break;
            }
            answer.forgotten += forgotten;
            answer.deleted += deleted;
        }
        context.show(&answer)?;
        Ok(ExitCode::SUCCESS)
    }
}
