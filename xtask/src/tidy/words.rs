//! Words that do not belong in the repository: paths of one machine, and notes to do later what nobody will.

use super::Violation;
use super::search::occurrences;
use crate::process::{output, program};
use anyhow::{Context, Result};
use std::path::Path;

// Each is put together from two halves, since this file is checked as well.
const MACHINE_PATHS: [&str; 2] = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];
const NOTES: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];

/// The text files that git tracks, and those that it would with the next `git add`.
pub(crate) fn load(root: &Path) -> Result<Vec<(String, String)>> {
    let listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let listed = output(&mut program("git", &listing)).context("cannot list the files to check")?;
    let paths = listed.split('\0').filter(|path| !path.is_empty());
    // A file that cannot be read as text is an image or was deleted and not yet committed.
    Ok(paths.filter_map(|path| Some((path.to_owned(), std::fs::read_to_string(root.join(path)).ok()?))).collect())
}

/// Finds the forbidden words of one file.
pub(crate) fn check(path: &str, text: &str) -> Vec<Violation> {
    let paths =
        MACHINE_PATHS.iter().flat_map(|start| path_starts(text, start).map(move |at| (at, path_message(start))));
    let notes = NOTES.iter().filter(|_| path.ends_with(".rs"));
    let notes = notes.flat_map(|note| occurrences(text, note).map(move |at| (at, note_message(note))));
    paths.chain(notes).map(|(at, what)| Violation::new(path, line_at(text, at), what)).collect()
}

/// Where an absolute path starts so; `a/work/b` in the middle of another path does not count.
fn path_starts<'a>(text: &'a str, start: &'a str) -> impl Iterator<Item = usize> + 'a {
    let continues = |before: char| before.is_alphanumeric() || "._-~}".contains(before);
    text.match_indices(start).map(|(at, _)| at).filter(move |at| !text[..*at].ends_with(continues))
}

fn path_message(start: &str) -> String {
    format!("`{start}` is a path of one machine; write it relative to the repository")
}

fn note_message(note: &str) -> String {
    format!("`{note}` is left in the code; do it now, or write down elsewhere what is missing")
}

fn line_at(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::{MACHINE_PATHS, NOTES};

    /// Expects the lines with forbidden words. `@` stands for a path of a machine, `#` for a note.
    #[track_caller]
    fn check(path: &str, text: &str, expected: &[usize]) {
        for (start, note) in MACHINE_PATHS.iter().zip(NOTES) {
            let found = super::check(path, &text.replace('@', start).replace('#', note));
            assert_eq!(found.iter().map(|violation| violation.line).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn paths_of_a_machine_are_found_everywhere() {
        check("README.md", "a\nsee @main or `@shared`", &[2, 2]);
        check("crates/a/src/b.rs", "//! @", &[1]);
        check("README.md", "home@x ..@ ~@ target@", &[]);
    }

    #[test]
    fn notes_are_found_in_sources() {
        check("crates/a/src/b.rs", "// #: later\nlet a = 1; // (#)", &[1, 2]);
        check("crates/a/src/b.rs", "let a# = #s;", &[]);
        check("README.md", "# later", &[]);
    }

    #[test]
    fn a_violation_says_what_to_do() {
        let path = MACHINE_PATHS[0];
        let expected = format!("a.md:1: `{path}` is a path of one machine; write it relative to the repository");
        super::super::tests::assert_violations(&super::check("a.md", path), &[&expected]);
    }
}
