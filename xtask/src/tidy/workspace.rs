//! The manifests of the workspace: its root and each member.

use anyhow::{Context, Result};
use std::path::Path;
use toml::{Table, Value};

/// One `Cargo.toml`.
#[derive(Debug)]
pub(crate) struct Manifest {
    /// The path from the repository's root.
    pub(crate) path: String,
    /// The file as it is, to find line numbers in.
    pub(crate) text: String,
    /// The file as it is meant.
    pub(crate) table: Table,
}

impl Manifest {
    /// Reads a text as the manifest at that path.
    pub(crate) fn parse(path: &str, text: &str) -> Result<Self> {
        let table = text.parse().with_context(|| format!("cannot read {path} as TOML"))?;
        Ok(Manifest { path: path.to_owned(), text: text.to_owned(), table })
    }

    fn load(root: &Path, path: &str) -> Result<Self> {
        let text = std::fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        Manifest::parse(path, &text)
    }

    /// The name of the package, empty if it has none.
    pub(crate) fn package(&self) -> &str {
        self.table.get("package").and_then(|package| package.get("name")).and_then(Value::as_str).unwrap_or_default()
    }
}

/// All manifests of the repository.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The manifest at the root.
    pub(crate) root: Manifest,
    /// The manifests of the crates, in the order of their paths.
    pub(crate) members: Vec<Manifest>,
}

impl Workspace {
    /// Reads the root's manifest and those of the members it names.
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let manifest = Manifest::load(root, "Cargo.toml")?;
        let named = manifest.table.get("workspace").and_then(|workspace| workspace.get("members"));
        let named = named.and_then(Value::as_array).context("Cargo.toml names no workspace members")?;
        let mut paths = Vec::new();
        for member in named.iter().filter_map(Value::as_str) {
            paths.extend(expand(root, member)?);
        }
        paths.sort();
        let members = paths.iter().map(|path| Manifest::load(root, path)).collect::<Result<_>>()?;
        Ok(Workspace { root: manifest, members })
    }

    /// The package that a dependency means: it may be renamed where it is used or where the workspace lists it.
    pub(crate) fn package_of<'a>(&'a self, key: &'a str, dependency: &'a Value) -> &'a str {
        let listed = self.root.table.get("workspace").and_then(|workspace| workspace.get("dependencies"));
        let inherits = dependency.get("workspace").and_then(Value::as_bool) == Some(true);
        let inherited = listed.and_then(|listed| listed.get(key)).filter(|_| inherits);
        let renamed = inherited.unwrap_or(dependency).get("package");
        renamed.and_then(Value::as_str).unwrap_or(key)
    }
}

/// The manifests a member's name stands for: a folder, or with `/*` at its end each folder in it.
fn expand(root: &Path, member: &str) -> Result<Vec<String>> {
    let Some(folder) = member.strip_suffix("/*") else {
        return Ok(vec![format!("{member}/Cargo.toml")]);
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(root.join(folder)).with_context(|| format!("cannot list {folder}"))? {
        let entry = entry.with_context(|| format!("cannot list {folder}"))?;
        if entry.path().join("Cargo.toml").is_file() {
            paths.push(format!("{folder}/{}/Cargo.toml", entry.file_name().to_string_lossy()));
        }
    }
    Ok(paths)
}
