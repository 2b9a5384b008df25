//! Lists of what a rule still tolerates. Each is a file of one name a line that is edited by hand and only ever gets
//! shorter: a name that the rule no longer needs is a violation. Lines that start with `#` are remarks.

use super::Violation;
use std::collections::{BTreeMap, BTreeSet};

/// One list, with the line on which each name stands.
#[derive(Debug)]
pub(crate) struct Tolerated<'a> {
    path: &'static str,
    names: BTreeMap<&'a str, usize>,
}

impl<'a> Tolerated<'a> {
    /// Reads a text as the list at that path.
    pub(crate) fn read(path: &'static str, text: &'a str) -> Self {
        let lines = text.lines().enumerate().map(|(index, line)| (line.trim(), index + 1));
        Tolerated { path, names: lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#')).collect() }
    }

    /// Whether the rule may be broken by what has this name.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// A violation for each listed name that keeps to the rule by now.
    pub(crate) fn check_needed(&self, breaking: &BTreeSet<&str>) -> Vec<Violation> {
        let unneeded = self.names.iter().filter(|(name, _)| !breaking.contains(*name));
        unneeded
            .map(|(name, line)| {
                Violation::new(self.path, *line, format!("`{name}` keeps to the rule; remove this line"))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_violations;
    use super::Tolerated;

    #[test]
    fn names_stand_one_a_line() {
        let list = Tolerated::read("tidy/a.txt", "# a\n\nb\n c \n");
        assert_eq!(["a", "# a", "", "b", "c"].map(|name| list.contains(name)), [false, false, false, true, true]);
    }

    #[test]
    fn names_without_need_are_removed() {
        let list = Tolerated::read("tidy/a.txt", "# remark\nb\nc");
        assert_violations(&list.check_needed(&["b", "c"].into()), &[]);
        assert_violations(
            &list.check_needed(&["b"].into()),
            &["tidy/a.txt:3: `c` keeps to the rule; remove this line"],
        );
    }
}
