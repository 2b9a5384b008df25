//! `anteroom import`: reads events and content from a bundle.

use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use crate::formatting::{format_count, format_size};
use crate::passphrase::PassphraseSource;
use crate::progress::ProgressDisplay;
use crate::signals::ShutdownSignals;
use crate::{home_space, welcome_thread};
use clap::Args;
use node::Node;
use node::bundle::{BundleInput, ImportError, ImportProgress, Imported, Passphrase, Pipe, import};
use node::fetch::hunter::NoSources;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const BUFFER_BYTES: usize = 1 << 20;

/// Import events and content from a bundle that `export` wrote
///
/// If the bundle includes keys (`export --with-keys`), the passphrase lets this node read and serve its spaces. Events that
/// are already stored are skipped. To resume an interrupted import, run it again. From standard input, up to 1 GiB of
/// content may come before the events that refer to it; from a file, all of it.
#[derive(Debug, Args, Serialize, Deserialize)]
pub(crate) struct Import {
    /// The bundle; `-` for standard input
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    #[command(flatten)]
    #[serde(skip)]
    passphrase_source: PassphraseSource,
    /// The passphrase, once it was read.
    #[arg(skip)]
    pub(super) passphrase: Option<Passphrase>,
}

/// What was imported, and whether a passphrase was given.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Answer(Imported, #[serde(skip)] bool);

impl Import {
    /// Reads the passphrase, in the process of whoever asks.
    pub(super) fn read_passphrase(&mut self) -> Result<(), Failure> {
        self.passphrase = self.passphrase_source.read(false)?;
        Ok(())
    }

    pub(super) fn run(&self, context: &Context) -> Result<u8, Failure> {
        let (input, total) = open_bundle(&self.file, context.data_dir())?;
        let (imported, ended) = match &context.inside {
            Some(inside) => import(&inside.node, input, self.passphrase.as_ref(), &mut |_| true),
            None => import_into_folder(context, input, total, self.passphrase.as_ref())?,
        };
        let answer = Answer(imported, self.passphrase.is_some());
        if let Err(why) = ended {
            if !context.json {
                context.print_error(&format!("imported before the error:\n{answer}\n"));
            }
            return Err(Failure::from(why).with_result(&answer));
        }
        context.print(&answer)?;
        Ok(0)
    }
}

fn import_into_folder(
    context: &Context,
    input: Box<dyn BundleInput>,
    total: Option<u64>,
    passphrase: Option<&Passphrase>,
) -> Result<(Imported, Result<(), ImportError>), Failure> {
    let (store, _lock) = data_folder::open(context, Access::Write)?;
    let signals = ShutdownSignals::listen()?;
    let options = context.settings.config.node_options();
    let node = Node::start(store, Arc::new(context.clock), Arc::new(NoSources), options);
    // What is imported with its keys does not take the place of the node's own space.
    if passphrase.is_some() && home_space::create_home_space(&node)? {
        welcome_thread::create_welcome_thread(&node)?;
    }
    let bar = ProgressDisplay::for_bytes(context.json, "importing", total);
    let mut watch = |progress: ImportProgress| {
        bar.set(progress.bytes);
        !signals.is_shutdown_requested()
    };
    tracing::debug!("reading the bundle");
    let done = import(&node, input, passphrase, &mut watch);
    drop(bar);
    node.stop();
    Ok(done)
}

/// The bundle, and its length if it is a regular file.
fn open_bundle(path: &Path, data_dir: &Path) -> Result<(Box<dyn BundleInput>, Option<u64>), Failure> {
    if path == Path::new("-") {
        let input = BufReader::with_capacity(BUFFER_BYTES, std::io::stdin());
        return Ok((Box::new(Pipe::new(input, data_dir.to_owned())), None));
    }
    let failed = |why| Failure::file("read the bundle", path, &why);
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(failed(std::io::ErrorKind::IsADirectory.into()));
    }
    let total = metadata.is_file().then_some(metadata.len());
    let file = BufReader::with_capacity(BUFFER_BYTES, file);
    // What is no regular file may be a pipe with a name.
    let input: Box<dyn BundleInput> =
        if total.is_some() { Box::new(file) } else { Box::new(Pipe::new(file, data_dir.to_owned())) };
    Ok((input, total))
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
            ("contents that no readable event refers to", imported.contents_unwanted),
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
        if imported.spaces_with_keys > 0 {
            let (spaces, users) =
                (format_count(imported.spaces_adopted, "space"), format_count(imported.users_adopted, "user"));
            let keys = format_count(imported.spaces_with_keys, "space");
            writeln!(f, "keys of {keys} read; {spaces} and {users} are new on this node")?;
        }
        if self.1 && imported.spaces_with_keys == 0 {
            writeln!(f, "the bundle includes no keys: the passphrase was not needed")?;
        }
        if imported.keys_unread > 0 {
            writeln!(f, "the bundle includes keys, which were not read: to read and serve its spaces here, import it")?;
            writeln!(f, "again with --passphrase-file FILE")?;
        }
        if imported.expired > 0 {
            let expired = format_count(imported.expired, "event");
            writeln!(f, "{expired} that waited expired meanwhile, because more wait than there is room for or their")?;
            writeln!(f, "time was over; import what they wait for, then import this bundle again")?;
        }
        if imported.carried_dropped > 0 {
            let dropped = format_count(imported.carried_dropped, "carried event");
            writeln!(f, "{dropped} had to go, because more are carried for other nodes than there is room for")?;
        }
        if imported.carried > 0 {
            writeln!(
                f,
                "the carried events are sealed for spaces whose key this node does not have: they are kept, and"
            )?;
            writeln!(f, "are shown as soon as this node has it: on a node that has the key, export the space with")?;
            writeln!(f, "--with-keys, and import that")?;
        }
        match imported.waiting {
            0 => write!(f, "no event is held"),
            held => write!(f, "{} held now; `anteroom held` shows what they wait for", format_count(held, "event")),
        }
    }
}
