//! What a protocol costs outside its own folders. The `probe` protocol, which only the simulator speaks, is the measure: a
//! file that speaks of it and is not its own is listed with the number of lines that do, so that the price of the next
//! protocol is known, and what leaks out of its folders is noticed.

use super::Violation;
use super::source::Source;
use std::collections::BTreeMap;

/// Where the list lies, from the repository's root: lines of `path<TAB>lines`.
pub(crate) const PATH: &str = "tidy/arms.txt";

/// Compares the files that speak of the protocol with the list.
pub(crate) fn check(sources: &[Source], list: &str) -> Vec<Violation> {
    let found: BTreeMap<&str, usize> =
        sources.iter().filter_map(|source| Some((&*source.path, mentions(source)?))).collect();
    let listed = read(list);
    let mut violations = Vec::new();
    for (path, lines) in &found {
        let most = listed.get(path).map_or(0, |(most, _)| *most);
        if *lines != most {
            let what = format!(
                "{lines} lines speak of the `probe` protocol, {PATH} lists {most}; move them to its folder, or list them"
            );
            violations.push(Violation::new(path, 1, what));
        }
    }
    let unneeded = listed.iter().filter(|(path, _)| !found.contains_key(*path));
    violations.extend(unneeded.map(|(path, (_, line))| {
        Violation::new(PATH, *line, format!("{path} does not speak of the `probe` protocol; remove this line"))
    }));
    violations
}

/// How many lines of a file speak of the protocol; none if it is the protocol's own, or does not.
fn mentions(source: &Source) -> Option<usize> {
    let is_own = source.path.contains("/probe") || !source.path.starts_with("crates/");
    if is_own || source.path.starts_with("crates/simulator/") {
        return None;
    }
    let lines = source.code.lines().filter(|line| line.contains("Probe") || line.contains("probe")).count();
    (lines > 0).then_some(lines)
}

fn read(list: &str) -> BTreeMap<&str, (usize, usize)> {
    let lines = list.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|(index, line)| {
            let (path, count) = line.split_once('\t').unwrap_or((line, "0"));
            (path, (count.parse().unwrap_or(0), index + 1))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::super::tests::assert_violations;

    #[track_caller]
    fn check(path: &str, code: &str, list: &str, expected: &[&str]) {
        assert_violations(&super::check(&[Source::new(path, code)], list), expected);
    }

    #[test]
    fn lines_outside_the_folder_are_listed() {
        let code = "enum A {\n    /// Of the probe protocol.\n    Probe,\n}\n";
        check("crates/engine/src/a.rs", code, "# remark\ncrates/engine/src/a.rs\t1\n", &[]);
        let what = "crates/engine/src/a.rs:1: 1 lines speak of the `probe` protocol, tidy/arms.txt lists";
        let advice = "move them to its folder, or list them";
        check("crates/engine/src/a.rs", code, "", &[&format!("{what} 0; {advice}")]);
        check("crates/engine/src/a.rs", code, "crates/engine/src/a.rs\t2", &[&format!("{what} 2; {advice}")]);
    }

    #[test]
    fn its_own_folders_and_the_simulator_are_not() {
        for path in [
            "crates/engine/src/protocol/probe/mod.rs",
            "crates/engine/src/rows/probe.rs",
            "crates/simulator/src/run.rs",
        ] {
            check(path, "struct Probe;\n", "", &[]);
        }
    }

    #[test]
    fn a_listed_file_speaks_of_it() {
        let what = "tidy/arms.txt:1: crates/a.rs does not speak of the `probe` protocol; remove this line";
        check("crates/a.rs", "struct A;\n", "crates/a.rs\t1\n", &[what]);
    }
}
