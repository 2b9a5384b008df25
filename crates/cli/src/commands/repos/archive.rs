//! `anteroom repos archive`: one repository as one file.

use super::{Context, Failure, RepositoryArgument, folder_of};
use crate::data_folder;
use crate::formatting::{escape_controls, format_count, format_size};
use clap::Args;
use engine::reads::NostrReads as _;
use git::StoreName;
use node::git::wanted_refs;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

#[derive(Debug, Args, Serialize, Deserialize)]
pub(in crate::commands) struct ArchiveArguments {
    #[command(flatten)]
    repository: RepositoryArgument,
    /// The file to write: a git bundle
    #[arg(value_name = "FILE")]
    pub(in crate::commands) file: PathBuf,
}

#[derive(Debug, Serialize)]
struct Archived {
    repository: String,
    file: PathBuf,
    refs: usize,
    bytes: u64,
}

impl fmt::Display for Archived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (refs, file) = (format_count(self.refs as u64, "ref"), self.file.display());
        writeln!(
            f,
            "{} with {refs} written to {file}, {}",
            escape_controls(&self.repository),
            format_size(self.bytes)
        )?;
        writeln!(f, "`git clone {file}` makes a copy of it")
    }
}

pub(super) fn run(context: &Context, arguments: &ArchiveArguments) -> Result<u8, Failure> {
    let (owner, identifier) = arguments.repository.parse()?;
    let file = &arguments.file;
    if file.exists() {
        let what = format!("{} already exists", file.display());
        return Err(Failure::new(what, "choose another name, or move the old file away first"));
    }
    if let Some(parent) = file.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.is_dir()) {
        return Err(Failure::new(
            format!("there is no folder {}", parent.display()),
            "make it first, or choose another",
        ));
    }
    let folder = folder_of(context)?;
    let (db, _store) = data_folder::open_snapshot(context)?;
    let nothing = || {
        let what = format!("nothing is kept of {}", arguments.repository.repository);
        Failure::new(what, "`anteroom repos list` lists all repositories")
    };
    let store = db.git_store(&owner, &identifier)?.ok_or_else(nothing)?;
    let head = wanted_refs(&db, &owner, &identifier)?.head;
    let failed = |why: git::GitError| {
        Failure::new(format!("the repository cannot be written: {why}"), "`anteroom repos verify` looks for damage")
    };
    // Whoever looks finds a whole file, or none.
    let mut part = file.clone().into_os_string();
    part.push(".part");
    let part = PathBuf::from(part);
    let written = folder.store(StoreName(store)).write_clonable(&owner, head.as_deref(), &part).map_err(failed);
    let written = match written {
        Ok(0) => Err(nothing()),
        Ok(refs) => {
            std::fs::rename(&part, file).map(|()| refs).map_err(|why| Failure::file("write the archive", file, &why))
        }
        Err(why) => Err(why),
    };
    if written.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    let refs = written?;
    let bytes = std::fs::metadata(file).map_or(0, |about| about.len());
    context.print(&Archived {
        repository: arguments.repository.repository.clone(),
        file: file.clone(),
        refs,
        bytes,
    })?;
    Ok(0)
}
