//! Without a command: the node runs until it is asked to stop.

use super::Done;
use super::init::{self, Initialised};
use crate::context::Context;
use crate::failure::Failure;
use crate::folder::{self, Access};
use crate::signals::Signals;
use crate::{output, words};
use engine::reads::Reads as _;
use node::hunter::NoSource;
use node::{Node, Request};
use serde::Serialize;
use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How often the node is asked whether it still writes.
const LOOK: Duration = Duration::from_secs(60);

/// What is said when the node runs.
#[derive(Debug, Serialize)]
struct Running {
    data_dir: String,
    process: u32,
    events: u64,
    waiting: u64,
    made: Option<Initialised>,
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(made) = &self.made {
            writeln!(f, "{made}")?;
        }
        writeln!(f, "anteroom {} is running in {}", env!("CARGO_PKG_VERSION"), self.data_dir)?;
        writeln!(f, "  {} here, {} of them waiting", words::count(self.events, "event"), self.waiting)?;
        writeln!(f, "It runs until you press Ctrl-C. What to do next, while it is stopped:")?;
        writeln!(f, "  anteroom import FILE   brings in events that `anteroom export` wrote elsewhere")?;
        writeln!(f, "  anteroom held          says what is waited for")?;
        write!(f, "  anteroom help          lists everything else")
    }
}

/// Opens or creates the data folder and runs the node.
pub(super) fn run(context: &Context) -> Done {
    let signals = Signals::listen()?;
    let made = make_if_new(context)?;
    let (store, _lock) = folder::open(context, Access::Write)?;
    let db = store.snapshot()?;
    let running = Running {
        data_dir: context.data_dir().display().to_string(),
        process: std::process::id(),
        events: super::status::table_rows(&db, "events_v1")?,
        waiting: db.held_total()?,
        made,
    };
    drop(db);
    let clock = Arc::new(context.clock);
    let node = Node::start(store, clock, Arc::new(NoSource), context.loaded.config.node_options());
    let watched = context.show(&running).and_then(|()| watch(&node, &signals));
    node.stop();
    watched?;
    if !context.json {
        output::complain("stopped\n");
    }
    Ok(ExitCode::SUCCESS)
}

/// A folder without database and key is made ready first.
fn make_if_new(context: &Context) -> Result<Option<Initialised>, Failure> {
    let has_database = folder::database(context.data_dir()).exists();
    if has_database || context.loaded.master_key.exists() {
        return Ok(None);
    }
    init::make(context, None).map(Some)
}

/// Waits for a signal, and notices if the writer has stopped by itself.
fn watch(node: &Node, signals: &Signals) -> Result<(), Failure> {
    while !signals.wait(LOOK) {
        node.submit(Request::Tick, |_| ()).or_else(|why| match why {
            // Too much to do is a sign of life.
            node::NotDone::Busy => Ok(()),
            other => Err(Failure::new(
                format!("the node has stopped by itself: {other}"),
                "the log above says why; check the disk, run `anteroom verify`, then start again",
            )),
        })?;
    }
    Ok(())
}
