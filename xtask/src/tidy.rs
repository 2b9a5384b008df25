//! `cargo xtask tidy`: the rules of this repository that no compiler checks.
//!
//! The tree is read once: manifests with a TOML reader, sources as text whose strings and comments the [`scanner`] has
//! blanked out. Each check is a file here that takes what was read and answers with violations; none of them reads or
//! writes a file itself, so that each is tested with short texts.

mod arms;
mod calls;
mod dependencies;
mod lengths;
mod lints;
mod module_docs;
mod modules;
mod options;
mod ratchet;
mod retired_names;
mod routes;
mod scanner;
mod search;
mod source;
mod tolerated;
mod type_names;
mod words;
mod workspace;

use crate::process::{Failed, root};
use anyhow::{Context, Result};
use clap::Args;
use source::Source;
use std::fmt;
use std::path::Path;
use workspace::Workspace;

/// Check what no compiler checks: dependency direction, forbidden calls, lengths, unread options, words.
#[derive(Args, Default)]
pub(crate) struct Tidy {
    /// Rewrite the list of what is still too long. Listed numbers only ever fall; new entries are announced.
    #[arg(long)]
    write_ratchet: bool,
    /// Rewrite the list of allowed arrows between the modules of a library. A cycle is refused.
    #[arg(long)]
    write_arrows: bool,
}

/// A broken rule: where, what, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    path: String,
    line: usize,
    what: String,
}

impl Violation {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Violation { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Prints every violation in the tree, and fails if there is any.
pub(crate) fn run(tidy: &Tidy) -> Result<()> {
    let root = root();
    let sources = source::load(&root)?;
    if tidy.write_ratchet {
        write_ratchet(&root, &sources)?;
    }
    if tidy.write_arrows {
        write_arrows(&root, &sources)?;
    }
    report(&violations(&root, &sources)?)
}

fn report(violations: &[Violation]) -> Result<()> {
    for violation in violations {
        println!("{violation}");
    }
    match violations.len() {
        0 => Ok(()),
        1 => Err(Failed { what: "tidy found 1 violation".to_owned(), code: 1 }.into()),
        count => Err(Failed { what: format!("tidy found {count} violations"), code: 1 }.into()),
    }
}

fn violations(root: &Path, sources: &[Source]) -> Result<Vec<Violation>> {
    let workspace = Workspace::load(root)?;
    let mut violations = dependencies::check(&workspace);
    violations.extend(lints::check(&workspace));
    violations.extend(sources.iter().flat_map(module_docs::check));
    violations.extend(sources.iter().flat_map(calls::check));
    violations.extend(ratchet::check(&lengths::over_aim(sources), &read_list(root, ratchet::PATH)?));
    violations.extend(modules::check(
        sources,
        &read_list(root, modules::PATH)?,
        &read_list(root, modules::CYCLES_PATH)?,
    ));
    violations.extend(type_names::check(sources, &read_list(root, type_names::PATH)?));
    violations.extend(routes::check(sources, &read_list(root, routes::PATH)?));
    if retired_names::IS_CHECKED {
        violations.extend(sources.iter().flat_map(retired_names::check));
    }
    violations.extend(arms::check(sources, &read_list(root, arms::PATH)?));
    violations.extend(options::check(sources));
    violations.extend(words::load(root)?.iter().flat_map(|(path, text)| words::check(path, text)));
    violations.sort();
    Ok(violations)
}

fn write_ratchet(root: &Path, sources: &[Source]) -> Result<()> {
    let (text, news) = ratchet::rewrite(&lengths::over_aim(sources), &read_list(root, ratchet::PATH)?);
    for line in news {
        println!("{line}");
    }
    write_list(root, ratchet::PATH, &text)
}

fn write_arrows(root: &Path, sources: &[Source]) -> Result<()> {
    match modules::rewrite(sources, &read_list(root, modules::CYCLES_PATH)?) {
        Ok(text) => write_list(root, modules::PATH, &text),
        Err(cycles) => report(&cycles).with_context(|| format!("{} is left as it is", modules::PATH)),
    }
}

/// The text of a list; a list that is not there is empty.
fn read_list(root: &Path, path: &str) -> Result<String> {
    match std::fs::read_to_string(root.join(path)) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {path}")),
    }
}

fn write_list(root: &Path, path: &str, text: &str) -> Result<()> {
    let path = root.join(path);
    let folder = path.parent().context("a list lies in a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::Violation;

    /// Compares violations with their text, one a line; the helper behind each check's own `check`.
    #[track_caller]
    pub(crate) fn assert_violations(found: &[Violation], expected: &[&str]) {
        let found: Vec<String> = found.iter().map(Violation::to_string).collect();
        assert_eq!(found, expected);
    }
}
