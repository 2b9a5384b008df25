//! `anteroom held`: what is waited for.

use super::Done;
use crate::context::Context;
use crate::data_folder;
use crate::formatting::{count, hunt, moment_from, tame};
use clap::Args;
use model::SpaceId;
use node::explain::{HeldFilter, HeldList, HeldNeed, held};
use serde::Serialize;
use std::fmt;
use std::process::ExitCode;

/// List what is waited for: each need, how many wait, since when, and when it is hunted next
#[derive(Debug, Args)]
pub(crate) struct Held {
    /// At most so many needs
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    /// Only needs of this kind
    #[arg(long, value_name = "KIND")]
    #[arg(value_parser = ["event", "key", "address", "git", "repository", "time", "content"])]
    kind: Option<String>,
    /// Only what events of this space wait for
    #[arg(long, value_name = "ID")]
    space: Option<SpaceId>,
}

#[derive(Debug, Serialize)]
struct Answer {
    #[serde(flatten)]
    list: HeldList,
    #[serde(skip)]
    now: u64,
}

impl Held {
    pub(super) fn run(&self, context: &Context) -> Done {
        let (db, _store, _lock) = data_folder::read(context)?;
        let filter = HeldFilter { word: self.kind.clone(), space: self.space };
        let list = held(&db, self.limit, &filter)?;
        context.show(&Answer { list, now: context.now() })?;
        Ok(ExitCode::SUCCESS)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.list.held {
            0 => writeln!(f, "no event is held")?,
            held => writeln!(f, "{} held", count(held, "event"))?,
        }
        self.list.needs.iter().try_for_each(|need| write_need(f, need, self.now))?;
        if self.list.and_more {
            writeln!(f, "and more needs; list more with --limit")?;
        }
        if !self.list.needs.is_empty() {
            writeln!(f, "`anteroom explain ID` tells more of an event, `anteroom retry NEED` asks for a hunt")?;
        }
        Ok(())
    }
}

fn write_need(f: &mut fmt::Formatter<'_>, held: &HeldNeed, now: u64) -> fmt::Result {
    writeln!(f, "{}", tame(&held.need.to_string()))?;
    let more = if held.and_more { " or more" } else { "" };
    let waiting = count(held.waiting, "event");
    let verb = if held.waiting == 1 { "waits" } else { "wait" };
    writeln!(f, "  {waiting}{more} {verb} for it, since {}", moment_from(now, held.since))?;
    for waiting in &held.first {
        writeln!(f, "  {} {}", waiting.kind.as_deref().unwrap_or("event"), waiting.id)?;
    }
    match &held.hunted {
        Some(hunted) => writeln!(f, "  {}", hunt(now, hunted)),
        None => match &held.need {
            model::Need::Time(at) => writeln!(f, "  met by the clock {}", moment_from(now, at.0)),
            _ => writeln!(f, "  not hunted"),
        },
    }
}
