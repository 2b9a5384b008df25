//! Every source file says at its top what it is about.

use super::Violation;
use super::source::Source;

/// A file of a crate's `src` must start with its module documentation.
pub(crate) fn check(source: &Source) -> Option<Violation> {
    let documented =
        source.text.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| line.starts_with("//!"));
    if documented || !is_crate_source(&source.path) {
        return None;
    }
    Some(Violation::new(&source.path, 1, "no module documentation; start the file with `//!` and what it is about"))
}

fn is_crate_source(path: &str) -> bool {
    let in_crate = path.strip_prefix("crates/").and_then(|path| path.split_once('/'));
    in_crate.is_some_and(|(_, inside)| inside.starts_with("src/")) || path.starts_with("xtask/src/")
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_violations;
    use crate::tidy::source::Source;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[&str]) {
        assert_violations(super::check(&Source::new(path, text)).as_slice(), expected);
    }

    #[test]
    fn sources_start_with_their_documentation() {
        let missing = ": no module documentation; start the file with `//!` and what it is about";
        check("crates/model/src/id.rs", "//! Ids.\nuse a;", &[]);
        check("crates/model/src/id.rs", "\n//! Ids.\n", &[]);
        check("crates/model/src/id.rs", "use a;\n//! Ids.", &[&format!("crates/model/src/id.rs:1{missing}")]);
        check("crates/model/src/id.rs", "", &[&format!("crates/model/src/id.rs:1{missing}")]);
        check("xtask/src/main.rs", "// Main.", &[&format!("xtask/src/main.rs:1{missing}")]);
    }

    #[test]
    fn integration_tests_need_none() {
        check("crates/model/tests/id.rs", "use a;", &[]);
    }
}
