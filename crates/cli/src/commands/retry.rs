//! `anteroom retry`: look again at an event, or hunt for a need, now.

use super::Done;
use super::show::unknown;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use clap::Args;
use engine::reads::Reads as _;
use model::{EventId, Need, Seq, Stage};
use node::node_commands::HuntNow;
use node::{Clock as _, WriterCore};
use serde::Serialize;
use std::fmt;
use std::process::ExitCode;
use store::Db;
use store::tables::Snapshot;

/// Look again at an event and hunt for what it needs, or hunt for one need
#[derive(Debug, Args)]
pub(crate) struct Retry {
    /// An event id, or a need as `held` writes it, such as event:ID or content:SPACE:HASH
    #[arg(value_name = "ID|NEED", value_parser = parse)]
    what: What,
}

/// What to retry.
#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Event(EventId),
    Need(Need),
}

fn parse(text: &str) -> Result<What, String> {
    if let Ok(id) = text.parse() {
        return Ok(What::Event(id));
    }
    text.parse()
        .map(What::Need)
        .map_err(|why: model::need::BadNeed| format!("an event id is 32 hexadecimal digits; {why}"))
}

#[derive(Debug, Serialize)]
struct Answer {
    retried: String,
    /// The stage of the event afterwards.
    stage: Option<&'static str>,
    waiting: Option<usize>,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.stage, self.waiting) {
            (Some("held"), _) => {
                writeln!(f, "{} is still held; it will be hunted for as soon as the node runs", self.retried)
            }
            (Some(stage), _) => writeln!(f, "{} is {stage}", self.retried),
            (None, _) => writeln!(f, "{} will be hunted for as soon as the node runs", self.retried),
        }
    }
}

impl Retry {
    pub(super) fn run(&self, context: &Context) -> Done {
        let (store, _lock) = data_folder::open(context, Access::Write)?;
        let core = WriterCore::new(store);
        let answer = match &self.what {
            What::Event(id) => event(context, &core, id)?,
            What::Need(need) => hunt(context, &core, need)?,
        };
        context.show(&answer)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn event(context: &Context, core: &WriterCore, id: &EventId) -> Result<Answer, Failure> {
    let db = core.store().snapshot()?;
    if db.seq(id)?.is_none() {
        return Err(unknown(&db, id)?);
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

fn hunt(context: &Context, core: &WriterCore, need: &Need) -> Result<Answer, Failure> {
    let db = core.store().snapshot()?;
    let waiting = waiting(&db, need)?;
    drop(db);
    if waiting == 0 {
        let what = format!("nothing waits for {need}");
        return Err(Failure::new(what, "`anteroom held` lists what is waited for"));
    }
    if let Need::Time(_) = need {
        return Err(Failure::new("only time brings a time need", "wait for it"));
    }
    core.ask(HuntNow::ForNeed(need.clone()), context.clock.now())?;
    core.settle(context.clock.now())?;
    Ok(Answer { retried: need.to_string(), stage: None, waiting: Some(waiting) })
}

fn waiting(db: &Db<Snapshot>, need: &Need) -> Result<usize, Failure> {
    const MOST: usize = 10_000;
    let waiting = match need {
        Need::Content(space, hash) => match db.space_no(space)? {
            Some(space) => db.waiting_for_content(space, hash, Seq(0), MOST)?,
            None => Vec::new(),
        },
        _ => db.waiting(need, Seq(0), MOST)?,
    };
    Ok(waiting.len())
}
