//! `anteroom rebuild-views`: rebuilds the views from the stored events.

use super::CommandResult;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::formatting::format_count;
use crate::progress::ProgressDisplay;
use clap::Args;
use node::Clock as _;
use serde::Serialize;
use std::fmt;
use std::process::ExitCode;

/// Rebuild all views from the stored events
///
/// Nothing else changes. The digest stays the same unless the views were wrong.
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
        writeln!(f, "views rebuilt from {}", format_count(self.events, "applied event"))?;
        if self.changed {
            writeln!(f, "the views were wrong; their digest was {}", self.digest_before)?;
        }
        let same = if self.changed { "" } else { ", unchanged" };
        write!(f, "digest of all views {}{same}", self.digest)
    }
}

impl RebuildViews {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        let (store, _lock) = data_folder::open(context, Access::Write)?;
        // Views that are damaged have none.
        let before = store.snapshot()?.digest().map(|digest| digest.to_string()).unwrap_or_default();
        let bar = ProgressDisplay::for_count(context.json, "rebuilding views");
        let events = store.rebuild_views(context.clock.now(), &mut |done| bar.set(done))?;
        drop(bar);
        let after = store.snapshot()?.digest()?;
        context.print(&Answer {
            events,
            changed: before != after.to_string(),
            digest_before: before,
            digest: after.to_string(),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
