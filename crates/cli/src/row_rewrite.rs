//! Rewrites values in all rows of the data folder (encrypt, rotate, rewrap) in small durable transactions, so that an
//! interrupted command resumes where it stopped.

use crate::context::Context;
use crate::failure::Failure;
use crate::formatting::format_count;
use crate::progress::ProgressDisplay;
use engine::reads::StoreResult;
use node::Clock as _;
use serde::Serialize;
use std::fmt;
use store::maintenance::sweep::SweepProgress;
use store::{Batch, Store};

/// How many rows one transaction checks.
pub(crate) const ROWS_PER_STEP: usize = 1000;

/// Repeats a step until it reports that it is done.
pub(crate) fn rewrite_rows(
    context: &Context,
    store: &Store,
    label: &'static str,
    step: impl Fn(&mut Batch<'_>) -> StoreResult<SweepProgress>,
) -> Result<RewriteReport, Failure> {
    let bar = ProgressDisplay::for_count(context.json, label);
    loop {
        let progress = store.write(context.clock.now(), &step)?;
        bar.set(progress.seen);
        if progress.is_done {
            return Ok(RewriteReport { rows: progress.seen, written: progress.changed });
        }
    }
}

/// Frees the database pages that contained the old values. A failure is only logged, because the rewrite is complete.
pub(crate) fn compact_database(store: &mut Store) {
    if let Err(why) = store.compact() {
        tracing::warn!(
            "could not compact the database, which may still contain old values: {why}; run the command again later"
        );
    }
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct RewriteReport {
    rows: u64,
    written: u64,
}

impl fmt::Display for RewriteReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} checked, {} rewritten", format_count(self.rows, "row"), format_count(self.written, "value"))
    }
}
