//! `anteroom rebuild-views`: the views, built again from source.

use super::Done;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::formatting::count;
use crate::progress::Bar;
use clap::Args;
use node::Clock as _;
use serde::Serialize;
use std::fmt;
use std::process::ExitCode;

/// Build all views again from the events that are kept
///
/// Nothing else changes. The digest is the same afterwards unless the views were wrong before.
#[derive(Debug, Args)]
pub(crate) struct RebuildViews;

#[derive(Debug, Serialize)]
struct Answer {
    events: u64,
    digest_before: String,
    digest: String,
    changed: bool,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "views built again from {}", count(self.events, "applied event"))?;
        if self.changed {
            writeln!(f, "they were wrong before: their digest was {}", self.digest_before)?;
        }
        let same = if self.changed { "" } else { ", as before" };
        write!(f, "digest of all views {}{same}", self.digest)
    }
}

impl RebuildViews {
    pub(super) fn run(&self, context: &Context) -> Done {
        let (store, _lock) = data_folder::open(context, Access::Write)?;
        let before = store.snapshot()?.digest()?;
        let bar = Bar::count(context.json, "building views");
        let events = store.rebuild_views(context.clock.now(), &mut |done| bar.at(done))?;
        drop(bar);
        let after = store.snapshot()?.digest()?;
        context.show(&Answer {
            events,
            digest_before: before.to_string(),
            digest: after.to_string(),
            changed: before != after,
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
