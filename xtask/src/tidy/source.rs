//! A Rust source as the checks see it: its text, its layers, and which parts of it are test code.

use super::scanner::{Scanned, scan};
use super::search::{group_end, spaces};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::iter;
use std::ops::Range;
use std::path::Path;

/// Where Rust sources are looked for.
const FOLDERS: [&str; 3] = ["crates", "fuzz", "xtask"];

/// One Rust file.
#[derive(Debug)]
pub(crate) struct Source {
    /// The path from the repository's root, with `/` between its parts.
    pub(crate) path: String,
    /// The file as it is.
    pub(crate) text: String,
    /// The file with comments and literals blanked, at the same offsets.
    pub(crate) code: String,
    /// The file with everything but comments blanked, at the same offsets.
    pub(crate) comments: String,
    tests: Vec<Range<usize>>,
}

impl Source {
    /// Reads a text as the file at that path.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let Scanned { code, comments } = scan(text);
        let tests = if is_test_file(path) { iter::once(0..text.len()).collect() } else { test_items(&code) };
        Source { path: path.to_owned(), text: text.to_owned(), code, comments, tests }
    }

    /// The number of the line that holds the offset, counted from 1.
    pub(crate) fn line_at(&self, offset: usize) -> usize {
        self.text[..offset].matches('\n').count() + 1
    }

    /// The comments on the line that holds the offset.
    pub(crate) fn comments_at(&self, offset: usize) -> &str {
        self.comments.lines().nth(self.line_at(offset) - 1).unwrap_or_default()
    }

    /// The crate the file belongs to, and its path below that crate's `src`; `None` for what lies elsewhere.
    pub(crate) fn in_crate(&self) -> Option<(&str, &str)> {
        let (name, inside) = self.path.strip_prefix("crates/")?.split_once('/')?;
        Some((name, inside.strip_prefix("src/")?))
    }

    /// Whether the file belongs to a crate, such as `cli`, or to a module of one, such as `server::listen`. The module may
    /// lie in any folder of the crate, so that moving it changes no rule.
    pub(crate) fn belongs_to(&self, owner: &str) -> bool {
        let (name, module) = owner.split_once("::").unwrap_or((owner, ""));
        let path = self.path.strip_prefix("crates/").unwrap_or(&self.path);
        let inside = path.strip_prefix(name).and_then(|path| path.strip_prefix('/'));
        inside.is_some_and(|inside| {
            module.is_empty() || inside.split('/').any(|part| part.strip_suffix(".rs").unwrap_or(part) == module)
        })
    }

    /// Whether the offset lies in code that is compiled only for tests.
    pub(crate) fn is_test(&self, offset: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&offset))
    }
}

/// The sources of each crate that has a library, by the crate's name. Programs beside the library do not count.
pub(crate) fn by_library(sources: &[Source]) -> BTreeMap<&str, Vec<&Source>> {
    let mut libraries: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources {
        if let Some((name, _)) = source.in_crate().filter(|(_, inside)| !inside.starts_with("bin/")) {
            libraries.entry(name).or_default().push(source);
        }
    }
    libraries.retain(|_, files| files.iter().any(|source| source.in_crate().is_some_and(|(_, at)| at == "lib.rs")));
    libraries
}

/// Reads every Rust file of the repository, in the order of their paths.
pub(crate) fn load(root: &Path) -> Result<Vec<Source>> {
    let mut paths = Vec::new();
    for folder in FOLDERS {
        collect(root, folder, &mut paths)?;
    }
    paths.sort();
    paths.iter().map(|path| read(root, path)).collect()
}

fn read(root: &Path, path: &str) -> Result<Source> {
    let text = std::fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
    Ok(Source::new(path, &text))
}

fn collect(root: &Path, folder: &str, paths: &mut Vec<String>) -> Result<()> {
    if !root.join(folder).is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(root.join(folder)).with_context(|| format!("cannot list {folder}"))? {
        let entry = entry.with_context(|| format!("cannot list {folder}"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        // A folder called target holds what was built, not what was written.
        if entry.path().is_dir() && name != "target" {
            collect(root, &path, paths)?;
        } else if name.ends_with(".rs") {
            paths.push(path);
        }
    }
    Ok(())
}

fn is_test_file(path: &str) -> bool {
    path.starts_with("fuzz/") || path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// The modules and imports marked for tests; other marked items are checked like any other code.
fn test_items(code: &str) -> Vec<Range<usize>> {
    let marks = code.match_indices("#[cfg(test)]");
    marks.filter_map(|(start, mark)| Some(start..item_end(code, start + mark.len())?)).collect()
}

/// The end of the item that follows, if that is a module with a body or an import.
fn item_end(code: &str, after: usize) -> Option<usize> {
    let mut at = after + spaces(&code[after..]);
    while code[at..].starts_with("#[") {
        at = group_end(code, at + 1);
        at += spaces(&code[at..]);
    }
    let open = at + code[at..].find(['{', ';'])?;
    let mut words = code[at..open].split_whitespace();
    match words.find(|word| matches!(*word, "mod" | "use" | "fn" | "impl"))? {
        "mod" if code[open..].starts_with('{') => Some(group_end(code, open)),
        "use" => Some(open + code[open..].find(';')?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Source;

    /// Every `x` in the text that is seen as test code, by its line.
    #[track_caller]
    fn check(path: &str, text: &str, expected: &[usize]) {
        let source = Source::new(path, text);
        let marks = text.match_indices('x').filter(|(at, _)| source.is_test(*at));
        assert_eq!(marks.map(|(at, _)| source.line_at(at)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn modules_marked_for_tests_are_test_code() {
        check("a.rs", "x\n#[cfg(test)]\nmod tests {\n x { x }\n}\nx", &[4, 4]);
        check("a.rs", "#[cfg(test)]\n#[allow(dead_code)]\npub(crate) mod helpers {\n x\n}\nx", &[4]);
        check("a.rs", "#[cfg(test)]\nmod tests {\n f(\"}\"); // }\n x\n}\nx", &[4]);
    }

    #[test]
    fn imports_marked_for_tests_are_test_code() {
        check("a.rs", "#[cfg(test)]\npub(crate) use a::{x};\nmod b { x }", &[2]);
        check("a.rs", "#[cfg(test)]\nuse a::x;\nuse x;", &[2]);
    }

    #[test]
    fn other_marked_items_are_not() {
        check("a.rs", "#[cfg(test)]\nfn f() { x }\n", &[]);
        check("a.rs", "#[cfg(test)]\nfn f(y: Y) { mod b { x } }\n", &[]);
        check("a.rs", "#[cfg(test)]\nmod tests;\nfn f() { x }", &[]);
        check("a.rs", "// #[cfg(test)]\nmod b { x }", &[]);
    }

    #[test]
    fn some_files_are_test_code_wholly() {
        check("crates/node/tests/writer.rs", "x", &[1]);
        check("crates/node/src/writer/tests.rs", "x", &[1]);
        check("fuzz/fuzz_targets/envelope.rs", "x", &[1]);
        check("crates/node/src/latests.rs", "x", &[]);
    }

    #[test]
    fn files_belong_to_crates_and_modules() {
        let belongs = |path, owner| Source::new(path, "").belongs_to(owner);
        assert!(belongs("crates/cli/src/main.rs", "cli") && belongs("crates/cli/tests/a.rs", "cli"));
        assert!(belongs("xtask/src/main.rs", "xtask") && !belongs("crates/client/src/a.rs", "cli"));
        assert!(belongs("crates/server/src/listen.rs", "server::listen"));
        assert!(belongs("crates/server/src/http/listen/tls.rs", "server::listen"));
        assert!(!belongs("crates/server/src/listener.rs", "server::listen"));
        assert!(!belongs("crates/web/src/listen.rs", "server::listen"));
    }

    #[test]
    fn comments_are_found_by_line() {
        let source = Source::new("a.rs", "a // one\nb // two");
        assert_eq!(source.comments_at(10).trim(), "// two");
    }
}
