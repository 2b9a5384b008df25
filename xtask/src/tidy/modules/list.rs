//! The list of allowed arrows: a file of lines `crate: module -> modules it uses`, in order.

use super::arrows::Arrows;
use crate::tidy::Violation;
use std::collections::{BTreeMap, BTreeSet};

/// Where the list lies, from the repository's root.
pub(crate) const PATH: &str = "tidy/modules.txt";

const REMARK: &str = "# Which top-level module of a library may use which others: `crate: module -> modules it uses`.\n\
                      # Rewritten by `cargo xtask tidy --write-arrows`; a new line is a decision to be reviewed.\n";

/// What the list allows to one module.
#[derive(Debug)]
pub(crate) struct Allowed<'a> {
    /// The line of the list.
    pub(crate) line: usize,
    /// The modules it may use.
    pub(crate) modules: BTreeSet<&'a str>,
}

/// The allowed arrows, by crate and module.
pub(crate) type Listed<'a> = BTreeMap<(&'a str, &'a str), Allowed<'a>>;

/// Reads the list; a line that cannot be read is a violation.
pub(crate) fn read(text: &str) -> (Listed<'_>, Vec<Violation>) {
    let mut listed = Listed::new();
    let mut violations = Vec::new();
    for (index, row) in text.lines().enumerate().filter(|(_, row)| !row.is_empty() && !row.starts_with('#')) {
        let line = index + 1;
        match row.split_once(": ").and_then(|(name, rest)| Some((name, rest.split_once(" -> ")?))) {
            Some((name, (module, used))) => {
                let modules = used.split_whitespace().collect();
                listed.insert((name, module), Allowed { line, modules });
            }
            None => violations.push(Violation::new(PATH, line, "not `crate: module -> modules it uses`; correct it")),
        }
    }
    (listed, violations)
}

/// The list that allows exactly these arrows.
pub(crate) fn write<'a>(libraries: impl Iterator<Item = (&'a str, &'a Arrows)>) -> String {
    let mut text = REMARK.to_owned();
    for (name, arrows) in libraries {
        for (module, used) in arrows {
            let used: Vec<&str> = used.keys().map(String::as_str).collect();
            text.push_str(&format!("{name}: {module} -> {}\n", used.join(" ")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::assert_violations;
    use super::{Arrows, REMARK, read, write};

    #[test]
    fn what_is_written_is_read() {
        let arrows: Arrows = [("a", "b"), ("b", "c")]
            .map(|(from, to)| {
                (
                    from.to_owned(),
                    [(to.to_owned(), super::super::arrows::Location { path: String::new(), line: 1 })].into(),
                )
            })
            .into();
        let text = write([("store", &arrows)].into_iter());
        assert_eq!(text, format!("{REMARK}store: a -> b\nstore: b -> c\n"));
        let (listed, violations) = read(&text);
        assert_violations(&violations, &[]);
        assert!(listed.get(&("store", "a")).is_some_and(|allowed| allowed.modules.contains("b") && allowed.line == 3));
        assert_eq!(listed.len(), 2);
    }

    #[test]
    fn unreadable_lines_are_told() {
        let expected = "tidy/modules.txt:2: not `crate: module -> modules it uses`; correct it";
        assert_violations(&read("#\nstore a -> b").1, &[expected]);
        assert_violations(&read("\nstore: a b").1, &[expected]);
    }
}
