//! `anteroom export`: writes events and content to a bundle.

use crate::context::Context;
use crate::failure::Failure;
use crate::formatting::{format_count, format_size};
use crate::passphrase::PassphraseSource;
use crate::progress::ProgressDisplay;
use crate::{data_folder, output};
use clap::Args;
use model::{Seq, SpaceId};
use node::bundle::{CONTENT_RECORD_BYTES_MAX, ExportOptions, Exported, Passphrase, export};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, IsTerminal as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use store::Db;
use store::disk::sync_dir;
use store::tables::Snapshot;

/// Export events and content to a bundle that another node can import
///
/// Events are written in order of arrival, whatever their stage; sealed events stay sealed, and only nodes that
/// have the key of their space can read them: pass --with-keys to send it along. Content follows. With
/// --after, content that arrived later for events before that number is not included; a full export has it.
#[derive(Debug, Args, Serialize, Deserialize)]
pub(crate) struct Export {
    /// Export this space only
    #[arg(long, value_name = "ID")]
    space: Option<SpaceId>,
    /// The file to write; `-` for standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(super) out: PathBuf,
    /// Export only events after this number, which an earlier export printed
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: u64,
    /// Include the keys of the spaces, encrypted with a passphrase, so that the importing node can read and serve them
    ///
    /// These are the keys that encrypt the events, the name of the space, and its users with their signing keys; not
    /// passwords, passkeys and API keys. Give the passphrase with --passphrase-file or ANTEROOM_PASSPHRASE.
    #[arg(long)]
    pub(super) with_keys: bool,
    #[command(flatten)]
    #[serde(skip)]
    passphrase_source: PassphraseSource,
    /// The passphrase, once it was read.
    #[arg(skip)]
    pub(super) passphrase: Option<Passphrase>,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Answer(Exported);

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = &self.0;
        let (events, contents) = (format_count(done.events, "event"), format_count(done.contents, "content"));
        writeln!(f, "{events} and {contents} exported, {}", format_size(done.bytes))?;
        if done.spaces_with_keys > 0 {
            let spaces = format_count(done.spaces_with_keys, "space");
            writeln!(f, "with the keys of {spaces}: whoever has the bundle and the passphrase can act for its users")?;
        }
        if done.too_large > 0 {
            let most = format_size(CONTENT_RECORD_BYTES_MAX as u64);
            writeln!(f, "{} not exported: larger than {most}", format_count(done.too_large, "content"))?;
        }
        write!(f, "last event number: {}; to export later events, use --after {0}", done.last)
    }
}

impl Export {
    /// Reads the passphrase, in the process of whoever asks.
    pub(super) fn read_passphrase(&mut self) -> Result<(), Failure> {
        if !self.with_keys && self.passphrase_source.is_named() {
            return Err(Failure::new("a passphrase is for the keys of spaces", "pass --with-keys as well"));
        }
        if !self.with_keys {
            return Ok(());
        }
        self.passphrase = self.passphrase_source.read(true)?;
        let what = "keys are exported under a passphrase only";
        let missing = || Failure::new(what, "pass --passphrase-file FILE, or set ANTEROOM_PASSPHRASE");
        self.passphrase.as_ref().map(drop).ok_or_else(missing)
    }

    pub(super) fn run(&self, context: &Context) -> Result<u8, Failure> {
        let (db, _store) = data_folder::open_snapshot(context)?;
        if let Some(space) = &self.space
            && !has_data_of(&db, space)?
        {
            let what = format!("this node has no data of space {space}");
            return Err(Failure::new(what, "`anteroom status` lists the spaces"));
        }
        if self.out == Path::new("-") {
            return self.write_to_stdout(context, &db);
        }
        let done = self.write_to_file(context, &db)?;
        context.print(&Answer(done))?;
        Ok(0)
    }

    fn write(&self, context: &Context, db: &Db<Snapshot>, out: impl Write) -> Result<Exported, Failure> {
        let bar = ProgressDisplay::for_bytes(context.json || context.inside.is_some(), "exporting", None);
        let options = ExportOptions { space: self.space, after: Seq(self.after) };
        Ok(export(db, options, self.passphrase.as_ref().filter(|_| self.with_keys), out, &mut |done| {
            bar.set(done.bytes)
        })?)
    }

    fn write_to_stdout(&self, context: &Context, db: &Db<Snapshot>) -> Result<u8, Failure> {
        refuse_terminal()?;
        let done = self.write(context, db, BufWriter::new(std::io::stdout().lock()))?;
        output::print_to_stderr(context.json, &Answer(done))?;
        Ok(0)
    }

    /// Writes to a temporary name and renames it, so that the final file is always complete.
    fn write_to_file(&self, context: &Context, db: &Db<Snapshot>) -> Result<Exported, Failure> {
        let path = &self.out;
        let failed = |why| Failure::file("write the bundle", path, &why);
        if path.exists() {
            let what = format!("{} already exists", path.display());
            return Err(Failure::new(what, "choose another name, or move the old file away first"));
        }
        let mut part = path.clone().into_os_string();
        part.push(".part");
        let part = PathBuf::from(part);
        let options = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).clone();
        let file = options.open(&part).map_err(failed)?;
        let attempt = self.write(context, db, BufWriter::new(&file)).and_then(|done| {
            let named = file.sync_all().and_then(|()| fs::rename(&part, path)).and_then(|()| sync_parent(path));
            named.map(|()| done).map_err(failed)
        });
        if attempt.is_err() {
            let _ = fs::remove_file(&part);
        }
        attempt
    }
}

pub(super) fn refuse_terminal() -> Result<(), Failure> {
    if std::io::stdout().is_terminal() {
        let what = "a bundle is binary data, and standard output is a terminal";
        return Err(Failure::new(what, "pass --out FILE, or redirect the output to a file or a pipe"));
    }
    Ok(())
}

fn sync_parent(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => sync_dir(folder),
        Some(_) | None => File::open(".")?.sync_all(),
    }
}

fn has_data_of(db: &Db<Snapshot>, space: &SpaceId) -> Result<bool, Failure> {
    use engine::reads::Reads as _;
    Ok(db.space_no(space)?.is_some() || !db.carried(space, Seq(0), 1)?.is_empty() || db.joined(space)?)
}
