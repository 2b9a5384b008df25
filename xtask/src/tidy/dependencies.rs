//! Which crate may depend on which: arrows point from the running thing towards the words, never back.

use super::Violation;
use super::workspace::{Manifest, Workspace};
use std::collections::BTreeSet;
use toml::{Table, Value};

/// A crate, the crates it may use, and those that only its tests may use.
struct Room {
    name: &'static str,
    uses: &'static [&'static str],
    tests_use: &'static [&'static str],
}

const fn room(name: &'static str, uses: &'static [&'static str]) -> Room {
    Room { name, uses, tests_use: &[] }
}

/// A new crate is entered here on purpose, or it is a violation. Some of these rooms are not built yet.
const ROOMS: &[Room] = &[
    room("model", &[]),
    room("engine", &["model"]),
    room("store", &["model", "engine"]),
    room("node", &["model", "engine", "store", "search"]),
    Room { name: "cli", uses: &["model", "engine", "store", "node", "server"], tests_use: &["simulator"] },
    room("simulator", &["model", "engine", "store", "node"]),
    room("xtask", &[]),
    room("git", &["model"]),
    room("media", &["model"]),
    room("objects", &["model"]),
    room("peers", &["model", "engine"]),
    room("search", &["model"]),
    room("server", &["model", "engine", "store", "node", "search"]),
];

/// Where a manifest lists dependencies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Normal,
    Build,
    Tests,
}

impl Section {
    const ALL: [Section; 3] = [Section::Normal, Section::Build, Section::Tests];

    fn key(self) -> &'static str {
        match self {
            Section::Normal => "dependencies",
            Section::Build => "build-dependencies",
            Section::Tests => "dev-dependencies",
        }
    }
}

/// Compares the manifests with the table of rooms.
pub(crate) fn check(workspace: &Workspace) -> Vec<Violation> {
    let ours: BTreeSet<&str> = workspace.members.iter().map(Manifest::package).collect();
    workspace.members.iter().flat_map(|manifest| check_member(workspace, &ours, manifest)).collect()
}

fn check_member(workspace: &Workspace, ours: &BTreeSet<&str>, manifest: &Manifest) -> Vec<Violation> {
    let name = short(manifest.package());
    let Some(room) = ROOMS.iter().find(|room| room.name == name) else {
        let what = format!("the crate `{name}` has no place yet; enter it in ROOMS in xtask/src/tidy/dependencies.rs");
        return vec![Violation::new(&manifest.path, 1, what)];
    };
    let mut violations = Vec::new();
    for (section, key, value) in dependencies(manifest) {
        let package = workspace.package_of(key, value);
        if ours.contains(package) && !room.may_use(short(package), section) {
            let line = line_of(&manifest.text, section, key);
            violations.push(Violation::new(&manifest.path, line, room.refusal(short(package), section)));
        }
    }
    violations
}

impl Room {
    fn may_use(&self, other: &str, section: Section) -> bool {
        self.uses.contains(&other) || section == Section::Tests && self.tests_use.contains(&other)
    }

    fn refusal(&self, other: &str, section: Section) -> String {
        let whose = if section == Section::Tests { "the tests of " } else { "" };
        let allowed = if self.uses.is_empty() { "none of our crates".to_owned() } else { self.uses.join(", ") };
        format!(
            "{whose}`{}` must not use `{other}`, it may use {allowed}; move the code to where both may reach",
            self.name
        )
    }
}

fn short(package: &str) -> &str {
    package.strip_prefix("anteroom-").unwrap_or(package)
}

/// Every dependency of the manifest, those for only some platforms included.
fn dependencies(manifest: &Manifest) -> Vec<(Section, &str, &Value)> {
    let platforms = manifest.table.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
    let tables = platforms.filter_map(Value::as_table).chain([&manifest.table]);
    let listed = tables.flat_map(|table| Section::ALL.map(|section| (section, table.get(section.key()))));
    listed
        .filter_map(|(section, value)| Some((section, value?.as_table()?)))
        .flat_map(|(section, table)| table.iter().map(move |(key, value)| (section, key.as_str(), value)))
        .collect()
}

/// The line on which a section names the dependency; 1 if it is written in a way we do not look for.
fn line_of(text: &str, section: Section, key: &str) -> usize {
    let mut in_section = false;
    for (index, line) in text.lines().map(str::trim).enumerate() {
        if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let (outer, last) = header.rsplit_once('.').unwrap_or(("", header));
            in_section = last == section.key();
            if last == key && (outer == section.key() || outer.ends_with(&format!(".{}", section.key()))) {
                return index + 1;
            }
        } else if in_section && line.split(['.', '=', ' ']).next() == Some(key) {
            return index + 1;
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_violations;
    use super::{Manifest, Workspace};
    use anyhow::Result;

    const ROOT: &str = "
        [workspace.dependencies]
        model = { path = 'crates/model', package = 'anteroom-model' }
        node = { path = 'crates/node', package = 'anteroom-node' }
        simulator = { path = 'crates/simulator', package = 'anteroom-simulator' }
        toml = '1'";

    /// Checks a crate of that name in a workspace that also has model, node and simulator.
    #[track_caller]
    fn check(name: &str, dependencies: &str, expected: &[&str]) -> Result<()> {
        let mut members = vec![Manifest::parse("m/Cargo.toml", &format!("package.name = '{name}'\n{dependencies}"))?];
        for other in ["model", "node", "simulator"] {
            members.push(Manifest::parse(other, &format!("package.name = 'anteroom-{other}'"))?);
        }
        let root = Manifest::parse("Cargo.toml", ROOT)?;
        assert_violations(&super::check(&Workspace { root, members }), expected);
        Ok(())
    }

    #[test]
    fn arrows_point_towards_the_words() -> Result<()> {
        check("anteroom-store", "[dependencies]\nmodel.workspace = true\ntoml.workspace = true", &[])?;
        check(
            "anteroom-engine",
            "[dependencies]\nmodel.workspace = true\nnode.workspace = true",
            &["m/Cargo.toml:4: `engine` must not use `node`, it may use model; move the code to where both may reach"],
        )?;
        check(
            "xtask",
            "[dependencies]\nmodel = { workspace = true }",
            &[
                "m/Cargo.toml:3: `xtask` must not use `model`, it may use none of our crates; move the code to where both may reach",
            ],
        )
    }

    #[test]
    fn a_renamed_crate_is_recognised() -> Result<()> {
        let expected = "`store` must not use `node`, it may use model, engine; move the code to where both may reach";
        let at = |line| format!("m/Cargo.toml:{line}: {expected}");
        check("anteroom-store", "[dependencies]\nother = { path = '../node', package = 'anteroom-node' }", &[&at(3)])?;
        check("anteroom-store", "[dependencies.other]\npath = '../node'\npackage = 'anteroom-node'", &[&at(2)])?;
        check("anteroom-store", "[target.'cfg(unix)'.dependencies]\nnode.workspace = true", &[&at(3)])?;
        check("anteroom-store", "[build-dependencies]\nanteroom-node = '1'", &[&at(3)])
    }

    #[test]
    fn tests_follow_the_same_table() -> Result<()> {
        let refused = "m/Cargo.toml:3: the tests of `store` must not use `simulator`, it may use model, engine; \
                       move the code to where both may reach";
        check("anteroom-cli", "[dev-dependencies]\nsimulator.workspace = true", &[])?;
        check("anteroom-store", "[dev-dependencies]\nsimulator.workspace = true", &[refused])
    }

    #[test]
    fn only_the_tests_of_cli_may_simulate() -> Result<()> {
        let refused = "m/Cargo.toml:3: `cli` must not use `simulator`, it may use model, engine, store, node, server; \
                       move the code to where both may reach";
        check("anteroom-cli", "[dependencies]\nsimulator.workspace = true", &[refused])
    }

    #[test]
    fn a_crate_without_a_place_is_told() -> Result<()> {
        let expected = "m/Cargo.toml:1: the crate `attic` has no place yet; \
                        enter it in ROOMS in xtask/src/tidy/dependencies.rs";
        check("anteroom-attic", "", &[expected])
    }
}
