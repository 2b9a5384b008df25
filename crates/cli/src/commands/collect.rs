//! `anteroom collect`: forget what nobody refers to.

use super::Done;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use crate::formatting::count;
use clap::Args;
use node::{Clock as _, WriterCore, WriterReply, WriterRequest};
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
            let done = core.run(vec![WriterRequest::Collect], context.clock.now())?;
            match done.replies.as_slice() {
                [WriterReply::Collected { forgotten: 0, deleted: 0 }] => break,
                [WriterReply::Collected { forgotten, deleted }] => {
                    answer.forgotten += forgotten;
                    answer.deleted += deleted;
                }
                other => {
                    let what = format!("the collection was answered with {other:?}");
                    return Err(Failure::new(what, "run `anteroom verify`"));
                }
            }
        }
        context.show(&answer)?;
        Ok(ExitCode::SUCCESS)
    }
}
