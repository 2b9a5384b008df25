//! Which top-level module of a library uses which, read from the paths in its sources.
//!
//! `crate::x` and as many `super` as lead to the root count, in use trees as elsewhere. A name that the root re-exports
//! stands for the module it comes from; any other name belongs to the root itself, which is called `lib` here. What the
//! root re-exports is no arrow: it is how a library shows its modules. Paths in strings and those that a macro puts
//! together are not seen.

use crate::tidy::search::{InlineModule, group_elements, group_end, inline_modules, leading_word, occurrences, spaces};
use crate::tidy::source::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The name of the crate's root.
const ROOT: &str = "lib";

/// Where an arrow was first seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// The path of the file.
    pub(crate) path: String,
    /// The line in it.
    pub(crate) line: usize,
}

/// Each module that uses others of its crate, with those others.
pub(crate) type Arrows = BTreeMap<String, BTreeMap<String, Location>>;

/// The arrows between the top-level modules of one library; test code does not count.
pub(crate) fn read(files: &[&Source]) -> Arrows {
    let names = Names::read(files);
    let mut arrows = Arrows::new();
    for (source, inside) in with_paths(files) {
        let file = File { source, path: module_path(inside), inline: inline_modules(&source.code) };
        let paths = file.paths().into_iter().map(|(at, name)| (at, names.module_of(name)));
        let relative = if inside == "lib.rs" { names.relative_paths(&source.code) } else { Vec::new() };
        let shown = if inside == "lib.rs" { re_exports(&source.code) } else { Vec::new() };
        for (at, to) in paths.chain(relative) {
            let from = file.module_path_at(at).first().copied().unwrap_or(ROOT);
            if from != to && !source.is_test(at) && !shown.iter().any(|range| range.contains(&at)) {
                let location = || Location { path: source.path.clone(), line: source.line_at(at) };
                arrows.entry(from.to_owned()).or_default().entry(to.to_owned()).or_insert_with(location);
            }
        }
    }
    arrows
}

fn with_paths<'a>(files: &[&'a Source]) -> Vec<(&'a Source, &'a str)> {
    files.iter().filter_map(|source| Some((*source, source.in_crate()?.1))).collect()
}

/// The module that a file of `src` is: `a/b.rs` and `a/b/mod.rs` are `a::b`, and `lib.rs` is the root.
fn module_path(inside: &str) -> Vec<&str> {
    let parts = inside.trim_end_matches(".rs").split('/');
    parts.filter(|part| !matches!(*part, "mod" | ROOT)).collect()
}

/// A file, the module it is, and the modules that stand inside it.
struct File<'a> {
    source: &'a Source,
    path: Vec<&'a str>,
    inline: Vec<InlineModule<'a>>,
}

impl<'a> File<'a> {
    fn module_path_at(&self, at: usize) -> Vec<&'a str> {
        let around = self.inline.iter().filter(|module| module.body.contains(&at));
        self.path.iter().copied().chain(around.map(|module| module.name)).collect()
    }

    /// The names directly below the root that the file's paths go through, and where each stands.
    fn paths(&self) -> Vec<(usize, &'a str)> {
        let code = &self.source.code;
        let mut starts: Vec<(usize, &str)> = ["crate", "super"]
            .into_iter()
            .flat_map(|word| occurrences(code, word).map(move |at| (at, word)))
            .filter(|(at, word)| !code[..*at].ends_with("::") && code[at + word.len()..].starts_with("::"))
            .collect();
        starts.sort_unstable();
        let mut found = Vec::new();
        let mut read_until = 0;
        for (at, word) in
            starts.into_iter().filter(|(at, word)| *word != "super" || !self.module_path_at(*at).is_empty())
        {
            if at < read_until {
                continue; // The `super` inside a tree is relative to the tree, not to the file.
            }
            let after = at + word.len() + "::".len();
            let level = if word == "crate" { 0 } else { self.module_path_at(at).len() - 1 };
            read_until = names_at_root(code, after, level, &mut found);
        }
        found
    }
}

/// Follows a path from `level` modules below the root and collects the names directly below the root. Answers with the
/// offset up to which the path was read.
fn names_at_root<'a>(code: &'a str, at: usize, level: usize, found: &mut Vec<(usize, &'a str)>) -> usize {
    let at = at + spaces(&code[at..]);
    if code[at..].starts_with('{') {
        for element in group_elements(code, at) {
            names_at_root(code, element, level, found);
        }
        return group_end(code, at);
    }
    let at = if code[at..].starts_with("r#") { at + "r#".len() } else { at };
    let name = leading_word(&code[at..]);
    if level == 0 {
        found.push((at, name));
    } else if name == "super" && code[at + name.len()..].starts_with("::") {
        return names_at_root(code, at + "super::".len(), level - 1, found);
    }
    at + name.len()
}

/// The names directly below the root of a crate.
struct Names<'a> {
    modules: BTreeSet<&'a str>,
    /// What the root re-exports or a macro is called, and the module it comes from.
    shown: BTreeMap<&'a str, &'a str>,
}

impl<'a> Names<'a> {
    fn read(files: &[&'a Source]) -> Self {
        let mut names = Names { modules: BTreeSet::new(), shown: BTreeMap::new() };
        for (source, inside) in with_paths(files) {
            names.modules.extend(module_path(inside).first());
            let macros = source.code.split("macro_rules!").skip(1).map(|after| leading_word(after.trim_start()));
            names.shown.extend(macros.map(|name| (name, module_path(inside).first().copied().unwrap_or(ROOT))));
            if inside == "lib.rs" {
                let outer = inline_modules(&source.code);
                names.modules.extend(outer.iter().map(|module| module.name));
                for at in occurrences(&source.code, "use") {
                    show_leaves(&source.code, at + "use".len(), None, &mut names.shown);
                }
            }
        }
        names
    }

    fn module_of(&self, name: &'a str) -> &'a str {
        if self.modules.contains(name) { name } else { self.shown.get(name).copied().unwrap_or(ROOT) }
    }

    /// Paths of the root's own code, which needs no `crate::` before the name of a module.
    fn relative_paths(&self, code: &str) -> Vec<(usize, &'a str)> {
        let mentions = self.modules.iter().flat_map(|name| occurrences(code, name).map(|at| (at, *name)));
        let starts_path = |(at, name): &(usize, &str)| {
            code[at + name.len()..].starts_with("::") && !code[..*at].ends_with([':', '.'])
        };
        mentions.filter(starts_path).collect()
    }
}

/// Enters each name that the use tree at `at` brings in, with the first module of its path.
fn show_leaves<'a>(code: &'a str, at: usize, module: Option<&'a str>, shown: &mut BTreeMap<&'a str, &'a str>) {
    let at = at + spaces(&code[at..]);
    if code[at..].starts_with('{') {
        group_elements(code, at).into_iter().for_each(|element| show_leaves(code, element, module, shown));
        return;
    }
    let name = leading_word(&code[at..]);
    let after = &code[at + name.len()..];
    if after.starts_with("::") {
        let is_prefix = module.is_none() && matches!(name, "crate" | "self");
        let module = if is_prefix { None } else { module.or(Some(name)) };
        return show_leaves(code, at + name.len() + "::".len(), module, shown);
    }
    let renamed = after.trim_start().strip_prefix("as ").map(|new| leading_word(new.trim_start()));
    if let Some(module) = module {
        shown.insert(renamed.unwrap_or(name), module);
    }
}

/// Where the root's `pub use` statements stand.
fn re_exports(code: &str) -> Vec<Range<usize>> {
    let before = |at: &usize| code[..*at].trim_end();
    let statements = occurrences(code, "use").filter(|at| before(at).ends_with("pub") || before(at).ends_with(')'));
    statements.map(|at| at..at + code[at..].find(';').unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::Source;

    /// Reads files as `path: text`, and expects the arrows as `from -> to`, separated by commas.
    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &str) {
        let sources: Vec<Source> =
            files.iter().map(|(inside, text)| Source::new(&format!("crates/a/src/{inside}"), text)).collect();
        let arrows = super::read(&sources.iter().collect::<Vec<_>>());
        let lines = arrows.iter().flat_map(|(from, tos)| tos.keys().map(move |to| format!("{from} -> {to}")));
        assert_eq!(lines.collect::<Vec<_>>().join(", "), expected);
    }

    /// One file `a.rs` of a crate that also has the modules `b`, `c` and `d`.
    #[track_caller]
    fn check_text(text: &str, expected: &str) {
        check(&[("a.rs", text), ("b.rs", ""), ("c/mod.rs", ""), ("d/e.rs", "")], expected);
    }

    #[test]
    fn paths_from_the_root_are_arrows() {
        check_text("use crate::b::X;", "a -> b");
        check_text("fn f() { crate::b::f(crate::c::X) }", "a -> b, a -> c");
        check_text("macro_rules! m { () => { $crate::d::e::f() } }", "a -> d");
        check_text("use crate::a::X; mod b { use crate::a::Y; }", "");
        check_text("use std::b::X; use other_crate::c; pub(crate) fn b() {}", "");
        check_text("// crate::b::X\nlet s = \"crate::c\";", "");
    }

    #[test]
    fn use_trees_are_read() {
        check_text("use crate::{b, c::{X, d::Y}, d as e};", "a -> b, a -> c, a -> d");
        check_text("use crate::{\n    b::X,\n    a::{c, d},\n};", "a -> b");
        check_text("use {crate::b::X, std::c::Y};", "a -> b");
    }

    #[test]
    fn super_leads_to_the_root_from_the_right_depth() {
        check_text("use super::b::X;", "a -> b");
        check_text("mod inner { use super::b; use super::super::c; }", "a -> c");
        check(
            &[
                ("a/x.rs", "use super::{b, super::c::X};\nuse super::super::d;"),
                ("b.rs", ""),
                ("c.rs", ""),
                ("d.rs", ""),
            ],
            "a -> c, a -> d",
        );
        check(&[("a/mod.rs", "use super::b;"), ("b.rs", "")], "a -> b");
        check(&[("a/x/y.rs", "use super::super::b; use super::super::super::b;"), ("b.rs", "")], "a -> b");
    }

    #[test]
    fn a_folder_is_one_module_with_its_file() {
        check(
            &[("a.rs", "use crate::b;"), ("a/x.rs", "use crate::a::y; use crate::c;"), ("b.rs", ""), ("c.rs", "")],
            "a -> b, a -> c",
        );
    }

    #[test]
    fn test_code_has_no_arrows() {
        check_text("#[cfg(test)]\nmod tests {\n use crate::b;\n}\n#[cfg(test)]\nuse crate::{c, d};", "");
        check(&[("a/tests.rs", "use crate::b;"), ("tests/a.rs", "use crate::b;"), ("b.rs", "")], "");
    }

    #[test]
    fn what_the_root_shows_stands_for_its_module() {
        let root = "mod a;\nmod b;\npub use b::{X, inner::Y as Z};\npub(crate) use c::W;";
        let files = |text| [("lib.rs", root), ("a.rs", text), ("b.rs", ""), ("c.rs", "")];
        check(&files("use crate::{X, W};"), "a -> b, a -> c");
        check(&files("use crate::Z;"), "a -> b");
        check(&files("use crate::Y;"), "a -> lib");
        check(&[("a.rs", "crate::make!(X);"), ("b.rs", "#[macro_export] macro_rules! make { () => {} }")], "a -> b");
    }

    #[test]
    fn the_root_itself_is_a_module() {
        check(&[("lib.rs", "mod a;\nuse a::X;\nstruct Y;"), ("a.rs", "use crate::Y;")], "a -> lib, lib -> a");
        check(&[("lib.rs", "fn f() { a::g(other::b::h()) }"), ("a.rs", ""), ("b.rs", "")], "lib -> a");
        check(
            &[("lib.rs", "mod a;\nmod c { use super::a; use crate::b; }"), ("a.rs", ""), ("b.rs", "")],
            "c -> a, c -> b",
        );
        check(&[("a.rs", "use super::*;")], "a -> lib");
    }

    #[test]
    fn an_arrow_is_placed_where_it_is_first_seen() {
        let sources =
            [Source::new("crates/a/src/a.rs", "\nuse crate::b;\nuse crate::b;"), Source::new("crates/a/src/b.rs", "")];
        let arrows = super::read(&sources.iter().collect::<Vec<_>>());
        let location =
            arrows.get("a").and_then(|tos| tos.get("b")).map(|location| (location.path.as_str(), location.line));
        assert_eq!(location, Some(("crates/a/src/a.rs", 2)));
    }
}
