//! What the node does for `anteroom files import-dump`: one original after another, with its versions and what was derived of
//! it. What is here already is left as it is, so that an import can be repeated.

use super::dump::{DumpArguments, DumpTotals, DumpedDerived, DumpedFile, ObjectLine};
use super::import::{self, id_of_parts};
use crate::context::Context;
use crate::failure::Failure;
use crate::random::random_bytes;
use model::files::{DerivedStatus, FileStatus, StoredStatus};
use model::{FileId, Nanos, SpaceId};
use node::Node;
use node::commands::files::NewFile;
use node::commands::files::completion::MadeRendition;
use node::commands::files::imported::{ImportDerived, ImportFile, ImportTarget, SettleImport};
use node::commands::{Caller, CallerKind};
use node::files::processing::{ORIGINAL_BYTES_MAX, store_derived};
use node::files::upload::{Upload, UploadRequest};
use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use store::shared::files::FileContent;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// One part, inside the node.
pub(super) fn run(context: &Context, arguments: &DumpArguments) -> Result<u8, Failure> {
    let inside = context.inside.as_ref();
    let inside = inside.ok_or_else(|| Failure::new("no node is running that could take files", "start it first"))?;
    let node = inside.node.clone();
    let space = import::find_space(&node, arguments.space)?;
    let size_max = context.settings.config.files.size_mib_max << 20;
    let importer = DumpImporter { node, space, folder: arguments.folder(), size_max };
    let mut totals = DumpTotals::default();
    for file in &arguments.part {
        importer.import(file, &mut totals)?;
    }
    context.print(&totals)?;
    Ok(0)
}

/// A status that another system gave.
enum SaidStatus<S> {
    Known(S),
    /// Here that is a time, beside the last status that was none.
    Deleted,
    /// Nobody guesses what it means.
    Unknown,
}

fn said<S>(word: &str, known: impl Fn(&str) -> Option<S>) -> SaidStatus<S> {
    match known(word) {
        Some(status) => SaidStatus::Known(status),
        None if word == "deleted" => SaidStatus::Deleted,
        None => SaidStatus::Unknown,
    }
}

/// A derived file that was uploaded is processed: that is what its relation says here.
fn said_of_derived(word: &str) -> SaidStatus<DerivedStatus> {
    said(if word == "uploaded" { "processed" } else { word }, DerivedStatus::from_word)
}

fn unknown(word: &str) -> String {
    format!("{word:?} is no status; correct the dump, and import it again")
}

struct DumpImporter {
    node: Node,
    space: SpaceId,
    folder: PathBuf,
    size_max: u64,
}

impl DumpImporter {
    fn target(&self, dumped: &DumpedFile) -> Result<ImportTarget, Failure> {
        let user = Some(dumped.file.owner.clone());
        let caller = Caller { kind: CallerKind::Operator, user, audit_name: "operator".to_owned() };
        let file = id_of_parts("anteroom v1 id of a dumped file", &[&self.space.0, dumped.file.id.as_bytes()]);
        Ok(ImportTarget { space: self.space, caller, file, random: random_bytes()? })
    }

    /// Imports one original. Only a node that has stopped ends the import.
    fn import(&self, dumped: &DumpedFile, totals: &mut DumpTotals) -> Result<(), Failure> {
        let target = self.target(dumped)?;
        if let Err(why) = self.import_file(dumped, &target, totals) {
            totals.trouble(&dumped.file.id, why);
        }
        Ok(())
    }

    fn import_file(&self, dumped: &DumpedFile, target: &ImportTarget, totals: &mut DumpTotals) -> Result<(), String> {
        let line = &dumped.file;
        let status = said(&line.status, FileStatus::from_word);
        if matches!(status, SaidStatus::Unknown) {
            return Err(unknown(&line.status));
        }
        let time = |text: &Option<String>| text.as_deref().map(parse_time).transpose();
        let (created_at, deleted_at) = (time(&line.created_at)?, time(&line.deleted_at)?);
        let metadata = serde_json::Value::Object(line.metadata.clone()).to_string();
        let (name, media_type) = (line.name.clone(), line.media_type.clone());
        let new = NewFile { name, media_type, size: None, metadata };
        let asked = self.node.ask(ImportFile { target: target.clone(), new, created_at });
        let is_new = asked.map_err(|why| why.to_string())?;
        let (mut changed, before) = (is_new, totals.troubles.len());
        for (number, object) in (1..).zip(&dumped.objects) {
            match self.import_object(target, number, object) {
                Ok(None) => {}
                Ok(Some(bytes)) => (changed, totals.bytes) = (true, totals.bytes + bytes),
                Err(why) => totals.trouble(&line.id, why),
            }
        }
        for derived in &dumped.derived {
            match self.import_derived(target.file, derived, totals) {
                Ok(is_new) => {
                    changed |= is_new;
                    totals.derived += u64::from(is_new);
                }
                Err(why) => totals.trouble(&line.id, format!("{}: {why}", derived.line.variant)),
            }
        }
        let has_bytes = self.version(target.file)? > 0;
        let needs_bytes = matches!(
            status,
            SaidStatus::Known(
                FileStatus::Uploaded | FileStatus::Processing | FileStatus::Processed | FileStatus::Archived
            )
        );
        if needs_bytes && !has_bytes && totals.troubles.len() == before {
            totals.trouble(&line.id, format!("it says {}, and there are no bytes of it", line.status));
        }
        let now = matches!(status, SaidStatus::Deleted).then(|| self.node.now());
        let settle = SettleImport {
            target: target.clone(),
            is_archived: has_bytes && matches!(status, SaidStatus::Known(FileStatus::Archived)),
            has_failed: !has_bytes && matches!(status, SaidStatus::Known(FileStatus::Failed)),
            deleted_at: deleted_at.or(now),
        };
        self.node.ask(settle).map_err(|why| format!("{why}; import it again later"))?;
        match (is_new, changed) {
            (true, _) => totals.imported += 1,
            (false, false) => totals.skipped += 1,
            (false, true) => {}
        }
        Ok(())
    }

    /// The latest version that is here.
    fn version(&self, file: FileId) -> Result<u32, String> {
        let record = self.node.snapshot().and_then(|db| db.file(&self.space, file)).map_err(|why| why.to_string())?;
        Ok(record.map_or(0, |record| record.version))
    }

    /// Uploads a version, unless it is here. Says how many bytes came.
    fn import_object(&self, target: &ImportTarget, number: u32, object: &ObjectLine) -> Result<Option<u64>, String> {
        match said(&object.status, StoredStatus::from_word) {
            SaidStatus::Unknown => return Err(unknown(&object.status)),
            SaidStatus::Deleted => return Ok(None),
            SaidStatus::Known(_) => {}
        }
        let Some(path) = &object.path else { return Ok(None) };
        if self.version(target.file)? >= number {
            return Ok(None);
        }
        let sha256 = object.sha256.as_deref().map(parse_hash).transpose()?;
        let mut source = self.open(path)?;
        let request = UploadRequest {
            space: self.space,
            caller: target.caller.clone(),
            file: target.file,
            new: None,
            sha256,
            by_link: None,
            size_max: self.size_max,
            size_min: None,
            idempotency: None,
            random: target.random,
        };
        let upload = Upload::new(self.node.clone(), request);
        import::send(upload, &mut source).map(Some)
    }

    fn import_derived(&self, parent: FileId, derived: &DumpedDerived, totals: &mut DumpTotals) -> Result<bool, String> {
        let line = &derived.line;
        let status = match said_of_derived(&line.status) {
            SaidStatus::Known(status) => status,
            SaidStatus::Deleted => return Ok(false),
            SaidStatus::Unknown => return Err(unknown(&line.status)),
        };
        let known = self.node.snapshot().and_then(|db| db.derived_file(&self.space, parent, &line.variant));
        if known.map_err(|why| why.to_string())?.is_some() {
            return Ok(false);
        }
        let made = match (&derived.path, status) {
            (Some(path), DerivedStatus::Processed) => Some(self.made(path, derived)?),
            (None, DerivedStatus::Processed) => {
                totals.trouble(&line.parent, format!("{} says processed, and there are no bytes of it", line.variant));
                None
            }
            (_, DerivedStatus::Created | DerivedStatus::Processing | DerivedStatus::Failed) => None,
        };
        let import = ImportDerived {
            space: self.space,
            parent,
            derivation_type: line.derivation_type.clone(),
            variant: line.variant.clone(),
            parameters: serde_json::Value::Object(line.parameters.clone()).to_string(),
            has_failed: status == DerivedStatus::Failed,
            made,
        };
        self.node.ask(import).map_err(|why| why.to_string())
    }

    /// The bytes of a derived file, stored as content of the space.
    fn made(&self, path: &str, derived: &DumpedDerived) -> Result<MadeRendition, String> {
        let mut bytes = Vec::new();
        self.open(path)?.take(ORIGINAL_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|why| why.to_string())?;
        if bytes.len() as u64 > ORIGINAL_BYTES_MAX {
            return Err(format!("{path} is larger than {} MiB", ORIGINAL_BYTES_MAX >> 20));
        }
        let stored = store_derived(self.node.store(), &self.node, &self.space, &bytes);
        let (hash, len, content) = stored.map_err(|why| why.to_string())?;
        let (variant, media_type) = (derived.line.variant.clone(), derived.media_type.clone());
        let (size, reference) = (bytes.len() as u64, FileContent { hash, len });
        Ok(MadeRendition { variant, media_type, dimensions: None, size, reference, content })
    }

    /// Opens a file below the folder, and nothing that a link leads to elsewhere.
    fn open(&self, path: &str) -> Result<File, String> {
        let is_below = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        let whole = self.folder.join(path);
        let real = whole.canonicalize().map_err(|why| format!("{path}: {why}"))?;
        if !is_below || !real.starts_with(&self.folder) {
            return Err(format!("{path} is not below the folder"));
        }
        File::open(real).map_err(|why| format!("{path}: {why}"))
    }
}

fn parse_time(text: &str) -> Result<Nanos, String> {
    let time = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| format!("{text:?} is no time as in RFC 3339"))?;
    Ok(Nanos(u64::try_from(time.unix_timestamp_nanos().max(0)).unwrap_or(u64::MAX)))
}

fn parse_hash(text: &str) -> Result<[u8; 32], String> {
    let bytes = hex::decode(text).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    bytes.ok_or_else(|| format!("{text:?} is no SHA-256 in hexadecimal digits"))
}
