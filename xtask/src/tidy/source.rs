//! A Rust source as the checks see it: its text, its layers, and which parts of it are test code.

use super::scanner::{Scanned, scan};
use super::search::group_end;
use anyhow::{Context, Result};
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
        let tests = if is_test_file(path) { iter::once(0..text.len()).collect() } else { test_modules(&code) };
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

    /// Whether the offset lies in code that is compiled only for tests.
    pub(crate) fn is_test(&self, offset: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&offset))
    }
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

fn test_modules(code: &str) -> Vec<Range<usize>> {
    let marks = code.match_indices("#[cfg(test)]");
    marks.filter_map(|(start, mark)| Some(start..group_end(code, module_body(code, start + mark.len())?))).collect()
}

/// The opening brace of the module that follows, if a module with a body does follow.
fn module_body(code: &str, after: usize) -> Option<usize> {
    let mut at = after + spaces(&code[after..]);
    while code[at..].starts_with("#[") {
        at = group_end(code, at + 1);
        at += spaces(&code[at..]);
    }
    let open = at + code[at..].find(['{', ';'])?;
    let is_module = code[at..open].split_whitespace().any(|word| word == "mod");
    (is_module && code[open..].starts_with('{')).then_some(open)
}

fn spaces(code: &str) -> usize {
    code.len() - code.trim_start().len()
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
    fn other_marked_items_are_not() {
        check("a.rs", "#[cfg(test)]\nfn f() { x }\n", &[]);
        check("a.rs", "#[cfg(test)]\nuse a::{x};\nmod b { x }", &[]);
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
    fn comments_are_found_by_line() {
        let source = Source::new("a.rs", "a // one\nb // two");
        assert_eq!(source.comments_at(10).trim(), "// two");
    }
}
