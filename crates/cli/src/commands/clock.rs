//! `anteroom clock`: lists and settles what was stamped ahead of the clock.

use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use crate::formatting::{format_count, format_time, format_time_relative};
use clap::{Args, Subcommand};
use model::{Kind, Nanos};
use node::commands::CommandError;
use node::jobs::{AheadEvent, SettleAhead, Settled, Settlement, TrustClock, events_ahead};
use node::{AskError, Clock as _, WriterCore};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How many events are settled by one command; the next one goes on.
const SETTLED_MAX: usize = 1_000_000;

/// List and settle events with a time in the future
///
/// If the system clock was set wrong for a while, what was written meanwhile has a time in the future. It can be edited
/// and deleted, but its messages stay at the end of their threads until that time.
#[derive(Debug, Args, Serialize, Deserialize)]
pub(crate) struct Clock {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Action {
    /// List events with a time in the future
    List {
        /// The maximum number of events to list
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: usize,
    },
    /// Write messages and memberships again with the right time, and delete the first ones
    ///
    /// Messages get a new id and lose their reactions, and replies to them refer to a deleted message. What is of another
    /// kind stays: it can be changed at any time. Run it only when the clock is right: without --yes it says what time
    /// it is and how many events have a later one.
    Settle {
        /// Delete the messages without writing them again
        #[arg(long)]
        purge: bool,
        /// The clock is right
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Serialize)]
struct Listed {
    events: Vec<AheadEvent>,
    and_more: bool,
    #[serde(skip)]
    now: u64,
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.events.is_empty() {
            return write!(f, "no event has a time in the future");
        }
        for AheadEvent { id, kind, author, at, .. } in &self.events {
            writeln!(f, "{id}  {kind} by {author}, {}", format_time_relative(self.now, *at))?;
        }
        if self.and_more {
            writeln!(f, "there are more; use --limit to list them")?;
        }
        if !self.events.iter().any(|event| matches!(event.kind, Kind::Message | Kind::Member)) {
            return write!(f, "they can be changed at any time; there is nothing to settle");
        }
        write!(f, "if the clock is right now, `anteroom clock settle` gives messages and memberships the right time")
    }
}

#[derive(Debug, Default, Serialize)]
struct SettledEvents {
    reissued: u64,
    purged: u64,
    unchanged: u64,
    not_here: u64,
    /// Events that could not be written again, and why.
    refused: Vec<String>,
}

impl fmt::Display for SettledEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SettledEvents { reissued, purged, unchanged, not_here, refused } = self;
        let written = format_count(*reissued, "event");
        write!(f, "{written} written again in place of the first ones, {purged} deleted")?;
        if *unchanged > 0 {
            write!(
                f,
                "\n{} of other kinds unchanged: they can be changed at any time",
                format_count(*unchanged, "event")
            )?;
        }
        if *not_here > 0 {
            let left = format_count(*not_here, "event");
            write!(
                f,
                "\n{left} unchanged: the key of the author is not here, or the thread has a time in the future, too"
            )?;
        }
        refused.iter().try_for_each(|why| write!(f, "\nleft as it is: {why}"))?;
        Ok(())
    }
}

impl Clock {
    pub(super) fn run(&self, context: &Context) -> Result<u8, Failure> {
        match self.action {
            Action::List { limit } => {
                let (db, _store) = data_folder::open_snapshot(context)?;
                let mut events = events_ahead(&db, context.clock.now(), limit.saturating_add(1))?;
                let and_more = events.len() > limit;
                events.truncate(limit);
                context.print(&Listed { events, and_more, now: context.now() })?;
            }
            Action::Settle { purge, yes } => context.print(&settle(context, purge, yes)?)?,
        }
        Ok(0)
    }
}

fn settle(context: &Context, purge: bool, is_right: bool) -> Result<SettledEvents, Failure> {
    if let Some(inside) = &context.inside {
        let node = &inside.node;
        if node.clock_jump().is_some() {
            return Err(Failure::new(
                "the clock of the machine has just jumped",
                "wait until the node believes it again",
            ));
        }
        let events = events_ahead(&*node.snapshot()?, node.now(), SETTLED_MAX)?;
        check_clock(&events, node.now(), is_right)?;
        let settled = settle_all(&events, purge, |command| node.ask(command))?;
        if is_right {
            node.ask(TrustClock).map_err(|why| Failure::new(why.to_string(), "try again"))?;
        }
        return Ok(settled);
    }
    let (store, _lock) = data_folder::open(context, Access::Write)?;
    let (core, now) = (WriterCore::resume(store, context.clock.now()), context.clock.now());
    let events = events_ahead(&*core.store().snapshot()?, now, SETTLED_MAX)?;
    check_clock(&events, now, is_right)?;
    let settled = settle_all(&events, purge, |command| core.ask(command, context.clock.now()))?;
    core.settle(context.clock.now())?;
    if is_right {
        core.ask(TrustClock, context.clock.now()).map_err(|why| Failure::new(why.to_string(), "try again"))?;
    }
    Ok(settled)
}

/// With a clock that is behind, everything that was written since would be written again.
fn check_clock(events: &[AheadEvent], now: Nanos, is_right: bool) -> Result<(), Failure> {
    if is_right || events.is_empty() {
        return Ok(());
    }
    let (events, time) = (format_count(events.len() as u64, "event"), format_time(now.0));
    let what = format!("it is {time}, and {events} have a later time, which would be written again or deleted");
    Err(Failure::new(what, "if that is the right time, pass --yes"))
}

/// Memberships first: their users write on them again; last, the first memberships end.
fn settle_all(
    events: &[AheadEvent],
    purge: bool,
    ask: impl Fn(SettleAhead) -> Result<Settled, AskError<CommandError>>,
) -> Result<SettledEvents, Failure> {
    let mut events: Vec<&AheadEvent> = events.iter().collect();
    events.sort_by_key(|event| (event.kind != Kind::Member, event.at));
    let mut settled = SettledEvents::default();
    let mut replaced = Vec::new();
    for event in events {
        let how = if purge { Settlement::Purge } else { Settlement::Reissue };
        match ask(SettleAhead { id: event.id, how }) {
            Ok(Settled::Reissued(_)) => {
                settled.reissued += 1;
                replaced.extend((event.kind == Kind::Member).then_some(event.id));
            }
            Ok(Settled::Purged) => settled.purged += 1,
            Ok(Settled::Stays) => settled.unchanged += 1,
            Ok(Settled::NotHere) => settled.not_here += 1,
            Err(AskError::Refused(why)) => settled.refused.push(format!("{}: {why}", event.id)),
            Err(AskError::NotRun(why)) => {
                let what = format!("{} could not be settled: {why}", event.id);
                return Err(Failure::new(what, "try again; what was settled is kept").with_result(&settled));
            }
        }
    }
    for id in replaced {
        let _ = ask(SettleAhead { id, how: Settlement::End });
    }
    Ok(settled)
}
