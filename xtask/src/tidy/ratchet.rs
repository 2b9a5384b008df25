//! The list of what is still too long. A listed thing may shrink, never grow; what is not listed keeps to the aim.
//!
//! An entry follows its file to another folder or crate as long as the file keeps its name.
//!
//! The list is a file of lines `path<TAB>file or fn name<TAB>lines`; lines that start with `#` are remarks.

use super::Violation;
use super::lengths::{Length, Subject};
use std::collections::BTreeMap;

/// Where the list lies, from the repository's root.
pub(crate) const PATH: &str = "tidy/ratchet.txt";

const REMARK: &str = "# What is longer than we aim for, and how long it may be at most. Numbers only ever fall.\n\
                      # Rewritten by `cargo xtask tidy --write-ratchet`.\n";

/// How long the listed things may be, and on which line of the list that stands.
type Listed = BTreeMap<Subject, (usize, usize)>;

/// Compares what is too long with the list.
pub(crate) fn check(over: &BTreeMap<Subject, Length>, list: &str) -> Vec<Violation> {
    let (listed, mut violations) = read(list);
    let entries: BTreeMap<&Subject, &Subject> =
        over.keys().filter_map(|subject| Some((subject, entry_of(subject, over, &listed)?))).collect();
    for (subject, length) in over {
        let most = entries.get(subject).and_then(|entry| listed.get(entry)).map(|(lines, _)| *lines);
        violations.extend(check_length(subject, length, most));
    }
    for (entry, (_, line)) in listed.iter().filter(|(entry, _)| !entries.values().any(|needed| needed == entry)) {
        let what = format!("{} in {} is no longer too long; remove this line", entry.what, entry.path);
        violations.push(Violation::new(PATH, *line, what));
    }
    violations
}

/// The entry that is about the subject: the one of its path, or one of the same file name that nothing has any more.
fn entry_of<'a>(subject: &Subject, over: &BTreeMap<Subject, Length>, listed: &'a Listed) -> Option<&'a Subject> {
    if let Some((entry, _)) = listed.get_key_value(subject) {
        return Some(entry);
    }
    let is_moved = |entry: &&Subject| {
        entry.what == subject.what && file_name(&entry.path) == file_name(&subject.path) && !over.contains_key(*entry)
    };
    listed.keys().find(is_moved)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn check_length(subject: &Subject, length: &Length, listed: Option<usize>) -> Option<Violation> {
    let Length { lines, aim, line } = length;
    let what = match listed {
        Some(most) if *lines <= most => return None,
        Some(most) => format!("{} grew to {lines} lines, {PATH} allows {most}; make it shorter", subject.what),
        None => format!("{} has {lines} lines, the aim is {aim}; split it by subject", subject.what),
    };
    Some(Violation::new(&subject.path, *line, what))
}

/// The new list, and a message for each entry that was not there before.
pub(crate) fn rewrite(over: &BTreeMap<Subject, Length>, list: &str) -> (String, Vec<String>) {
    let (listed, _) = read(list);
    let mut text = REMARK.to_owned();
    let mut news = Vec::new();
    for (subject, Length { lines, aim, .. }) in over {
        let Subject { path, what } = subject;
        let before = entry_of(subject, over, &listed).and_then(|entry| listed.get(entry));
        let lines = before.map_or(*lines, |(most, _)| *lines.min(most));
        text.push_str(&format!("{path}\t{what}\t{lines}\n"));
        if before.is_none() {
            news.push(format!("{path}: {what} is new in {PATH} with {lines} lines, the aim is {aim}"));
        }
    }
    (text, news)
}

fn read(list: &str) -> (Listed, Vec<Violation>) {
    let mut listed = Listed::new();
    let mut violations = Vec::new();
    for (index, text) in list.lines().enumerate().filter(|(_, text)| !text.starts_with('#') && !text.is_empty()) {
        let line = index + 1;
        match entry(text) {
            Some((subject, lines)) => _ = listed.insert(subject, (lines, line)),
            None => violations.push(Violation::new(PATH, line, "not `path<TAB>file or fn name<TAB>lines`; correct it")),
        }
    }
    (listed, violations)
}

fn entry(text: &str) -> Option<(Subject, usize)> {
    let mut columns = text.split('\t');
    let (path, what, lines) = (columns.next()?, columns.next()?, columns.next()?.parse().ok()?);
    let is_known = what == "file" || what.starts_with("fn ");
    (is_known && columns.next().is_none()).then(|| (Subject { path: path.to_owned(), what: what.to_owned() }, lines))
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_violations;
    use super::{BTreeMap, Length, REMARK, Subject};

    /// Reads `path what lines` triples, separated by commas, as things that are too long.
    fn over(text: &str) -> BTreeMap<Subject, Length> {
        let listed = super::read(&text.replace(", ", "\n").replace('|', "\t")).0;
        listed.into_iter().map(|(subject, (lines, _))| (subject, Length { lines, aim: 70, line: 5 })).collect()
    }

    #[track_caller]
    fn check(measured: &str, list: &str, expected: &[&str]) {
        assert_violations(&super::check(&over(measured), &list.replace('|', "\t")), expected);
    }

    #[test]
    fn listed_things_may_shrink_but_not_grow() {
        check("a.rs|fn b|80", "a.rs|fn b|80", &[]);
        check("a.rs|fn b|75", "# remark\n\na.rs|fn b|80", &[]);
        check(
            "a.rs|fn b|81",
            "a.rs|fn b|80",
            &["a.rs:5: fn b grew to 81 lines, tidy/ratchet.txt allows 80; make it shorter"],
        );
    }

    #[test]
    fn entries_follow_files_that_move() {
        check("x/y/a.rs|fn b|80", "x/a.rs|fn b|80", &[]);
        check(
            "x/y/a.rs|fn b|81",
            "x/a.rs|fn b|80",
            &["x/y/a.rs:5: fn b grew to 81 lines, tidy/ratchet.txt allows 80; make it shorter"],
        );
        check(
            "x/a.rs|fn b|80, x/y/a.rs|fn b|80",
            "x/a.rs|fn b|80",
            &["x/y/a.rs:5: fn b has 80 lines, the aim is 70; split it by subject"],
        );
        check_rewrite("x/y/a.rs|fn b|75", "x/a.rs|fn b|80", "x/y/a.rs|fn b|75\n", &[]);
    }

    #[test]
    fn unlisted_things_keep_to_the_aim() {
        check("a.rs|file|80", "", &["a.rs:5: file has 80 lines, the aim is 70; split it by subject"]);
    }

    #[test]
    fn entries_without_need_are_removed() {
        check("", "#\na.rs|file|500", &["tidy/ratchet.txt:2: file in a.rs is no longer too long; remove this line"]);
    }

    #[test]
    fn unreadable_lines_are_told() {
        let expected = "tidy/ratchet.txt:1: not `path<TAB>file or fn name<TAB>lines`; correct it";
        check("", "a.rs file 500", &[expected]);
        check("", "a.rs|file|many", &[expected]);
        check("", "a.rs|struct b|80", &[expected]);
        check("", "a.rs|file|500|more", &[expected]);
    }

    #[track_caller]
    fn check_rewrite(measured: &str, list: &str, expected: &str, news: &[&str]) {
        let (text, told) = super::rewrite(&over(measured), &list.replace('|', "\t"));
        assert_eq!(text, format!("{REMARK}{}", expected.replace('|', "\t")));
        assert_eq!(told, news);
    }

    #[test]
    fn rewriting_only_lowers() {
        check_rewrite("a.rs|file|75", "a.rs|file|80", "a.rs|file|75\n", &[]);
        check_rewrite("a.rs|file|85", "a.rs|file|80", "a.rs|file|80\n", &[]);
        check_rewrite("", "a.rs|file|80", "", &[]);
    }

    #[test]
    fn rewriting_tells_what_is_new() {
        let news = "b.rs: fn c is new in tidy/ratchet.txt with 90 lines, the aim is 70";
        check_rewrite("a.rs|file|75, b.rs|fn c|90", "a.rs|file|75", "a.rs|file|75\nb.rs|fn c|90\n", &[news]);
    }
}
