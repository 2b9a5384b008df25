//! `cargo xtask clients`: clients that other people write, played against the node.

use crate::process::{cargo, run as run_command, target};
use anyhow::{Context as _, Result};
use clap::Args;
use std::path::{Path, PathBuf};

/// The client, and the version of it.
const NGIT: &str = "ngit";
const VERSION: &str = "3.0.4";
/// A version in its lock file that cannot be had everywhere, and the one before it.
const STEPPED_BACK: (&str, &str) = ("webpki-roots@1.0.11", "1.0.10");

/// Install the `ngit` client, and play a story with it against the node.
#[derive(Args)]
pub(crate) struct Clients {}

pub(crate) fn run(_: &Clients) -> Result<()> {
    let folder = target().join("clients");
    let marker = folder.join("installed");
    if !std::fs::read_to_string(&marker).is_ok_and(|installed| installed == VERSION) {
        install(&folder)?;
        std::fs::write(&marker, VERSION)?;
    }
    let mut tests = cargo(&["test", "--workspace", "--test", "ngit"]);
    run_command(tests.env("CLIENTS_FOLDER", folder.join("bin")))
}

fn install(folder: &Path) -> Result<()> {
    // To be told of a package is to have it fetched.
    run_command(&mut cargo(&["info", "--quiet", &format!("{NGIT}@{VERSION}")]))?;
    let source = folder.join("source");
    if source.exists() {
        std::fs::remove_dir_all(&source)?;
    }
    copy(&fetched_package()?, &source)?;
    let manifest = source.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest)?;
    if !text.contains("[workspace]") {
        std::fs::write(&manifest, text + "\n[workspace]\n")?;
    }
    let (package, version) = STEPPED_BACK;
    run_command(cargo(&["update", package, "--precise", version, "--manifest-path"]).arg(&manifest))?;
    let mut install = cargo(&["install", "--locked", "--debug"]);
    install.arg("--path").arg(&source).arg("--root").arg(folder).arg("--target-dir").arg(folder.join("target"));
    run_command(&mut install)
}

/// Where cargo keeps the sources of the package.
fn fetched_package() -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let sources = home.context("cargo has no folder")?.join("registry/src");
    let registries = std::fs::read_dir(&sources).with_context(|| format!("there is no {}", sources.display()))?;
    let mut found = registries.flatten().map(|registry| registry.path().join(format!("{NGIT}-{VERSION}")));
    found.find(|package| package.exists()).context("cargo did not fetch the package")
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
