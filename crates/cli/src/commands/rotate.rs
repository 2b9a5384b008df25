//! `anteroom rotate`: a new storage key for a space.

use super::Done;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use crate::row_rewrite::{self, ROWS_PER_STEP};
use clap::Args;
use engine::reads::Reads as _;
use model::SpaceId;
use std::process::ExitCode;
use store::Store;

/// Make a new storage key for a space and encrypt its content under it
///
/// The old key is removed at the end. May be stopped and run again: it goes on where it was.
#[derive(Debug, Args)]
pub(crate) struct Rotate {
    /// The space, by its name or id
    #[arg(value_name = "SPACE")]
    space: String,
}

impl Rotate {
    pub(super) fn run(&self, context: &Context) -> Done {
        let (mut store, _lock) = data_folder::open(context, Access::Write)?;
        let space = self.find(&store)?;
        let swept = row_rewrite::run(context, &store, "encrypting", |batch| batch.rotate(&space, ROWS_PER_STEP))?;
        row_rewrite::compact(&mut store);
        context.show(&swept)?;
        Ok(ExitCode::SUCCESS)
    }

    fn find(&self, store: &Store) -> Result<SpaceId, Failure> {
        let db = store.snapshot()?;
        let named = db.kept_spaces()?.into_iter().find(|(_, kept)| kept.name == self.space);
        if let Some((space, _)) = named {
            return Ok(space);
        }
        if let Ok(space) = self.space.parse::<SpaceId>()
            && db.space_no(&space)?.is_some()
        {
            return Ok(space);
        }
        Err(Failure::new(format!("there is no space {:?} here", self.space), "`anteroom status` shows the ids"))
    }
}
