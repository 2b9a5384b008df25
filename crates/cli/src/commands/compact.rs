//! `anteroom compact`: gives unused space of the database back to the file system.

use super::CommandResult;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::formatting::format_size;
use clap::Args;
use serde::Serialize;
use std::fmt;
use std::process::ExitCode;

/// Give unused space of the database back to the file system
///
/// What was deleted leaves unused space in the database, which is used again for what is written next. This command
/// copies the database into a new file without it, which needs as much free disk space as the result. The node must
/// be stopped; it does the same by itself when it starts and more than half of a file of at least 64 MiB is unused.
#[derive(Debug, Args)]
pub(crate) struct Compact;

#[derive(Debug, Serialize)]
struct Answer {
    bytes_before: u64,
    bytes: u64,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the database takes {}, before {}", format_size(self.bytes), format_size(self.bytes_before))
    }
}

impl Compact {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        let (store, _lock) = data_folder::open(context, Access::Write)?;
        let done = store.compact_folder(context.data_dir())?;
        context.print(&Answer { bytes_before: done.before, bytes: done.after })?;
        Ok(ExitCode::SUCCESS)
    }
}
