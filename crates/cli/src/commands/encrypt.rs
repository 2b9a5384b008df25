//! `anteroom encrypt`: applies the encryption setting of each space to stored content.

use super::CommandResult;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::row_rewrite::{self, ROWS_PER_STEP};
use clap::Args;
use std::process::ExitCode;

/// Apply the encryption setting of each space to content that is already stored
///
/// `anteroom admin protect` changes the setting. If interrupted, run it again: it resumes where it stopped.
#[derive(Debug, Args)]
pub(crate) struct Encrypt;

impl Encrypt {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        let (mut store, _lock) = data_folder::open(context, Access::Write)?;
        let report =
            row_rewrite::rewrite_rows(context, &store, "encrypting", |batch| batch.encrypt_existing(ROWS_PER_STEP))?;
        row_rewrite::compact_database(&mut store);
        context.print(&report)?;
        Ok(ExitCode::SUCCESS)
    }
}
