//! `anteroom retry`: checks an event again, or schedules a fetch now.

use super::show::unknown_event;
use crate::context::Context;
use crate::data_folder::{self, Access, FolderLock};
use crate::event_id_argument::parse_event_id;
use crate::failure::Failure;
use clap::Args;
use engine::reads::Reads as _;
use model::need::BadNeed;
use model::{EventId, Nanos, Need, Seq, Stage};
use node::node_commands::HuntNow;
use node::{Answered, Clock as _, Node, WriterCommand, WriterCore};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use store::Db;
use store::tables::Snapshot;

/// Check an event again and fetch what it needs now, or fetch one need now
///
/// A running node fetches at once, within its limits; otherwise the node fetches when it is started.
#[derive(Debug, Args, Serialize, Deserialize)]
pub(crate) struct Retry {
    /// An event id, or a need as `held` prints it, such as event:ID or content:SPACE:HASH
    #[arg(value_name = "ID|NEED", value_parser = check_target)]
    target: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum RetryTarget {
    Event(EventId),
    Need(Need),
}

fn check_target(text: &str) -> Result<String, String> {
    parse_target(text).map(|_| text.to_owned())
}

fn parse_target(text: &str) -> Result<RetryTarget, String> {
    let need = |not_an_id| text.parse().map_err(|why: BadNeed| format!("{not_an_id}; {why}"));
    parse_event_id(text).map(RetryTarget::Event).or_else(|not_an_id| need(not_an_id).map(RetryTarget::Need))
}

#[derive(Debug, Serialize)]
struct Answer {
    retried: String,
    /// The stage of the event after the retry.
    stage: Option<&'static str>,
    waiting: Option<usize>,
    /// Whether a node fetches at once.
    #[serde(skip)]
    is_running: bool,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = if self.is_running { "now" } else { "as soon as it runs" };
        match (self.stage, self.waiting) {
            (Some("held"), _) => writeln!(f, "{} is still held; the node fetches what it needs {when}", self.retried),
            (Some(stage), _) => writeln!(f, "{} is {stage}", self.retried),
            (None, _) => writeln!(f, "the node fetches {} {when}", self.retried),
        }
    }
}

impl Retry {
    pub(super) fn run(&self, context: &Context) -> Result<u8, Failure> {
        let target = parse_target(&self.target).map_err(|why| Failure::new(why, "see `anteroom help retry`"))?;
        let hunting = Hunting::open(context)?;
        let mut answer = match &target {
            RetryTarget::Event(id) => retry_event(&hunting, id)?,
            RetryTarget::Need(need) => retry_need(&hunting, need)?,
        };
        answer.is_running = context.inside.is_some();
        context.print(&answer)?;
        Ok(0)
    }
}

/// Whoever can have something hunted for now: the node that executes the command, or the writer of a folder that no node
/// uses.
pub(super) enum Hunting<'a> {
    Node(&'a Node),
    Folder { core: Box<WriterCore>, now: Nanos, _lock: FolderLock },
}

impl Hunting<'_> {
    pub(super) fn open(context: &Context) -> Result<Hunting<'_>, Failure> {
        if let Some(inside) = &context.inside {
            return Ok(Hunting::Node(&inside.node));
        }
        let (store, lock) = data_folder::open(context, Access::Write)?;
        let now = context.clock.now();
        Ok(Hunting::Folder { core: Box::new(WriterCore::resume(store, now)), now, _lock: lock })
    }

    pub(super) fn snapshot(&self) -> Result<Arc<Db<Snapshot>>, Failure> {
        Ok(match self {
            Hunting::Node(node) => node.snapshot()?,
            Hunting::Folder { core, .. } => core.store().snapshot()?,
        })
    }

    /// The time as whoever hunts has it.
    pub(super) fn now(&self) -> Nanos {
        match self {
            Hunting::Node(node) => node.now(),
            Hunting::Folder { now, .. } => *now,
        }
    }

    /// Asks the writer for something else.
    pub(super) fn ask<C: WriterCommand>(&self, command: C) -> Answered<C> {
        match self {
            Hunting::Node(node) => node.ask(command),
            Hunting::Folder { core, now, .. } => core.ask(command, *now),
        }
    }

    pub(super) fn hunt(&self, what: HuntNow) -> Result<(), Failure> {
        match self {
            Hunting::Node(node) => Ok(node.ask(what)?),
            Hunting::Folder { core, now, .. } => {
                core.ask(what, *now)?;
                Ok(core.settle(*now)?)
            }
        }
    }
}

fn retry_event(hunting: &Hunting<'_>, id: &EventId) -> Result<Answer, Failure> {
    let db = hunting.snapshot()?;
    if db.seq(id)?.is_none() {
        return Err(unknown_event(&db, id)?);
    }
    drop(db);
    hunting.hunt(HuntNow::ForEvent(*id))?;
    let db = hunting.snapshot()?;
    let row = match db.seq(id)? {
        Some(seq) => db.event(seq)?,
        None => None,
    };
    let stage = match (row, db.refused(id)?) {
        (Some(row), _) => row.stage,
        (None, Some(why)) => Stage::Refused { why },
        (None, None) => Stage::Expired,
    };
    Ok(Answer { retried: format!("event {id}"), stage: Some(stage.word()), waiting: None, is_running: false })
}

fn retry_need(hunting: &Hunting<'_>, need: &Need) -> Result<Answer, Failure> {
    let db = hunting.snapshot()?;
    let waiting = count_waiting(&db, need)?;
    drop(db);
    if waiting == 0 {
        let what = format!("no event waits for {need}");
        return Err(Failure::new(what, "`anteroom held` lists the needs of held events"));
    }
    if let Need::Time(_) = need {
        return Err(Failure::new("a time need cannot be fetched", "it is met when the clock reaches that time"));
    }
    hunting.hunt(HuntNow::ForNeed(need.clone()))?;
    Ok(Answer { retried: need.to_string(), stage: None, waiting: Some(waiting), is_running: false })
}

fn count_waiting(db: &Db<Snapshot>, need: &Need) -> Result<usize, Failure> {
    const COUNT_MAX: usize = 10_000;
    let waiting = match need {
        Need::Content(space, hash) => match db.space_no(space)? {
            Some(space) => db.waiting_for_content(space, hash, Seq(0), COUNT_MAX)?,
            None => Vec::new(),
        },
        _ => db.waiting(need, Seq(0), COUNT_MAX)?,
    };
    Ok(waiting.len())
}
