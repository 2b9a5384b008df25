//! `anteroom retry`: checks an event again, or schedules a fetch now.

use super::CommandResult;
use super::show::unknown_event;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::event_id_argument::parse_event_id;
use crate::failure::Failure;
use clap::Args;
use engine::reads::Reads as _;
use model::need::BadNeed;
use model::{EventId, Need, Seq, Stage};
use node::node_commands::HuntNow;
use node::{Clock as _, WriterCore};
use serde::Serialize;
use std::fmt;
use std::process::ExitCode;
use store::Db;
use store::tables::Snapshot;

/// Check an event again and fetch what it needs now, or fetch one need now
///
/// The node fetches when it is started.
#[derive(Debug, Args)]
pub(crate) struct Retry {
    /// An event id, or a need as `held` prints it, such as event:ID or content:SPACE:HASH
    #[arg(value_name = "ID|NEED", value_parser = parse_target)]
    target: RetryTarget,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum RetryTarget {
    Event(EventId),
    Need(Need),
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
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.stage, self.waiting) {
            (Some("held"), _) => {
                writeln!(f, "{} is still held; the node fetches what it needs as soon as it runs", self.retried)
            }
            (Some(stage), _) => writeln!(f, "{} is {stage}", self.retried),
            (None, _) => writeln!(f, "the node fetches {} as soon as it runs", self.retried),
        }
    }
}

impl Retry {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        let (store, _lock) = data_folder::open(context, Access::Write)?;
        let core = WriterCore::resume(store, context.clock.now());
        let answer = match &self.target {
            RetryTarget::Event(id) => retry_event(context, &core, id)?,
            RetryTarget::Need(need) => retry_need(context, &core, need)?,
        };
        context.print(&answer)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn retry_event(context: &Context, core: &WriterCore, id: &EventId) -> Result<Answer, Failure> {
    let db = core.store().snapshot()?;
    if db.seq(id)?.is_none() {
        return Err(unknown_event(&db, id)?);
    }
    drop(db);
    core.ask(HuntNow::ForEvent(*id), context.clock.now())?;
    core.settle(context.clock.now())?;
    let db = core.store().snapshot()?;
    let row = match db.seq(id)? {
        Some(seq) => db.event(seq)?,
        None => None,
    };
    let stage = match (row, db.refused(id)?) {
        (Some(row), _) => row.stage,
        (None, Some(why)) => Stage::Refused { why },
        (None, None) => Stage::Expired,
    };
    Ok(Answer { retried: format!("event {id}"), stage: Some(stage.word()), waiting: None })
}

fn retry_need(context: &Context, core: &WriterCore, need: &Need) -> Result<Answer, Failure> {
    let db = core.store().snapshot()?;
    let waiting = count_waiting(&db, need)?;
    drop(db);
    if waiting == 0 {
        let what = format!("no event waits for {need}");
        return Err(Failure::new(what, "`anteroom held` lists the needs of held events"));
    }
    if let Need::Time(_) = need {
        return Err(Failure::new("a time need cannot be fetched", "it is met when the clock reaches that time"));
    }
    core.ask(HuntNow::ForNeed(need.clone()), context.clock.now())?;
    core.settle(context.clock.now())?;
    Ok(Answer { retried: need.to_string(), stage: None, waiting: Some(waiting) })
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
