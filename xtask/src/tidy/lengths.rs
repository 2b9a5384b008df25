//! How long files and functions are, and which of them are longer than we aim for.

use super::search::{group_end, leading_word, occurrences};
use super::source::Source;
use std::collections::BTreeMap;

/// A longer file usually has two subjects.
const FILE_LINES_AIM: usize = 400;
/// A longer function no longer fits on a screen.
const FUNCTION_LINES_AIM: usize = 70;

/// What was measured: `file`, or `fn` and a name; functions of one name in one file count as one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Subject {
    /// The path of the file.
    pub(crate) path: String,
    /// `file`, or `fn` and the function's name.
    pub(crate) what: String,
}

/// How long something is, and where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length {
    /// How many lines it has.
    pub(crate) lines: usize,
    /// How many lines it should have at most.
    pub(crate) aim: usize,
    /// The line on which it starts.
    pub(crate) line: usize,
}

/// Everything that is longer than we aim for.
pub(crate) fn over_aim(sources: &[Source]) -> BTreeMap<Subject, Length> {
    let mut over = BTreeMap::new();
    for source in sources {
        let mut lengths = functions(source);
        let lines = source.text.lines().count();
        lengths.push(("file".to_owned(), Length { lines, aim: FILE_LINES_AIM, line: 1 }));
        for (what, length) in lengths.into_iter().filter(|(_, length)| length.lines > length.aim) {
            let longest = over.entry(Subject { path: source.path.clone(), what }).or_insert(length);
            if longest.lines < length.lines {
                *longest = length;
            }
        }
    }
    over
}

fn functions(source: &Source) -> Vec<(String, Length)> {
    let code = &source.code;
    let named = occurrences(code, "fn").filter_map(|start| Some((start, name(code, start)?, body(code, start)?)));
    named
        .map(|(start, name, open)| {
            let line = source.line_at(start);
            let lines = source.line_at(group_end(code, open) - 1) - line + 1;
            (format!("fn {name}"), Length { lines, aim: FUNCTION_LINES_AIM, line })
        })
        .collect()
}

/// The name behind `fn`; `None` for the type of a function pointer.
fn name(code: &str, start: usize) -> Option<&str> {
    let after = code[start + "fn".len()..].trim_start();
    let name = leading_word(after.strip_prefix("r#").or_else(|| after.strip_prefix('$')).unwrap_or(after));
    (!name.is_empty()).then_some(name)
}

/// The brace that opens the function's body; `None` for a declaration without one.
fn body(code: &str, start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        at += code[at..].find(['(', '[', '{', ';', ')', ']', '}'])?;
        match code.as_bytes()[at] {
            // Parameters and array types hold semicolons and braces that are not the function's own.
            b'(' | b'[' => at = group_end(code, at),
            b'{' => return Some(at),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Source, functions, over_aim};

    /// Expects the functions of a text as `name lines`, separated by commas.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let found = functions(&Source::new("a.rs", text));
        let short = found.iter().map(|(name, length)| format!("{name} {}", length.lines));
        assert_eq!(short.collect::<Vec<_>>().join(", "), expected);
    }

    #[test]
    fn functions_reach_to_their_closing_brace() {
        check("fn a() {}\nfn b() {\n}\n", "fn a 1, fn b 2");
        check("pub fn a(\n  x: u8,\n) -> u8\nwhere\n  T: U,\n{\n  x\n}\n", "fn a 8");
        check("fn a() {\n  fn b() {\n  }\n}", "fn a 4, fn b 2");
        check("fn a() {\n  let x = \"}\"; // }\n  '}';\n}", "fn a 4");
        check("fn a(x: [u8; 2]) -> [u8; { 3 }] {\n}", "fn a 2");
        check("fn r#type() {\n}\nfn $name() {}", "fn type 2, fn name 1");
    }

    #[test]
    fn what_has_no_body_is_no_function() {
        check("trait T {\n  fn a(&self);\n  fn b(&self) {}\n}", "fn b 1");
        check("type F = fn(u8) -> u8;\nstruct S { f: fn() }", "");
        check("// fn a() {}\nlet s = \"fn b() {}\";", "");
    }

    #[track_caller]
    fn check_over(text: &str, expected: &str) {
        let over = over_aim(&[Source::new("a.rs", text)]);
        let short =
            over.iter().map(|(subject, length)| format!("{} {} from {}", subject.what, length.lines, length.line));
        assert_eq!(short.collect::<Vec<_>>().join(", "), expected);
    }

    #[test]
    fn only_what_exceeds_the_aim_is_told() {
        check_over(&"\n".repeat(400), "");
        check_over(&"\n".repeat(401), "file 401 from 1");
        check_over(&format!("fn a() {{{}}}", "\n".repeat(69)), "");
        check_over(&format!("\nfn a() {{{}}}", "\n".repeat(70)), "fn a 71 from 2");
    }

    #[test]
    fn the_longest_of_one_name_counts() {
        let text = format!("fn a() {{{}}}\nfn a() {{{}}}", "\n".repeat(70), "\n".repeat(80));
        check_over(&text, "fn a 81 from 72");
    }
}
