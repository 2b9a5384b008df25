//! `anteroom import`: events and contents from a bundle.

use super::Done;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use crate::formatting::{count, size};
use crate::output;
use crate::progress::Bar;
use crate::signals::Signals;
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

/// Bring in events and contents from a bundle that `export` wrote
///
/// What is here already is skipped quickly, so an import that was interrupted is resumed by running it again.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The bundle; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Answer(Imported);

impl Import {
    pub(super) fn run(&self, context: &Context) -> Done {
        let (input, total) = open(&self.file)?;
        let (store, _lock) = data_folder::open(context, Access::Write)?;
        let signals = Signals::listen()?;
        let options = context.loaded.config.node_options();
        let node = Node::start(store, Arc::new(context.clock), Arc::new(NoSources), options);
        let bar = Bar::bytes(context.json, "importing", total);
        let mut watch = |progress: ImportProgress| {
            bar.at(progress.bytes);
            !signals.is_asked()
        };
        tracing::debug!("reading the bundle");
        let (imported, ended) = import(&node, input, &mut watch);
        drop(bar);
        node.stop();
        let answer = Answer(imported);
        if let Err(why) = ended {
            if !context.json {
                output::complain(&format!("before the import ended:\n{answer}\n"));
            }
            return Err(Failure::from(why).after(&answer));
        }
        context.show(&answer)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The bundle, and how long it is if that can be known.
fn open(path: &Path) -> Result<(Box<dyn Read>, Option<u64>), Failure> {
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
        writeln!(f, "{} read, {}", count(imported.records, "record"), size(imported.bytes))?;
        let counts = [
            ("applied", imported.applied),
            ("held on arrival", imported.held),
            ("carried for others", imported.carried),
            ("known already", imported.known),
            ("contents stored", imported.contents),
            ("contents known already", imported.contents_known),
            ("contents that nobody here refers to", imported.contents_unwanted),
            ("left alone because a rule was broken; run `anteroom verify`", imported.parked),
        ];
        for (what, number) in counts.into_iter().filter(|(_, number)| *number > 0) {
            writeln!(f, "  {number:>10} {what}")?;
        }
        for (why, number) in &imported.refused {
            writeln!(f, "  {number:>10} refused: {why}")?;
        }
        for (why, number) in &imported.turned_away {
            writeln!(f, "  {number:>10} turned away: {why}")?;
        }
        for (why, number) in &imported.dropped {
            writeln!(f, "  {number:>10} dropped at the door ({why})")?;
        }
        for dropped in &imported.first_dropped {
            writeln!(f, "             at byte {}: {}", dropped.at, dropped.why)?;
        }
        match imported.waiting {
            0 => write!(f, "nothing waits"),
            waiting => write!(f, "{} now; `anteroom held` says for what", waits(waiting)),
        }
    }
}

fn waits(number: u64) -> String {
    if number == 1 { "1 event waits".into() } else { format!("{number} events wait") }
}
