//! `anteroom export`: what is kept here, as a bundle.

use super::Done;
use crate::context::Context;
use crate::failure::Failure;
use crate::formatting::{count, size};
use crate::progress::Bar;
use crate::{data_folder, output};
use clap::Args;
use model::{Seq, SpaceId};
use node::bundle::{CONTENT_RECORD_BYTES_MAX, ExportOptions, Exported, export};
use serde::Serialize;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, IsTerminal as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::Db;
use store::disk::sync_dir;
use store::tables::Snapshot;

/// Write events and contents that are here to a bundle
///
/// Events are written in the order of their arrival, in whatever stage they are; sealed ones stay sealed. Contents
/// follow. Content that came later for events of an earlier export is in a whole export only.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Only this space
    #[arg(long, value_name = "ID")]
    space: Option<SpaceId>,
    /// Where to write the bundle; `-` is standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
    /// Only what arrived after this number, which an earlier export said
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: u64,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Answer(Exported);

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = &self.0;
        let (events, contents) = (count(done.events, "event"), count(done.contents, "content"));
        writeln!(f, "{events} and {contents} written, {}", size(done.bytes))?;
        if done.too_large > 0 {
            let most = size(CONTENT_RECORD_BYTES_MAX as u64);
            writeln!(f, "{} left out: larger than {most}", count(done.too_large, "content"))?;
        }
        write!(f, "the last number is {}; export what comes later with --after {0}", done.last)
    }
}

impl Export {
    pub(super) fn run(&self, context: &Context) -> Done {
        let (db, _store, _lock) = data_folder::read(context)?;
        if let Some(space) = &self.space
            && !is_known(&db, space)?
        {
            let what = format!("nothing of a space {space} is here");
            return Err(Failure::new(what, "`anteroom status` lists the spaces"));
        }
        if self.out == Path::new("-") {
            return self.to_standard_output(context, &db);
        }
        let done = self.to_file(context, &db)?;
        context.show(&Answer(done))?;
        Ok(ExitCode::SUCCESS)
    }

    fn write(&self, context: &Context, db: &Db<Snapshot>, out: impl Write) -> Result<Exported, Failure> {
        let bar = Bar::bytes(context.json, "exporting", None);
        let options = ExportOptions { space: self.space, after: Seq(self.after) };
        Ok(export(db, options, out, &mut |done| bar.at(done.bytes))?)
    }

    fn to_standard_output(&self, context: &Context, db: &Db<Snapshot>) -> Done {
        if std::io::stdout().is_terminal() {
            let what = "a bundle is not for reading, and standard output is a terminal";
            return Err(Failure::new(what, "pass --out FILE, or send the output into a file or a pipe"));
        }
        let done = self.write(context, db, BufWriter::new(std::io::stdout().lock()))?;
        output::show_beside(context.json, &Answer(done))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Writes under a temporary name, so that what stands under the name is whole.
    fn to_file(&self, context: &Context, db: &Db<Snapshot>) -> Result<Exported, Failure> {
        let path = &self.out;
        let failed = |why| Failure::file("write the bundle", path, &why);
        if path.exists() {
            let what = format!("{} is there already", path.display());
            return Err(Failure::new(what, "choose another name, or move the old bundle away first"));
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

fn sync_parent(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => sync_dir(folder),
        Some(_) | None => File::open(".")?.sync_all(),
    }
}

fn is_known(db: &Db<Snapshot>, space: &SpaceId) -> Result<bool, Failure> {
    use engine::reads::Reads as _;
    Ok(db.space_no(space)?.is_some() || !db.carried(space, Seq(0), 1)?.is_empty() || db.joined(space)?)
}
