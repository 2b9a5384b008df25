//! `anteroom prune`: drop the content of events here.

use super::Done;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use clap::Args;
use engine::content::PruneResult;
use model::EventId;
use node::{Clock as _, WriterCore, node_commands};
use serde::Serialize;
use std::fmt;
use std::process::ExitCode;

/// Drop the content of events from this node; the events stay
///
/// Others keep theirs. The bytes go with the next `collect` after the grace period, unless something else refers to them.
#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// The events
    #[arg(value_name = "ID", required = true)]
    ids: Vec<EventId>,
}

#[derive(Debug, Serialize)]
struct Answer {
    pruned: Vec<One>,
}

#[derive(Debug, Serialize)]
struct One {
    id: String,
    dropped: bool,
    /// Why nothing was dropped.
    why_not: Option<&'static str>,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for one in &self.pruned {
            match one.why_not {
                None => writeln!(f, "{} content dropped here", one.id)?,
                Some(why) => writeln!(f, "{} nothing to drop: {why}", one.id)?,
            }
        }
        Ok(())
    }
}

impl Prune {
    pub(super) fn run(&self, context: &Context) -> Done {
        let (store, _lock) = data_folder::open(context, Access::Write)?;
        let core = WriterCore::new(store);
        let commands = self.ids.iter().map(|id| node_commands::Prune(*id)).collect();
        let done = core.run(commands, context.clock.now())?;
        core.settle(context.clock.now())?;
        let pruned = self.ids.iter().zip(done.answers).map(|(id, pruned)| Ok(one(id, pruned?)));
        let answer = Answer { pruned: pruned.collect::<Result<_, Failure>>()? };
        context.show(&answer)?;
        let is_unknown = |one: &One| one.why_not == Some("not known");
        Ok(if answer.pruned.iter().any(is_unknown) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn one(id: &EventId, pruned: PruneResult) -> One {
    let why_not = match pruned {
        PruneResult::Dropped => None,
        PruneResult::Nothing(why) => Some(why),
    };
    One { id: id.to_string(), dropped: why_not.is_none(), why_not }
}
