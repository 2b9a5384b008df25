//! `anteroom import`: reads events and content from a bundle.

use super::CommandResult;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use crate::formatting::{format_count, format_size};
use crate::output;
use crate::progress::ProgressDisplay;
use crate::signals::ShutdownSignals;
use clap::Args;
use node::Node;
use node::bundle::{ImportProgress, Imported, import};
use node::fetch::hunter::NoSources;
use serde::Serialize;
use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

const BUFFER_BYTES: usize = 1 << 20;

/// Import events and content from a bundle that `export` wrote
///
/// Events that are already stored are skipped. To resume an interrupted import, run it again.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The bundle; `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Answer(Imported);

impl Import {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        let (input, total) = open_bundle(&self.file)?;
        let (store, _lock) = data_folder::open(context, Access::Write)?;
        let signals = ShutdownSignals::listen()?;
        let options = context.settings.config.node_options();
        let node = Node::start(store, Arc::new(context.clock), Arc::new(NoSources), options);
        let bar = ProgressDisplay::for_bytes(context.json, "importing", total);
        let mut watch = |progress: ImportProgress| {
            bar.set(progress.bytes);
            !signals.is_shutdown_requested()
        };
        tracing::debug!("reading the bundle");
        let (imported, ended) = import(&node, input, &mut watch);
        drop(bar);
        node.stop();
        let answer = Answer(imported);
        if let Err(why) = ended {
            if !context.json {
                output::write_stderr(&format!("imported before the error:\n{answer}\n"));
            }
            return Err(Failure::from(why).with_result(&answer));
        }
        context.print(&answer)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The bundle, and its length if it is a regular file.
fn open_bundle(path: &Path) -> Result<(Box<dyn Read>, Option<u64>), Failure> {
    if path == Path::new("-") {
        return Ok((Box::new(BufReader::with_capacity(BUFFER_BYTES, std::io::stdin())), None));
    }
    let failed = |why| Failure::file("read the bundle", path, &why);
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(failed(std::io::ErrorKind::IsADirectory.into()));
    }
    let total = metadata.is_file().then_some(metadata.len());
    Ok((Box::new(BufReader::with_capacity(BUFFER_BYTES, file)), total))
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let imported = &self.0;
        writeln!(f, "{} read, {}", format_count(imported.records, "record"), format_size(imported.bytes))?;
        let counts = [
            ("applied", imported.applied),
            ("held", imported.held),
            ("carried for other nodes", imported.carried),
            ("already stored", imported.known),
            ("contents stored", imported.contents),
            ("contents already stored", imported.contents_known),
            ("contents that no event refers to", imported.contents_unwanted),
            ("parked after an internal error; run `anteroom verify`", imported.parked),
        ];
        for (what, number) in counts.into_iter().filter(|(_, number)| *number > 0) {
            writeln!(f, "  {number:>10} {what}")?;
        }
        for (why, number) in &imported.refused {
            writeln!(f, "  {number:>10} refused: {why}")?;
        }
        for (why, number) in &imported.turned_away {
            writeln!(f, "  {number:>10} not accepted: {why}")?;
        }
        for (why, number) in &imported.dropped {
            writeln!(f, "  {number:>10} invalid, dropped ({why})")?;
        }
        for dropped in &imported.first_dropped {
            writeln!(f, "             at byte {}: {}", dropped.at, dropped.why)?;
        }
        match imported.waiting {
            0 => write!(f, "no event is held"),
            held => write!(f, "{} held now; `anteroom held` shows what they wait for", format_count(held, "event")),
        }
    }
}
