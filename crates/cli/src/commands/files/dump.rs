//! `anteroom files import-dump`: records of files that another system kept, as lines of JSON, with their bytes in a folder.
//!
//! Whoever calls it reads the dump, puts together what belongs to one original, and asks the node for some of them at a time.
//! The node begins each file, takes its bytes, notes what was derived of it, and says what it could not make sense of.

use super::{Files, FilesAction};
use crate::commands::in_node::{self, NodeCommand};
use crate::context::Context;
use crate::failure::Failure;
use crate::formatting::{escape_controls, format_count, format_size};
use crate::operator_client::OperatorClient;
use crate::progress::ProgressDisplay;
use clap::Args;
use model::SpaceId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;

/// Originals that are asked for at a time.
const FILES_PER_PART: usize = 64;
/// The longest line.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// Troubles that are printed.
const SHOWN_MAX: usize = 100;

#[derive(Debug, Clone, Args, Serialize, Deserialize)]
pub(in crate::commands) struct DumpArguments {
    /// The dump: a line of JSON for each row; docs/FILES.md has the fields
    #[arg(value_name = "FILE")]
    pub(in crate::commands) file: PathBuf,
    /// The folder in which the paths of objects are; that of the dump, if nothing is said. The node reads it
    #[arg(long, value_name = "DIR")]
    bytes: Option<PathBuf>,
    /// The space they go into; without it, the first space of the node
    #[arg(long, value_name = "ID")]
    pub(super) space: Option<SpaceId>,
    /// Set by whoever asks for one part after another: the originals of this part.
    #[arg(skip)]
    #[serde(default)]
    pub(super) part: Vec<DumpedFile>,
}

impl DumpArguments {
    /// Where the paths of objects begin.
    pub(super) fn folder(&self) -> PathBuf {
        let beside = || self.file.parent().map(PathBuf::from).unwrap_or_default();
        self.bytes.clone().unwrap_or_else(beside)
    }
}

/// A row of one of the three tables.
#[derive(Debug, Deserialize)]
#[serde(tag = "table", rename_all = "lowercase")]
enum DumpLine {
    File(FileLine),
    Object(ObjectLine),
    Derived(DerivedLine),
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileLine {
    pub(super) id: String,
    pub(super) owner: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) media_type: String,
    pub(super) status: String,
    /// Empty for an original.
    #[serde(default)]
    pub(super) derivation_type: String,
    #[serde(default)]
    pub(super) metadata: serde_json::Map<String, serde_json::Value>,
    pub(super) created_at: Option<String>,
    pub(super) deleted_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ObjectLine {
    /// The id of its file.
    pub(super) file: String,
    /// Below the folder; none if there are no bytes.
    pub(super) path: Option<String>,
    pub(super) status: String,
    /// The order of versions.
    #[serde(default)]
    pub(super) version: u32,
    /// The SHA-256 that the bytes must have.
    pub(super) sha256: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DerivedLine {
    pub(super) parent: String,
    pub(super) child: Option<String>,
    pub(super) derivation_type: String,
    pub(super) variant: String,
    #[serde(default)]
    pub(super) parameters: serde_json::Map<String, serde_json::Value>,
    pub(super) status: String,
}

/// An original with its versions and what was derived of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::commands) struct DumpedFile {
    pub(super) file: FileLine,
    pub(super) objects: Vec<ObjectLine>,
    pub(super) derived: Vec<DumpedDerived>,
}

/// A derived file with the bytes of its child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct DumpedDerived {
    pub(super) line: DerivedLine,
    pub(super) media_type: String,
    pub(super) path: Option<String>,
}

/// What an import came to, or a part of one.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct DumpTotals {
    /// Files that were not here before.
    pub(super) imported: u64,
    /// Files of which everything was here already.
    pub(super) skipped: u64,
    /// Derived files that were not here before.
    pub(super) derived: u64,
    pub(super) bytes: u64,
    /// What could not be imported, or made sense of.
    pub(super) troubles: Vec<DumpTrouble>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct DumpTrouble {
    pub(super) id: String,
    pub(super) why: String,
}

impl DumpTotals {
    fn add(&mut self, part: DumpTotals) {
        self.imported += part.imported;
        self.skipped += part.skipped;
        self.derived += part.derived;
        self.bytes += part.bytes;
        self.troubles.extend(part.troubles);
    }

    pub(super) fn trouble(&mut self, id: &str, why: impl Into<String>) {
        self.troubles.push(DumpTrouble { id: id.to_owned(), why: why.into() });
    }
}

impl fmt::Display for DumpTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for DumpTrouble { id, why } in self.troubles.iter().take(SHOWN_MAX) {
            writeln!(f, "{}: {}", escape_controls(id), escape_controls(why))?;
        }
        if self.troubles.len() > SHOWN_MAX {
            writeln!(f, "and {} more; --json lists all of them", self.troubles.len() - SHOWN_MAX)?;
        }
        let (imported, bytes) = (format_count(self.imported, "file"), format_size(self.bytes));
        let derived = format_count(self.derived, "derived file");
        writeln!(f, "{imported} imported ({bytes}) with {derived}, {} here already", self.skipped)?;
        writeln!(f, "{} not imported, or not as they were", self.troubles.len())
    }
}

/// Reads a dump, and puts together what belongs to one original. What makes no sense is told.
fn read_dump(lines: impl Iterator<Item = std::io::Result<String>>, totals: &mut DumpTotals) -> Vec<DumpedFile> {
    let (mut files, mut objects, mut derived) =
        (BTreeMap::new(), HashMap::<String, Vec<ObjectLine>>::new(), Vec::new());
    for (number, line) in (1_u64..).zip(lines) {
        let read = line.map_err(|why| why.to_string());
        let read = read.and_then(|line| match line.trim().is_empty() {
            true => Ok(None),
            false => serde_json::from_str(&line).map(Some).map_err(|why| why.to_string()),
        });
        match read {
            Ok(None) => {}
            Ok(Some(DumpLine::File(line))) => drop(files.insert(line.id.clone(), line)),
            Ok(Some(DumpLine::Object(line))) => objects.entry(line.file.clone()).or_default().push(line),
            Ok(Some(DumpLine::Derived(line))) => derived.push(line),
            Err(why) => totals.trouble(&format!("line {number}"), why),
        }
    }
    objects.values_mut().for_each(|versions| versions.sort_by_key(|line| line.version));
    let mut whole: BTreeMap<String, DumpedFile> = files
        .values()
        .filter(|line| line.derivation_type.is_empty())
        .map(|line| {
            let objects = objects.get(&line.id).cloned().unwrap_or_default();
            (line.id.clone(), DumpedFile { file: line.clone(), objects, derived: Vec::new() })
        })
        .collect();
    for line in derived {
        let child = line.child.as_deref();
        let media_type =
            child.and_then(|child| files.get(child)).map(|line| line.media_type.clone()).unwrap_or_default();
        let path = child.and_then(|child| objects.get(child)?.last()?.path.clone());
        match whole.get_mut(&line.parent) {
            Some(parent) => parent.derived.push(DumpedDerived { line, media_type, path }),
            None => totals.trouble(&line.parent, format!("{} of it is known, and no file", line.variant)),
        }
    }
    for id in objects.keys().filter(|id| !files.contains_key(*id)) {
        totals.trouble(id, "an object of it is known, and no file");
    }
    whole.into_values().collect()
}

/// Asks the node for one part after another, and shows how far it is.
pub(in crate::commands) fn run_by_parts(
    context: &Context,
    client: &OperatorClient,
    arguments: &DumpArguments,
) -> Result<u8, Failure> {
    let file = fs::canonicalize(&arguments.file).map_err(|why| Failure::file("read", &arguments.file, &why))?;
    let folder = fs::canonicalize(DumpArguments { file: file.clone(), ..arguments.clone() }.folder());
    let folder = folder.map_err(|why| Failure::file("read the folder", &arguments.folder(), &why))?;
    let mut reader = BufReader::new(File::open(&file).map_err(|why| Failure::file("read", &file, &why))?);
    let lines = std::iter::from_fn(move || {
        let mut line = String::new();
        match reader.by_ref().take(LINE_BYTES_MAX).read_line(&mut line) {
            Ok(0) => None,
            read => Some(read.map(|_| line)),
        }
    });
    let mut totals = DumpTotals::default();
    let files = read_dump(lines, &mut totals);
    let bar = ProgressDisplay::for_count_of(context.json, "importing", files.len() as u64);
    for (number, part) in (1..).zip(files.chunks(FILES_PER_PART)) {
        let (file, bytes, part) = (file.clone(), Some(folder.clone()), part.to_vec());
        let arguments = DumpArguments { file, bytes, part, ..arguments.clone() };
        let command = NodeCommand::Files(Files { action: FilesAction::ImportDump(arguments) });
        let done = serde_json::from_value(in_node::ask_for_json(client, &command)?)
            .map_err(|why| Failure::new(format!("the node answers something else: {why}"), "is it of this version?"))?;
        totals.add(done);
        bar.set_of((number * FILES_PER_PART).min(files.len()) as u64, files.len() as u64);
    }
    drop(bar);
    let code = u8::from(!totals.troubles.is_empty());
    context.print(&totals)?;
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> (Vec<DumpedFile>, Vec<String>) {
        let mut totals = DumpTotals::default();
        let files = read_dump(lines.iter().map(|line| Ok((*line).to_owned())), &mut totals);
        (files, totals.troubles.into_iter().map(|trouble| format!("{}: {}", trouble.id, trouble.why)).collect())
    }

    #[test]
    fn rows_come_in_any_order_and_belong_to_their_original() {
        let lines = [
            r#"{"table":"derived","parent":"a","child":"t","derivation_type":"thumbnail","variant":"thumbnail_256","status":"processed"}"#,
            r#"{"table":"object","file":"a","path":"a2","status":"uploaded","version":2}"#,
            r#"{"table":"object","file":"t","path":"t1","status":"uploaded"}"#,
            r#"{"table":"object","file":"a","path":"a1","status":"uploaded","version":1}"#,
            "",
            r#"{"table":"file","id":"t","owner":"bob","name":"t","media_type":"image/png","status":"uploaded","derivation_type":"thumbnail"}"#,
            r#"{"table":"file","id":"a","owner":"bob","name":"a.png","status":"uploaded"}"#,
        ];
        let (files, troubles) = read(&lines);
        assert_eq!(troubles, [""; 0]);
        assert_eq!(files.len(), 1, "what was derived is no file of its own");
        let paths: Vec<_> = files[0].objects.iter().map(|line| line.path.as_deref()).collect();
        assert_eq!(paths, [Some("a1"), Some("a2")]);
        let derived = &files[0].derived[0];
        assert_eq!((derived.path.as_deref(), derived.media_type.as_str()), (Some("t1"), "image/png"));
    }

    #[test]
    fn what_makes_no_sense_is_told_with_its_place() {
        let (files, troubles) = read(&[
            "no JSON",
            r#"{"table":"thing","id":"a"}"#,
            r#"{"table":"object","file":"gone","path":"x","status":"uploaded"}"#,
            r#"{"table":"derived","parent":"away","child":null,"derivation_type":"thumbnail","variant":"v","status":"created"}"#,
        ]);
        assert_eq!(files, []);
        let beginnings: Vec<&str> = troubles.iter().map(|text| text.split(':').next().unwrap_or_default()).collect();
        assert_eq!(beginnings, ["line 1", "line 2", "away", "gone"], "{troubles:?}");
    }
}
