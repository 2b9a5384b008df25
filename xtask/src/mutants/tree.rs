//! The scratch copy of the repository into which mistakes are written, and its one build.

use super::places::{Place, code_without_tests, modules_for_tests, places};
use super::weave::weave;
use crate::process::{cargo, output, program, root};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

/// The crates in which mistakes are made, and the packages whose tests are theirs: those of whole nodes are with the
/// simulator, those of what is served with the crates that bring routes, and those of git repositories with the binary.
const CRATES: [(&str, &[&str]); 11] = [
    ("model", &["anteroom-model", "anteroom-engine", "anteroom-simulator", "anteroom-cli"]),
    ("engine", &["anteroom-engine", "anteroom-node", "anteroom-simulator", "anteroom-cli"]),
    ("store", &["anteroom-store", "anteroom-node", "anteroom-simulator", "anteroom-api", "anteroom-cli"]),
    ("node", &["anteroom-node", "anteroom-simulator", "anteroom-api", "anteroom-web", "anteroom-cli"]),
    ("queries", &["anteroom-queries", "anteroom-api", "anteroom-web", "anteroom-cli"]),
    ("server", &["anteroom-server", "anteroom-api", "anteroom-web", "anteroom-cli"]),
    ("git", &["anteroom-git", "anteroom-cli"]),
    ("git_http", &["anteroom-git_http", "anteroom-cli"]),
    ("relay", &["anteroom-relay", "anteroom-cli"]),
    ("api", &["anteroom-api"]),
    ("web", &["anteroom-web", "anteroom-cli"]),
];

/// The tests of the binary that mistakes meet: those that need nothing but git, and that play what no other test does.
const TESTS_OF_BINARY: [&str; 6] = ["gather", "git", "git_operations", "hunt", "relay", "repository_pages"];

/// The first of these that is no crate in which mistakes can be made.
pub(crate) fn unknown_crate(names: &[String]) -> Option<&String> {
    names.iter().find(|name| packages_for(name).is_empty())
}

/// The packages whose tests mistakes of a crate meet.
pub(crate) fn packages_for(crate_name: &str) -> &'static [&'static str] {
    CRATES.iter().find(|(name, _)| *name == crate_name).map_or(&[], |(_, packages)| packages)
}

/// Which mistake is made is decided here.
const SWITCH: &str = "crates/model/src/mutants.rs";
/// Rounds of building without the mistakes that do not compile.
const ROUNDS_MAX: usize = 20;

/// A mistake with the number that switches it on.
#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    pub(crate) number: usize,
    /// The source, from the root of the repository.
    pub(crate) file: String,
    pub(crate) place: Place,
    /// The text of the place, or the name of the function.
    pub(crate) shown: String,
    /// Which of those that are called alike it is, from 1.
    pub(crate) alike: u64,
    /// The code of its file, without tests.
    pub(crate) code: Arc<str>,
}

impl Mutant {
    pub(crate) fn crate_name(&self) -> &str {
        self.file.split('/').nth(1).unwrap_or_default()
    }

    /// What it is called wherever it stands in its file; several may be called alike.
    pub(crate) fn name(&self) -> String {
        format!("{}: `{}` {}", self.file, self.shown, self.place.mistake.describe())
    }

    /// What no other one is called, while the code of its file is the same.
    pub(crate) fn key(&self) -> String {
        format!("{} ({})", self.name(), self.alike)
    }

    pub(crate) fn describe(&self) -> String {
        // Two on one line may read alike; the byte tells them apart.
        let (line, byte, mistake) = (self.place.line, self.place.range.start, self.place.mistake.describe());
        format!("{}:{line}: `{}` {mistake} (byte {byte})", self.file, self.shown)
    }
}

/// A test program.
#[derive(Clone, Debug)]
pub(crate) struct TestProgram {
    pub(crate) package: String,
    pub(crate) path: PathBuf,
    pub(crate) folder: PathBuf,
}

/// The programs of the build.
#[derive(Clone, Debug, Default)]
pub(crate) struct Programs {
    pub(crate) tests: Vec<TestProgram>,
    pub(crate) simulate: Option<PathBuf>,
}

/// Every mistake that can be made, in the order of the files.
pub(crate) fn all_mutants() -> Result<Vec<Mutant>> {
    let mut mutants = Vec::new();
    for file in sources()? {
        let source = std::fs::read_to_string(root().join(&file)).with_context(|| format!("cannot read {file}"))?;
        mutants.extend(mutants_of(&file, &source)?);
    }
    Ok(mutants)
}

/// Every mistake that can be made in a source.
pub(crate) fn mutants_of(file: &str, source: &str) -> Result<Vec<Mutant>> {
    let places = places(source).with_context(|| format!("cannot parse {file}"))?;
    let code: Arc<str> = code_without_tests(source).with_context(|| format!("cannot parse {file}"))?.into();
    let mut seen: HashMap<String, u64> = HashMap::new();
    let mut mutants = Vec::new();
    for place in places {
        let (file, shown, code) = (file.to_owned(), show(source, &place), code.clone());
        let mut mutant = Mutant { number: 0, file, place, shown, alike: 0, code };
        let alike = seen.entry(mutant.name()).or_default();
        *alike += 1;
        mutant.alike = *alike;
        mutants.push(mutant);
    }
    Ok(mutants)
}

/// The sources of the crates, without tests and what is planted.
fn sources() -> Result<Vec<String>> {
    let listed = output(&mut program("git", &["ls-files", "--cached", "--others", "--exclude-standard", "crates"]))?;
    let is_source = |file: &&str| {
        let mut parts = file.split('/');
        let (krate, src) = (parts.nth(1).unwrap_or_default(), parts.next());
        CRATES.iter().any(|(name, _)| *name == krate)
            && src == Some("src")
            && file.ends_with(".rs")
            && !file.ends_with("/planted.rs")
            && !file.contains("/tests/")
    };
    let sources: Vec<&str> = listed.lines().filter(is_source).collect();
    let mut left_out = Vec::new();
    for file in &sources {
        let source = std::fs::read_to_string(root().join(file)).with_context(|| format!("cannot read {file}"))?;
        let folder = folder_of_modules(file);
        left_out.extend(modules_for_tests(&source).into_iter().map(|module| format!("{folder}/{module}")));
    }
    let is_left_out = |file: &&&str| {
        left_out
            .iter()
            .any(|module| file.strip_prefix(module.as_str()).is_some_and(|rest| rest == ".rs" || rest.starts_with('/')))
    };
    Ok(sources.iter().filter(|file| !is_left_out(file)).map(|file| (*file).to_owned()).collect())
}

/// Where the modules of a source are.
fn folder_of_modules(file: &str) -> &str {
    let stem = file.trim_end_matches(".rs");
    ["/lib", "/mod", "/main"].iter().find_map(|name| stem.strip_suffix(name)).unwrap_or(stem)
}

fn show(source: &str, place: &Place) -> String {
    let range = if place.range.is_empty() { place.function.start..place.range.start } else { place.range.clone() };
    let text = source.get(range).unwrap_or_default();
    let text = text.split_once("fn ").filter(|_| place.range.is_empty()).map_or(text, |(_, name)| name);
    let text = text.split_once('(').filter(|_| place.range.is_empty()).map_or(text, |(name, _)| name);
    let words: Vec<_> = text.split_whitespace().collect();
    let mut shown = words.join(" ");
    if shown.chars().count() > 70 {
        shown = shown.chars().take(67).chain("...".chars()).collect();
    }
    shown
}

/// The folder of the scratch copy, and that of its build.
fn folders() -> (PathBuf, PathBuf) {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    (target.join("mutants/tree"), target.join("mutants/build"))
}

/// Writes the mistakes into a scratch copy and builds it. Those that do not compile are taken out and handed over.
pub(crate) fn build(mutants: &mut Vec<Mutant>, mut drop: impl FnMut(&Mutant) -> Result<()>) -> Result<Programs> {
    let (tree, target) = folders();
    copy_repository(&tree)?;
    share_dependencies(&target)?;
    for round in 1..=ROUNDS_MAX {
        let woven = write_mutants(&tree, mutants)?;
        eprintln!("building with {} mutants, round {round}", mutants.len());
        let (is_built, messages) = cargo_build(&tree, &target)?;
        if is_built {
            return programs(&messages);
        }
        let wrong = wrong_mutants(&messages, &woven, mutants);
        if wrong.is_empty() {
            messages
                .iter()
                .filter_map(|message| message.pointer("/message/rendered")?.as_str())
                .for_each(|told| eprintln!("{told}"));
        }
        ensure!(!wrong.is_empty(), "the scratch copy in {} does not compile; see above", tree.display());
        mutants.extract_if(.., |mutant| wrong.contains(&mutant.number)).try_for_each(|mutant| drop(&mutant))?;
    }
    anyhow::bail!("the scratch copy does not compile after {ROUNDS_MAX} rounds")
}

/// Copies what git would commit, except for the sources into which mistakes are written. Files that are as they were
/// keep their times, so that little is built again.
fn copy_repository(tree: &Path) -> Result<()> {
    let listed = output(&mut program("git", &["ls-files", "--cached", "--others", "--exclude-standard"]))?;
    let sources: BTreeSet<String> = sources()?.into_iter().collect();
    for file in listed.lines().filter(|file| !sources.contains(*file)) {
        let Ok(bytes) = std::fs::read(root().join(file)) else { continue };
        write_if_changed(&tree.join(file), &bytes)?;
    }
    remove_others(tree, tree, &listed.lines().collect())?;
    let switch = include_str!("switch.txt");
    write_if_changed(&tree.join(SWITCH), switch.as_bytes())
}

/// Removes what is not there any more.
fn remove_others(tree: &Path, folder: &Path, listed: &BTreeSet<&str>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.strip_prefix(tree)?.to_string_lossy();
        if path.is_dir() {
            remove_others(tree, &path, listed)?;
        } else if !listed.contains(&*name) && name != SWITCH {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<()> {
    if std::fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let folder = path.parent().context("a file in a folder")?;
    std::fs::create_dir_all(folder)?;
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Dependencies are the same as those of the repository's own build: they are linked, not built again.
fn share_dependencies(target: &Path) -> Result<()> {
    let own = target.parent().and_then(Path::parent).map(|own| own.join("debug")).context("a target folder")?;
    let theirs = target.join("debug");
    if theirs.exists() || !own.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(&theirs)?;
    for part in ["deps", "build", ".fingerprint"] {
        let (from, to) = (own.join(part), theirs.join(part));
        // A copy that fails costs a longer build.
        let _ = program("cp", &["-al"]).arg(from).arg(&to).status();
        // Our own crates are other ones here: what is linked would be overwritten, and taken for fresh on both sides.
        for entry in std::fs::read_dir(&to).into_iter().flatten().flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            let name = name.to_string_lossy();
            if name.contains("anteroom") || name.contains("xtask") || is_ours(&name) {
                let _ = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            }
        }
    }
    Ok(())
}

/// Whether a file comes from a test program of ours: its name begins with that of a file of tests, or a binary.
fn is_ours(name: &str) -> bool {
    let stem = name.split(['-', '.']).next().unwrap_or_default();
    let is_test = |folder: std::fs::DirEntry| {
        let tests = folder.path().join("tests");
        tests.join(format!("{stem}.rs")).exists() || tests.join(stem).join("main.rs").exists()
    };
    stem == "simulate" || std::fs::read_dir(root().join("crates")).into_iter().flatten().flatten().any(is_test)
}

/// Where each mistake stands in the woven text of its file.
type Woven = BTreeMap<String, Vec<(usize, Range<usize>)>>;

fn write_mutants(tree: &Path, mutants: &[Mutant]) -> Result<Woven> {
    let mut woven = Woven::new();
    let files: BTreeSet<String> = sources()?.into_iter().collect();
    for file in files {
        let source = std::fs::read_to_string(root().join(&file))?;
        let here = mutants.iter().filter(|mutant| mutant.file == file);
        let edits: Vec<_> = here
            .flat_map(|mutant| mutant.place.edits(mutant.number).into_iter().map(|edit| (mutant.number, edit)))
            .collect();
        let (mut text, ranges) = weave(&source, &edits);
        if file == "crates/model/src/lib.rs" {
            text += "\nextern crate self as model;\n#[doc(hidden)]\npub mod mutants;\n";
        }
        write_if_changed(&tree.join(&file), text.as_bytes())?;
        woven.insert(file, ranges);
    }
    Ok(woven)
}

/// Builds the tests that mistakes meet; with the tests of the simulator, the simulator. The features are those of the
/// whole workspace.
fn cargo_build(tree: &Path, target: &Path) -> Result<(bool, Vec<Value>)> {
    let mut command = cargo(&["test", "--no-run", "--workspace", "--lib", "--bins", "--message-format=json"]);
    for name in TESTS_OF_BINARY {
        command.arg("--test").arg(name);
    }
    for name in ["model", "engine", "store", "node", "queries", "server", "api", "simulator"] {
        let Ok(entries) = std::fs::read_dir(tree.join("crates").join(name).join("tests")) else { continue };
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "rs") || path.join("main.rs").exists() {
                command.arg("--test").arg(path.file_stem().unwrap_or_default());
            }
        }
    }
    command.current_dir(tree).env("CARGO_TARGET_DIR", target).stderr(Stdio::inherit());
    let built = command.output().context("cannot start cargo")?;
    let messages =
        String::from_utf8_lossy(&built.stdout).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    Ok((built.status.success(), messages))
}

/// The mistakes that the compiler's errors stand in; where an error stands in none, all in the same function.
fn wrong_mutants(messages: &[Value], woven: &Woven, mutants: &[Mutant]) -> BTreeSet<usize> {
    let mut wrong = BTreeSet::new();
    for message in messages.iter().filter_map(|message| message.get("message")) {
        if message.get("level").and_then(Value::as_str) != Some("error") {
            continue;
        }
        let spans = message.get("spans").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut here = BTreeSet::new();
        for span in spans {
            let Some((file, range)) = place_of(span) else { continue };
            let Some(ranges) = woven.get(&file) else { continue };
            here.extend(innermost(ranges, &range));
        }
        if here.is_empty() {
            let spans = spans.iter().filter_map(place_of);
            for (file, range) in spans {
                here.extend(in_function(&file, &range, woven, mutants));
            }
        }
        wrong.extend(here);
    }
    wrong
}

fn place_of(span: &Value) -> Option<(String, Range<usize>)> {
    let file = span.get("file_name")?.as_str()?.to_owned();
    let byte = |name: &str| span.get(name)?.as_u64().and_then(|byte| usize::try_from(byte).ok());
    Some((file, byte("byte_start")?..byte("byte_end")?))
}

/// The mistake whose texts enclose a range most closely, or touch it.
fn innermost(ranges: &[(usize, Range<usize>)], range: &Range<usize>) -> Option<usize> {
    let mut extents: BTreeMap<usize, Range<usize>> = BTreeMap::new();
    for (number, written) in ranges {
        let extent = extents.entry(*number).or_insert_with(|| written.clone());
        *extent = extent.start.min(written.start)..extent.end.max(written.end);
    }
    let touching = extents.into_iter().filter(|(_, extent)| extent.start < range.end && range.start < extent.end);
    touching.min_by_key(|(_, extent)| extent.len()).map(|(number, _)| number)
}

/// All mistakes of the function in which a byte of the woven text stands.
fn in_function(file: &str, range: &Range<usize>, woven: &Woven, mutants: &[Mutant]) -> Vec<usize> {
    let Some(ranges) = woven.get(file) else { return Vec::new() };
    let added: usize =
        ranges.iter().filter(|(_, written)| written.end <= range.start).map(|(_, written)| written.len()).sum();
    let at = range.start.saturating_sub(added);
    let here = mutants.iter().filter(|mutant| mutant.file == file && mutant.place.function.contains(&at));
    here.map(|mutant| mutant.number).collect()
}

fn programs(messages: &[Value]) -> Result<Programs> {
    let mut programs = Programs::default();
    for message in messages {
        let Some(path) = message.get("executable").and_then(Value::as_str) else { continue };
        let is_test = message.pointer("/profile/test").and_then(Value::as_bool) == Some(true);
        let manifest = message.get("manifest_path").and_then(Value::as_str).context("a manifest")?;
        let name = message.pointer("/target/name").and_then(Value::as_str).unwrap_or_default();
        let folder = Path::new(manifest).parent().context("a folder")?.to_owned();
        let krate = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if is_test {
            programs.tests.push(TestProgram { package: format!("anteroom-{krate}"), path: path.into(), folder });
        } else if name == "simulate" {
            programs.simulate = Some(path.into());
        }
    }
    Ok(programs)
}
