//! Work over all rows of the data folder, in small durable steps, so that it can be stopped anywhere and goes on later.

use crate::context::Context;
use crate::failure::Failure;
use crate::formatting::count;
use crate::progress::Bar;
use engine::reads::StoreResult;
use node::Clock as _;
use serde::Serialize;
use std::fmt;
use store::maintenance::sweep::SweepProgress;
use store::{Batch, Store};

/// How many rows one transaction looks at.
pub(crate) const ROWS_PER_STEP: usize = 1000;

/// Repeats a step until it is done.
pub(crate) fn run(
    context: &Context,
    store: &Store,
    doing: &'static str,
    step: impl Fn(&mut Batch<'_>) -> StoreResult<SweepProgress>,
) -> Result<Swept, Failure> {
    let bar = Bar::count(context.json, doing);
    loop {
        let progress = store.write(context.clock.now(), &step)?;
        bar.at(progress.seen);
        if progress.is_done {
            return Ok(Swept { rows: progress.seen, written: progress.changed });
        }
    }
}

/// Gives back pages that held what was replaced. Whatever was done is done, even if this fails.
pub(crate) fn compact(store: &mut Store) {
    if let Err(why) = store.compact() {
        tracing::warn!("the database still has old pages: {why}; run the command again later");
    }
}

/// What the work came to.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Swept {
    rows: u64,
    written: u64,
}

impl fmt::Display for Swept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} looked at, {} written anew", count(self.rows, "row"), count(self.written, "value"))
    }
}
