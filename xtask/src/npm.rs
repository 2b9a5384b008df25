//! The npm packages that tests need, in a folder of their own in the target folder.

use crate::process::{program, run, target};
use anyhow::Result;
use std::path::PathBuf;

/// Exactly these, so that a test tells of a change of ours and not of theirs.
const PACKAGES: [&str; 4] =
    ["openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3", "tus-js-client@4.3.1"];

/// Installs them, unless they are there.
pub(crate) fn install_missing() -> Result<()> {
    let folder = folder();
    let marker = folder.join("installed");
    if std::fs::read_to_string(&marker).is_ok_and(|installed| installed == PACKAGES.join("\n")) {
        return Ok(());
    }
    std::fs::create_dir_all(&folder)?;
    // Programs that are compiled there are modules.
    std::fs::write(folder.join("package.json"), "{\"private\": true, \"type\": \"module\"}\n")?;
    let prefix = folder.to_string_lossy();
    let install =
        [&["install", "--silent", "--no-fund", "--no-audit", "--prefix", &*prefix], PACKAGES.as_slice()].concat();
    run(&mut program("npm", &install))?;
    std::fs::write(marker, PACKAGES.join("\n"))?;
    Ok(())
}

/// Beside the folder of the profile, where the tests look for it.
fn folder() -> PathBuf {
    target().join("node")
}
