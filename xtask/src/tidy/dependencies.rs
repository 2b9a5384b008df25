//! Which crate may depend on which: each only on those below it.
//!
//! The crates stand in layers. A crate may use every crate of the layers below its own, and none of its own layer:
//! that is why `api` and `web` do not know each other. Dependencies of tests follow the same rule, except those of the
//! program, whose tests put everything together.

use super::Violation;
use super::workspace::{Manifest, Workspace};
use std::collections::BTreeSet;
use toml::{Table, Value};

/// The crates, lowest layer first. A new crate is entered here on purpose, or it is a violation; some are not built yet.
const LAYERS: [&[&str]; 8] = [
    &["model"],
    &["engine", "objects"],
    &["store", "search", "outbound", "media", "git", "peers"],
    &["node"],
    &["queries"],
    &["server"],
    &["api", "web", "relay", "git_http"],
    &["cli"],
];

/// Crates for tests and developers, and how many of the lower layers each may use. Only the program's tests use them.
const FOR_TESTS: [(&str, usize); 2] = [("simulator", 4), ("xtask", 0)];

/// Tests that set their scene through another crate of the same layer.
const TESTS_BESIDE: [(&str, &str); 1] = [("web", "api")];

/// The crate whose tests may use anything.
const PROGRAM: &str = "cli";

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

/// Compares the manifests with the layers.
pub(crate) fn check(workspace: &Workspace) -> Vec<Violation> {
    let ours: BTreeSet<&str> = workspace.members.iter().map(Manifest::package).collect();
    workspace.members.iter().flat_map(|manifest| check_member(workspace, &ours, manifest)).collect()
}

fn check_member(workspace: &Workspace, ours: &BTreeSet<&str>, manifest: &Manifest) -> Vec<Violation> {
    let name = short(manifest.package());
    let Some(usable) = usable_by(&name) else {
        let what = format!("the crate `{name}` has no layer yet; enter it in LAYERS in xtask/src/tidy/dependencies.rs");
        return vec![Violation::new(&manifest.path, 1, what)];
    };
    let mut violations = Vec::new();
    for (section, key, value) in dependencies(manifest) {
        let package = workspace.package_of(key, value);
        let other = short(package);
        let is_beside = TESTS_BESIDE.contains(&(name.as_str(), other.as_str()));
        let is_free = section == Section::Tests && (name == PROGRAM || is_beside);
        if ours.contains(package) && !is_free && !usable.contains(&other.as_str()) {
            let line = line_of(&manifest.text, section, key);
            violations.push(Violation::new(&manifest.path, line, refusal(&name, &other, &usable, section)));
        }
    }
    violations
}

/// The crates that a crate may use; `None` if it stands in no layer.
fn usable_by(name: &str) -> Option<Vec<&'static str>> {
    let layer = LAYERS.iter().position(|layer| layer.contains(&name));
    let below = layer.or_else(|| FOR_TESTS.iter().find(|(other, _)| *other == name).map(|(_, below)| *below))?;
    Some(LAYERS[..below].concat())
}

fn refusal(name: &str, other: &str, usable: &[&str], section: Section) -> String {
    let whose = if section == Section::Tests { "the tests of " } else { "" };
    let usable = if usable.is_empty() { "none of our crates".to_owned() } else { usable.join(", ") };
    format!("{whose}`{name}` must not use `{other}`, it may use {usable}; move the code to where both may reach")
}

/// The name of a package without what all of ours have in common, as its folder is called.
fn short(package: &str) -> String {
    package.strip_prefix("anteroom-").unwrap_or(package).replace('-', "_")
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

    /// What follows the names in a refusal.
    const MOVE: &str = "move the code to where both may reach";

    #[test]
    fn a_crate_uses_those_below_it() -> Result<()> {
        check("anteroom-store", "[dependencies]\nmodel.workspace = true\ntoml.workspace = true", &[])?;
        check(
            "anteroom-engine",
            "[dependencies]\nmodel.workspace = true\nnode.workspace = true",
            &[&format!("m/Cargo.toml:4: `engine` must not use `node`, it may use model; {MOVE}")],
        )?;
        check(
            "xtask",
            "[dependencies]\nmodel = { workspace = true }",
            &[&format!("m/Cargo.toml:3: `xtask` must not use `model`, it may use none of our crates; {MOVE}")],
        )
    }

    /// Expects that a crate may use the first crates, and none of the others.
    #[track_caller]
    fn check_usable(name: &str, usable: &str, refused: &str) {
        let found = super::usable_by(name).unwrap_or_default();
        for other in usable.split_whitespace() {
            assert!(found.contains(&other), "`{name}` may use `{other}`");
        }
        for other in refused.split_whitespace() {
            assert!(!found.contains(&other), "`{name}` must not use `{other}`");
        }
    }

    #[test]
    fn layers_are_those_of_the_design() {
        check_usable("objects", "model", "engine store node server cli");
        check_usable("store", "model engine objects", "store node");
        for beside in ["search", "outbound", "media", "git", "peers"] {
            check_usable(beside, "model engine", "store node queries server search outbound cli");
            check_usable("store", "model engine", beside);
            for above in ["node", "queries", "server", "api", "web", "relay", "git_http", "cli"] {
                check_usable(above, beside, "simulator xtask");
            }
        }
        check_usable("node", "model engine store", "queries server api web cli");
        check_usable("queries", "node", "server api web");
        check_usable("server", "queries node store", "api web relay git_http cli");
        for way in ["api", "web", "relay", "git_http"] {
            check_usable(way, "server queries node store engine model", "api web relay git_http cli");
            check_usable("cli", way, "cli");
        }
        check_usable("simulator", "model engine store node search", "queries server cli");
    }

    #[test]
    fn a_renamed_crate_is_recognised() -> Result<()> {
        let at = |line| {
            format!("m/Cargo.toml:{line}: `store` must not use `node`, it may use model, engine, objects; {MOVE}")
        };
        check("anteroom-store", "[dependencies]\nother = { path = '../node', package = 'anteroom-node' }", &[&at(3)])?;
        check("anteroom-store", "[dependencies.other]\npath = '../node'\npackage = 'anteroom-node'", &[&at(2)])?;
        check("anteroom-store", "[target.'cfg(unix)'.dependencies]\nnode.workspace = true", &[&at(3)])?;
        check("anteroom-store", "[build-dependencies]\nanteroom-node = '1'", &[&at(3)])?;
        check("anteroom-git-http", "[dependencies]\nnode.workspace = true", &[])
    }

    #[test]
    fn tests_follow_the_same_layers() -> Result<()> {
        let refused =
            "m/Cargo.toml:3: the tests of `store` must not use `simulator`, it may use model, engine, objects; ";
        check("anteroom-store", "[dev-dependencies]\nsimulator.workspace = true", &[&format!("{refused}{MOVE}")])?;
        check("anteroom-store", "[dev-dependencies]\nmodel.workspace = true", &[])
    }

    #[test]
    fn the_tests_of_the_program_use_anything() -> Result<()> {
        check("anteroom-cli", "[dev-dependencies]\nsimulator.workspace = true", &[])?;
        let refused = format!(
            "m/Cargo.toml:3: `cli` must not use `simulator`, it may use model, engine, objects, store, search, outbound, \
             media, git, peers, node, queries, server, api, web, relay, git_http; {MOVE}"
        );
        check("anteroom-cli", "[dependencies]\nsimulator.workspace = true", &[&refused])
    }

    #[test]
    fn a_crate_without_a_layer_is_told() -> Result<()> {
        let expected = "m/Cargo.toml:1: the crate `attic` has no layer yet; \
                        enter it in LAYERS in xtask/src/tidy/dependencies.rs";
        check("anteroom-attic", "", &[expected])
    }
}
