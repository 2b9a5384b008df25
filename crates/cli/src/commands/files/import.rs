//! `anteroom files import`: the files of a folder, some with each request to the node.

use super::{Files, FilesAction};
use crate::commands::in_node::{self, NodeCommand};
use crate::context::Context;
use crate::failure::Failure;
use crate::formatting::{escape_controls, format_count, format_size};
use crate::operator_client::OperatorClient;
use crate::progress::ProgressDisplay;
use crate::random::random_bytes;
use clap::Args;
use model::files::FileStatus;
use model::{FileId, SpaceId};
use node::Node;
use node::commands::files::NewFile;
use node::commands::{Caller, CallerKind};
use node::files::upload::{Upload, UploadRequest};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Files and bytes after which the node answers how far it is.
const FILES_PER_PART: usize = 64;
const BYTES_PER_PART: u64 = 256 << 20;
/// How deep folders are looked into.
const DEPTH_MAX: usize = 64;
const PIECE_BYTES: usize = 1 << 18;

#[derive(Debug, Clone, Args, Serialize, Deserialize)]
pub(in crate::commands) struct ImportArguments {
    /// The folder; the node reads it, so it must be there for the node as well
    #[arg(value_name = "DIR")]
    pub(in crate::commands) folder: PathBuf,
    /// The user whose files they will be
    #[arg(long, value_name = "NAME")]
    user: String,
    /// The space they go into; without it, the first space of the node
    #[arg(long, value_name = "ID")]
    space: Option<SpaceId>,
    /// Set by whoever asks for one part after another: the files before this path are done.
    #[arg(skip)]
    #[serde(default)]
    part: Option<String>,
}

/// What an import came to, or a part of one.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ImportTotals {
    uploaded: u64,
    skipped: u64,
    bytes: u64,
    failed: Vec<FailedFile>,
    /// The last path of this part; none at the end.
    next: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FailedFile {
    path: String,
    why: String,
}

impl fmt::Display for ImportTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for FailedFile { path, why } in &self.failed {
            writeln!(f, "{}: {}", escape_controls(path), escape_controls(why))?;
        }
        let (uploaded, bytes) = (format_count(self.uploaded, "file"), format_size(self.bytes));
        writeln!(f, "{uploaded} uploaded ({bytes}), {} here already, {} failed", self.skipped, self.failed.len())
    }
}

/// One part, inside the node.
pub(super) fn run(context: &Context, arguments: &ImportArguments) -> Result<u8, Failure> {
    let inside = context.inside.as_ref();
    let inside = inside.ok_or_else(|| Failure::new("no node is running that could take files", "start it first"))?;
    let node = &inside.node;
    let space = find_space(node, arguments.space)?;
    let most = context.settings.config.files.size_mib_max << 20;
    let (mut paths, mut nameless) = (Vec::new(), Vec::new());
    collect_paths(&arguments.folder, &arguments.folder, 0, (&mut paths, &mut nameless))?;
    paths.sort();
    let mut totals = ImportTotals::default();
    if arguments.part.is_none() {
        let why = || "its name is no text in UTF-8; rename it".to_owned();
        totals.failed.extend(nameless.into_iter().map(|path| FailedFile { path, why: why() }));
    }
    let after = arguments.part.as_deref().unwrap_or_default();
    for (looked_at, path) in paths.iter().filter(|path| path.as_str() > after).enumerate() {
        if looked_at >= FILES_PER_PART || totals.bytes >= BYTES_PER_PART {
            context.print(&totals)?;
            return Ok(0);
        }
        match import_one(node, (space, &arguments.user), &arguments.folder, path, most) {
            Ok(Some(bytes)) => (totals.uploaded, totals.bytes) = (totals.uploaded + 1, totals.bytes + bytes),
            Ok(None) => totals.skipped += 1,
            Err(why) => totals.failed.push(FailedFile { path: path.clone(), why }),
        }
        totals.next = Some(path.clone());
    }
    totals.next = None;
    context.print(&totals)?;
    Ok(0)
}

/// The space that was named, or the first one of the node.
pub(super) fn find_space(node: &Node, named: Option<SpaceId>) -> Result<SpaceId, Failure> {
    let spaces = node.snapshot()?.hosted_spaces()?;
    let found = spaces.iter().find(|(space, _)| named.is_none_or(|named| named == *space));
    let found = found.map(|(space, _)| *space);
    found.ok_or_else(|| Failure::new("the node keeps no such space", "`anteroom admin spaces` lists them"))
}

/// The paths of all plain files, as text below the folder, and those whose names are no text. Links are left alone.
fn collect_paths(
    root: &Path,
    folder: &Path,
    depth: usize,
    (paths, nameless): (&mut Vec<String>, &mut Vec<String>),
) -> Result<(), Failure> {
    let failed = |why| Failure::file("read the folder", folder, &why);
    if depth > DEPTH_MAX {
        let what = format!("{} is more than {DEPTH_MAX} folders deep", folder.display());
        return Err(Failure::new(what, "import its parts one by one"));
    }
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            collect_paths(root, &entry.path(), depth + 1, (paths, nameless))?;
        } else if kind.is_file() {
            let path = entry.path();
            let below = path.strip_prefix(root).unwrap_or(&path);
            match below.to_str() {
                Some(text) => paths.push(text.to_owned()),
                None => nameless.push(below.display().to_string()),
            }
        }
    }
    Ok(())
}

/// Uploads one file, unless it is here. Says how many bytes came.
fn import_one(
    node: &Node,
    (space, user): (SpaceId, &str),
    root: &Path,
    path: &str,
    most: u64,
) -> Result<Option<u64>, String> {
    let mut source = File::open(root.join(path)).map_err(|why| why.to_string())?;
    let about = source.metadata().map_err(|why| why.to_string())?;
    let id = id_of(&space, user, path, (about.len(), about.mtime(), about.mtime_nsec()));
    let known = node.snapshot().and_then(|db| db.file(&space, id)).map_err(|why| why.to_string())?;
    let new = match known.map(|record| record.status) {
        None => Some(()),
        // It was broken off.
        Some(FileStatus::Failed | FileStatus::Created) => None,
        Some(_) => return Ok(None),
    };
    let name = path.rsplit('/').next().unwrap_or(path).to_owned();
    let metadata = serde_json::json!({ "path": path }).to_string();
    let new = new.map(|()| NewFile { name, size: Some(about.len()), metadata, ..NewFile::default() });
    let caller = Caller { kind: CallerKind::Operator, user: Some(user.to_owned()), audit_name: "operator".to_owned() };
    let request = UploadRequest {
        space,
        caller,
        file: id,
        new,
        sha256: None,
        by_link: None,
        size_max: most,
        size_min: None,
        idempotency: None,
        random: random_bytes().map_err(|_| "no random numbers".to_owned())?,
    };
    send(Upload::new(node.clone(), request), &mut source).map(Some)
}

/// Sends a file to its end. Says how many bytes it has.
pub(super) fn send(mut upload: Upload, source: &mut File) -> Result<u64, String> {
    let (mut piece, mut bytes) = (vec![0; PIECE_BYTES], 0);
    loop {
        let read = source.read(&mut piece).map_err(|why| why.to_string())?;
        if read == 0 {
            break;
        }
        upload.write(&piece[..read]).map_err(|why| why.to_string())?;
        bytes += read as u64;
    }
    upload.finish().map_err(|why| why.to_string())?;
    Ok(bytes)
}

/// The same file has the same id whenever it is imported: it is skipped then.
fn id_of(space: &SpaceId, user: &str, path: &str, (size, seconds, nanos): (u64, i64, i64)) -> FileId {
    let times = [size.to_be_bytes(), seconds.to_be_bytes(), nanos.to_be_bytes()];
    let parts = [&space.0[..], user.as_bytes(), path.as_bytes(), times.as_flattened()];
    id_of_parts("anteroom v1 id of an imported file", &parts)
}

/// An id that follows from these parts.
pub(super) fn id_of_parts(context: &str, parts: &[&[u8]]) -> FileId {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    for part in parts {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    let mut id = [0; 16];
    id.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    FileId(id)
}

/// Asks the node for one part after another, and shows how far it is.
pub(in crate::commands) fn run_by_parts(
    context: &Context,
    client: &OperatorClient,
    arguments: &ImportArguments,
) -> Result<u8, Failure> {
    let folder = &arguments.folder;
    let folder = fs::canonicalize(folder).map_err(|why| Failure::file("read the folder", folder, &why))?;
    let bar = ProgressDisplay::for_count(context.json, "uploading");
    let mut totals = ImportTotals::default();
    let mut part = None;
    loop {
        let arguments = ImportArguments { folder: folder.clone(), part: part.clone(), ..arguments.clone() };
        let command = NodeCommand::Files(Files { action: FilesAction::Import(arguments) });
        let page: ImportTotals = serde_json::from_value(in_node::ask_for_json(client, &command)?)
            .map_err(|why| Failure::new(format!("the node answers something else: {why}"), "is it of this version?"))?;
        totals.uploaded += page.uploaded;
        totals.skipped += page.skipped;
        totals.bytes += page.bytes;
        totals.failed.extend(page.failed);
        bar.set(totals.uploaded + totals.skipped);
        part = page.next;
        if part.is_none() {
            break;
        }
    }
    drop(bar);
    let code = u8::from(!totals.failed.is_empty());
    context.print(&totals)?;
    Ok(code)
}
