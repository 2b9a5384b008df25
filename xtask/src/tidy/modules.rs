//! Which top-level module of a library may use which: no cycles, and no arrow that is not on the list.
//!
//! A library whose modules form a cycle has no allowed arrows yet. It is either a violation or named in
//! `tidy/cycles.txt`, which lists those that are still to be put in order.

mod arrows;
mod cycles;
mod list;

use super::Violation;
use super::source::{Source, by_library};
use super::tolerated::Tolerated;
use arrows::{Arrows, Location};
use cycles::Cycle;
pub(crate) use list::PATH;
use std::collections::{BTreeMap, BTreeSet};

/// The list of libraries whose cycles are tolerated.
pub(crate) const CYCLES_PATH: &str = "tidy/cycles.txt";

/// Compares the arrows of every library with the list, and looks for cycles that are not tolerated.
pub(crate) fn check(sources: &[Source], list: &str, tolerated: &str) -> Vec<Violation> {
    let libraries = read(sources);
    let cyclic = cyclic(&libraries);
    let tolerated = Tolerated::read(CYCLES_PATH, tolerated);
    let mut violations = tolerated.check_needed(&cyclic);
    violations.extend(refused_cycles(&libraries, &tolerated));
    violations.extend(check_list(&without(&libraries, &cyclic), list));
    violations
}

/// The list that allows the arrows there are, or the cycles because of which it cannot be written.
pub(crate) fn rewrite(sources: &[Source], tolerated: &str) -> Result<String, Vec<Violation>> {
    let libraries = read(sources);
    let cycles = refused_cycles(&libraries, &Tolerated::read(CYCLES_PATH, tolerated));
    if !cycles.is_empty() {
        return Err(cycles);
    }
    Ok(list::write(without(&libraries, &cyclic(&libraries)).into_iter()))
}

fn read(sources: &[Source]) -> BTreeMap<&str, Arrows> {
    by_library(sources).into_iter().map(|(name, files)| (name, arrows::read(&files))).collect()
}

fn cyclic<'a>(libraries: &BTreeMap<&'a str, Arrows>) -> BTreeSet<&'a str> {
    libraries.iter().filter(|(_, arrows)| !cycles::find(arrows).is_empty()).map(|(name, _)| *name).collect()
}

fn without<'a>(libraries: &'a BTreeMap<&str, Arrows>, cyclic: &BTreeSet<&str>) -> BTreeMap<&'a str, &'a Arrows> {
    libraries.iter().filter(|(name, _)| !cyclic.contains(*name)).map(|(name, arrows)| (*name, arrows)).collect()
}

fn refused_cycles(libraries: &BTreeMap<&str, Arrows>, tolerated: &Tolerated<'_>) -> Vec<Violation> {
    let bound = libraries.iter().filter(|(name, _)| !tolerated.contains(name));
    bound
        .flat_map(|(name, arrows)| cycles::find(arrows).into_iter().map(|cycle| cycle_violation(name, arrows, &cycle)))
        .collect()
}

fn cycle_violation(name: &str, arrows: &Arrows, cycle: &Cycle<'_>) -> Violation {
    let steps = cycle.way.windows(2).filter_map(|step| arrows.get(step[0])?.get(step[1]));
    let steps: Vec<&Location> = steps.collect();
    let (path, line) = steps.first().map_or(("", 1), |location| (location.path.as_str(), location.line));
    let others =
        steps.iter().skip(1).map(|location| format!("{}:{}", location.path, location.line)).collect::<Vec<_>>();
    let what = format!(
        "{} modules of `{name}` use each other in a cycle, for example {} (here, {}); turn one of these arrows round",
        cycle.modules.len(),
        cycle.way.join(" -> "),
        others.join(", ")
    );
    Violation::new(path, line, what)
}

fn check_list(libraries: &BTreeMap<&str, &Arrows>, list: &str) -> Vec<Violation> {
    let (listed, mut violations) = list::read(list);
    for (name, arrows) in libraries {
        for (module, used) in *arrows {
            let allowed = listed.get(&(name, module.as_str()));
            let new =
                used.iter().filter(|(to, _)| !allowed.is_some_and(|allowed| allowed.modules.contains(to.as_str())));
            violations.extend(new.map(|(to, location)| {
                let what = format!(
                    "`{module}` of `{name}` uses `{to}`, which {PATH} does not allow; move the code, \
                     or allow it with `cargo xtask tidy --write-arrows`"
                );
                Violation::new(&location.path, location.line, what)
            }));
        }
    }
    for ((name, module), allowed) in &listed {
        let used = libraries.get(name).and_then(|arrows| arrows.get(*module));
        let unused = allowed.modules.iter().filter(|to| !used.is_some_and(|used| used.contains_key(**to)));
        violations.extend(unused.map(|to| {
            let what = format!("`{module}` of `{name}` no longer uses `{to}`; run `cargo xtask tidy --write-arrows`");
            Violation::new(PATH, allowed.line, what)
        }));
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_violations;
    use super::Source;

    /// A library `store` with the modules `a`, `b` and `c` that have these texts.
    fn library(texts: [&str; 3]) -> Vec<Source> {
        let files = ["a", "b", "c"].into_iter().zip(texts);
        let modules = files.map(|(name, text)| Source::new(&format!("crates/store/src/{name}.rs"), text));
        modules.chain([Source::new("crates/store/src/lib.rs", "mod a;\nmod b;\nmod c;")]).collect()
    }

    #[track_caller]
    fn check(texts: [&str; 3], list: &str, tolerated: &str, expected: &[&str]) {
        assert_violations(&super::check(&library(texts), list, tolerated), expected);
    }

    #[test]
    fn listed_arrows_are_allowed() {
        check(["use crate::b;\nuse crate::c;", "use crate::c;", ""], "store: a -> b c\nstore: b -> c", "", &[]);
        check(["", "", ""], "", "", &[]);
    }

    #[test]
    fn other_arrows_are_not() {
        check(
            ["use crate::b;\nuse crate::c;", "", ""],
            "store: a -> b",
            "",
            &["crates/store/src/a.rs:2: `a` of `store` uses `c`, which tidy/modules.txt does not allow; \
               move the code, or allow it with `cargo xtask tidy --write-arrows`"],
        );
    }

    #[test]
    fn listed_arrows_exist() {
        let unused = |module, to| {
            format!(
                "tidy/modules.txt:1: `{module}` of `store` no longer uses `{to}`; run `cargo xtask tidy --write-arrows`"
            )
        };
        check(["use crate::b;", "", ""], "store: a -> b c", "", &[&unused("a", "c")]);
        check(["", "", ""], "store: gone -> b", "", &[&unused("gone", "b")]);
        check(["", "", ""], "attic: a -> b", "", &[&unused("a", "b").replace("store", "attic")]);
    }

    #[test]
    fn cycles_are_refused() {
        let cycle = "crates/store/src/a.rs:1: 3 modules of `store` use each other in a cycle, for example \
                     a -> b -> c -> a (here, crates/store/src/b.rs:1, crates/store/src/c.rs:2); \
                     turn one of these arrows round";
        let texts = ["use crate::b;", "use crate::c;", "\nuse crate::a;"];
        check(texts, "", "", &[cycle]);
        check(texts, "", "# still to do\nstore", &[]);
        assert_eq!(super::rewrite(&library(texts), "").map_err(|cycles| cycles.len()), Err(1));
    }

    #[test]
    fn a_tolerated_cycle_that_is_gone_is_told() {
        let gone = "tidy/cycles.txt:1: `store` keeps to the rule; remove this line";
        check(["use crate::b;", "", ""], "store: a -> b", "store", &[gone]);
        check(["", "", ""], "", "attic", &[&gone.replace("store", "attic")]);
    }

    #[test]
    fn rewriting_leaves_out_what_is_still_cyclic() {
        let cyclic = ["use crate::b;", "use crate::a;", ""];
        let lines =
            |text: String| text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(super::rewrite(&library(cyclic), "store").map(lines), Ok(vec![]));
        let ordered = ["use crate::{c, b};", "", ""];
        assert_eq!(super::rewrite(&library(ordered), "").map(lines), Ok(vec!["store: a -> b c".to_owned()]));
    }

    #[test]
    fn programs_have_no_list() {
        let sources = ["main.rs", "a.rs", "b.rs"]
            .map(|name| Source::new(&format!("crates/cli/src/{name}"), "use crate::{a, b};"));
        assert_violations(&super::check(&sources, "", ""), &[]);
    }
}
