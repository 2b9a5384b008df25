//! `anteroom rotate`: replaces the storage key of a space.

use super::CommandResult;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use crate::row_rewrite::{self, ROWS_PER_STEP};
use clap::Args;
use engine::reads::Reads as _;
use model::SpaceId;
use std::process::ExitCode;
use store::Store;

/// Replace the storage key of a space, and encrypt its content again
///
/// The old key is removed at the end. If interrupted, run it again: it resumes where it stopped.
#[derive(Debug, Args)]
pub(crate) struct Rotate {
    /// The name or id of the space
    #[arg(value_name = "SPACE")]
    space: String,
}

impl Rotate {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        let (mut store, _lock) = data_folder::open(context, Access::Write)?;
        let space = self.find_space(&store)?;
        let report =
            row_rewrite::rewrite_rows(context, &store, "encrypting", |batch| batch.rotate(&space, ROWS_PER_STEP))?;
        row_rewrite::compact_database(&mut store);
        context.print(&report)?;
        Ok(ExitCode::SUCCESS)
    }

    fn find_space(&self, store: &Store) -> Result<SpaceId, Failure> {
        let db = store.snapshot()?;
        let named = db.hosted_spaces()?.into_iter().find(|(_, kept)| kept.name == self.space);
        if let Some((space, _)) = named {
            return Ok(space);
        }
        if let Ok(space) = self.space.parse::<SpaceId>()
            && db.space_no(&space)?.is_some()
        {
            return Ok(space);
        }
        Err(Failure::new(format!("there is no space {:?}", self.space), "`anteroom status` lists the ids"))
    }
}
