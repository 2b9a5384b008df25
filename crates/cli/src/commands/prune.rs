//! `anteroom prune`: deletes the content of events from this node.

use super::CommandResult;
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

/// Delete the content of events from this node only; the events stay
///
/// Other nodes keep their copies. The bytes are removed by the first `collect` after store.unreferenced_content_hours,
/// unless another event refers to them.
#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// The event ids
    #[arg(value_name = "ID", required = true)]
    ids: Vec<EventId>,
}

#[derive(Debug, Serialize)]
struct Answer {
    pruned: Vec<PrunedEvent>,
}

#[derive(Debug, Serialize)]
struct PrunedEvent {
    id: String,
    dropped: bool,
    /// The reason if nothing was deleted.
    why_not: Option<&'static str>,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for one in &self.pruned {
            match one.why_not {
                None => writeln!(f, "{} content deleted from this node", one.id)?,
                Some(why) => writeln!(f, "{} nothing to delete: {why}", one.id)?,
            }
        }
        Ok(())
    }
}

impl Prune {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        let (store, _lock) = data_folder::open(context, Access::Write)?;
        let core = WriterCore::resume(store, context.clock.now());
        let commands = self.ids.iter().map(|id| node_commands::Prune(*id)).collect();
        let done = core.run(commands, context.clock.now())?;
        core.settle(context.clock.now())?;
        let pruned = self.ids.iter().zip(done.answers).map(|(id, pruned)| Ok(describe(id, pruned?)));
        let answer = Answer { pruned: pruned.collect::<Result<_, Failure>>()? };
        context.print(&answer)?;
        let is_unknown = |one: &PrunedEvent| one.why_not == Some("not known");
        Ok(if answer.pruned.iter().any(is_unknown) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn describe(id: &EventId, pruned: PruneResult) -> PrunedEvent {
    let why_not = match pruned {
        PruneResult::Dropped => None,
        PruneResult::Nothing(why) => Some(why),
    };
    PrunedEvent { id: id.to_string(), dropped: why_not.is_none(), why_not }
}
