//! `anteroom encrypt`: what rests plain, encrypted.

use super::Done;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::row_rewrite::{self, ROWS_PER_STEP};
use clap::Args;
use std::process::ExitCode;

/// Encrypt content that rests plain, such as that of an older release
///
/// May be stopped and run again: it goes on where it was.
#[derive(Debug, Args)]
pub(crate) struct Encrypt;

impl Encrypt {
    pub(super) fn run(&self, context: &Context) -> Done {
        let (mut store, _lock) = data_folder::open(context, Access::Write)?;
        let swept = row_rewrite::run(context, &store, "encrypting", |batch| batch.encrypt_existing(ROWS_PER_STEP))?;
        row_rewrite::compact(&mut store);
        context.show(&swept)?;
        Ok(ExitCode::SUCCESS)
    }
}
