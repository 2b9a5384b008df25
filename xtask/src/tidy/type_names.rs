//! No two public types of the libraries share a name, so that a reader who meets a word knows which thing is meant.
//!
//! Declarations are found by their keyword: a type that a macro declares is not seen. The libraries that only tests use
//! do not count. Names that are still shared stand in `tidy/type_names.txt`.

use super::Violation;
use super::search::{inline_modules, leading_word, occurrences};
use super::source::{Source, by_library};
use super::tolerated::Tolerated;
use std::collections::{BTreeMap, BTreeSet};

/// The list of names that two types may share for now.
pub(crate) const PATH: &str = "tidy/type_names.txt";

/// The keywords that declare a type.
const KEYWORDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// The libraries for tests.
const FOR_TESTS: [&str; 1] = ["simulator"];

/// How far a declaration can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// In the crate or a part of it.
    Crate,
    /// Everywhere.
    Public,
}

/// A type that is declared to be seen outside its module.
#[derive(Debug)]
pub(crate) struct Declaration<'a> {
    pub(crate) name: &'a str,
    pub(crate) at: usize,
    pub(crate) visibility: Visibility,
}

/// Reports each public type whose name another one had before it.
pub(crate) fn check(sources: &[Source], tolerated: &str) -> Vec<Violation> {
    let tolerated = Tolerated::read(PATH, tolerated);
    let mut first: BTreeMap<&str, (String, usize)> = BTreeMap::new();
    let mut shared = BTreeSet::new();
    let mut violations = Vec::new();
    let libraries = by_library(sources).into_iter().filter(|(name, _)| !FOR_TESTS.contains(name));
    for source in libraries.flat_map(|(_, files)| files) {
        for (name, at) in public_types(source) {
            let line = source.line_at(at);
            let Some((path, other)) = first.get(name) else {
                first.insert(name, (source.path.clone(), line));
                continue;
            };
            shared.insert(name);
            if !tolerated.contains(name) {
                let what =
                    format!("`{name}` is the name of a type at {path}:{other} already; give one of them another");
                violations.push(Violation::new(&source.path, line, what));
            }
        }
    }
    violations.extend(tolerated.check_needed(&shared));
    violations
}

/// The public types of a file. Two of one name in one module exclude each other by `cfg`, and count as one.
fn public_types(source: &Source) -> Vec<(&str, usize)> {
    let modules = inline_modules(&source.code);
    let mut seen = BTreeSet::new();
    let public = declarations(source).into_iter().filter(|declared| declared.visibility == Visibility::Public);
    public
        .filter(|declared| {
            let mut around =
                modules.iter().filter(|module| module.body.contains(&declared.at)).map(|module| module.body.start);
            seen.insert((declared.name, around.next_back()))
        })
        .map(|declared| (declared.name, declared.at))
        .collect()
}

/// The types of a file that can be seen outside their module, test code not included, in order.
pub(crate) fn declarations(source: &Source) -> Vec<Declaration<'_>> {
    let code = &source.code;
    let keywords = KEYWORDS.iter().flat_map(|keyword| occurrences(code, keyword).map(move |at| (at, keyword.len())));
    let mut found: Vec<Declaration<'_>> = keywords
        .filter(|(at, _)| !source.is_test(*at))
        .filter_map(|(at, length)| {
            let name = leading_word(code[at + length..].trim_start());
            Some(Declaration { name, at, visibility: visibility(&code[..at])? })
        })
        .filter(|declared| !declared.name.is_empty())
        .collect();
    found.sort_by_key(|declared| declared.at);
    found
}

/// The visibility that stands before a keyword; `None` if the declaration is private.
fn visibility(before: &str) -> Option<Visibility> {
    let before = before.trim_end();
    let before = before.strip_suffix("unsafe").unwrap_or(before).trim_end();
    if let Some(inside) = before.strip_suffix(')') {
        return inside.rsplit_once("pub(").map(|_| Visibility::Crate);
    }
    let is_word = before.strip_suffix("pub").is_some_and(|left| !left.ends_with(super::search::is_word));
    is_word.then_some(Visibility::Public)
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_violations;
    use super::{Source, Visibility, declarations};

    /// Expects the types of a text that can be seen outside, in order; those of the crate in brackets.
    #[track_caller]
    fn check_found(text: &str, expected: &str) {
        let source = Source::new("crates/model/src/a.rs", text);
        let found = declarations(&source);
        let names = found.iter().map(|declared| match declared.visibility {
            Visibility::Public => declared.name.to_owned(),
            Visibility::Crate => format!("({})", declared.name),
        });
        assert_eq!(names.collect::<Vec<_>>().join(" "), expected);
    }

    #[test]
    fn declarations_are_found() {
        check_found("pub struct A;\npub enum B {}\npub trait C {}\npub type D = A;\npub union E {}", "A B C D E");
        check_found("pub(crate) struct A<T>(T);\npub(super) enum B {}\npub(in crate::x) type C = A;", "(A) (B) (C)");
        check_found("pub unsafe trait A {}", "A");
    }

    #[test]
    fn nothing_else_is() {
        check_found("struct A; enum B {} type C = A;", "");
        check_found("impl X for Y { type A = B; }\nfn f(type_of: u8) { (a) }", "");
        check_found("pub struct $name;", "");
        check_found("// pub struct A;\nlet s = \"pub enum B\";", "");
        check_found("#[cfg(test)]\nmod tests { pub struct A; }", "");
    }

    /// Checks files `crate/file: text` of libraries; the place of each name is its own line.
    #[track_caller]
    fn check(files: &[(&str, &str)], tolerated: &str, expected: &[&str]) {
        let mut sources: Vec<Source> = Vec::new();
        for (place, text) in files {
            let (name, file) = place.split_once('/').unwrap_or((place, "lib.rs"));
            sources.push(Source::new(&format!("crates/{name}/src/{file}"), text));
            sources.push(Source::new(&format!("crates/{name}/src/lib.rs"), ""));
        }
        assert_violations(&super::check(&sources, tolerated), expected);
    }

    #[test]
    fn a_name_stands_for_one_type() {
        let shared = "crates/store/src/b.rs:2: `Place` is the name of a type at crates/model/src/a.rs:1 already; \
                      give one of them another";
        check(&[("model/a.rs", "pub struct Place;"), ("store/b.rs", "\npub enum Place {}")], "", &[shared]);
        check(
            &[("model/a.rs", "pub struct Place;"), ("model/b.rs", "\npub type Place = u8;")],
            "",
            &[&shared.replace("store", "model")],
        );
        check(&[("model/a.rs", "mod x { pub struct A; }\npub struct B;"), ("model/b.rs", "pub struct C;")], "", &[]);
    }

    #[test]
    fn private_names_and_alternatives_may_repeat() {
        check(
            &[("model/a.rs", "pub struct A;"), ("store/b.rs", "struct A;"), ("node/c.rs", "pub(crate) struct A;")],
            "",
            &[],
        );
        check(&[("model/a.rs", "#[cfg(unix)]\npub struct A;\n#[cfg(not(unix))]\npub struct A;")], "", &[]);
        check(&[("model/a.rs", "pub struct A;"), ("simulator/b.rs", "pub struct A;")], "", &[]);
    }

    #[test]
    fn shared_names_can_be_tolerated_while_they_are_shared() {
        let files = [("model/a.rs", "pub struct A;"), ("store/b.rs", "pub struct A;")];
        check(&files, "A", &[]);
        let unneeded = "tidy/type_names.txt:1: `B` keeps to the rule; remove this line";
        check(&files, "B\nA", &[unneeded]);
    }

    #[test]
    fn programs_do_not_count() {
        let main = Source::new("crates/cli/src/main.rs", "pub struct A;");
        let other = Source::new("crates/cli/src/a.rs", "pub struct A;");
        assert_violations(&super::check(&[main, other], ""), &[]);
    }
}
