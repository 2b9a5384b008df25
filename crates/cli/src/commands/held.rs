//! `anteroom held`: lists the needs of held events.

use crate::context::Context;
use crate::data_folder;
use crate::failure::Failure;
use crate::formatting::{escape_controls, format_count, format_hunt, format_time_relative};
use clap::Args;
use model::SpaceId;
use node::explain::{HeldFilter, HeldList, HeldNeed, held};
use serde::{Deserialize, Serialize};
use std::fmt;

/// List what held events wait for: each need, the number of events, since when, and the next attempt to fetch it
#[derive(Debug, Args, Serialize, Deserialize)]
pub(crate) struct Held {
    /// The maximum number of needs to list
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    /// List needs of this kind only
    #[arg(long, value_name = "KIND")]
    #[arg(value_parser = ["event", "key", "address", "git", "repository", "time", "content"])]
    kind: Option<String>,
    /// List needs of events in this space only
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
    pub(super) fn run(&self, context: &Context) -> Result<u8, Failure> {
        let (db, _store) = data_folder::open_snapshot(context)?;
        let filter = HeldFilter { word: self.kind.clone(), space: self.space };
        let list = held(&db, self.limit, &filter)?;
        context.print(&Answer { list, now: context.now() })?;
        Ok(0)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.list.held {
            0 => writeln!(f, "no event is held")?,
            held => writeln!(f, "{} held", format_count(held, "event"))?,
        }
        self.list.needs.iter().try_for_each(|need| write_need(f, need, self.now))?;
        if self.list.and_more {
            writeln!(f, "there are more needs; use --limit to list them")?;
        }
        if !self.list.needs.is_empty() {
            writeln!(
                f,
                "`anteroom explain ID` shows details of an event, `anteroom retry NEED` tries to fetch a need now"
            )?;
        }
        Ok(())
    }
}

fn write_need(f: &mut fmt::Formatter<'_>, held: &HeldNeed, now: u64) -> fmt::Result {
    writeln!(f, "{}", escape_controls(&held.need.to_string()))?;
    let more = if held.and_more { " or more" } else { "" };
    let waiting = format_count(held.waiting, "event");
    writeln!(f, "  {waiting}{more} waiting, the first since {}", format_time_relative(now, held.since))?;
    for waiting in &held.first {
        writeln!(f, "  {} {}", waiting.kind.as_deref().unwrap_or("event"), waiting.id)?;
    }
    match &held.hunted {
        Some(hunted) => writeln!(f, "  {}", format_hunt(now, hunted)),
        None => match &held.need {
            model::Need::Time(at) => writeln!(f, "  reached {}", format_time_relative(now, at.0)),
            _ => writeln!(f, "  not being fetched"),
        },
    }
}
