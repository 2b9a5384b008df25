//! The Python packages that tests need, in an environment of their own in the target folder.

use crate::process::{program, run, target};
use anyhow::Result;
use std::path::PathBuf;

/// Exactly these, so that a test tells of a change of ours and not of theirs.
const PACKAGES: [&str; 5] = [
    "progressdb==0.1.5",
    "schemathesis==4.32.5",
    "openapi-spec-validator==0.9.0",
    "openapi-python-client==0.29.1",
    "moto[s3,server]==5.2.5",
];

/// A second release of one of them, in a folder of its own.
const SECOND_RELEASE: &str = "progressdb==0.2.0";

/// Installs them, unless they are there.
pub(crate) fn install_missing() -> Result<()> {
    let folder = folder();
    let (python, marker) = (folder.join("bin/python"), folder.join("installed"));
    let wanted = format!("{}\n{SECOND_RELEASE}", PACKAGES.join("\n"));
    if std::fs::read_to_string(&marker).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    run(&mut program("python3", &["-m", "venv", &folder.to_string_lossy()]))?;
    let install = [&["-m", "pip", "install", "--quiet", "--disable-pip-version-check"], PACKAGES.as_slice()].concat();
    run(&mut program(&python.to_string_lossy(), &install))?;
    let second = folder.join(SECOND_RELEASE.replace("==", "-"));
    let second = ["--no-deps", "--upgrade", "--target", &second.to_string_lossy(), SECOND_RELEASE].map(str::to_owned);
    let mut install = program(&python.to_string_lossy(), &install[..5]);
    run(install.args(second))?;
    std::fs::write(marker, wanted)?;
    Ok(())
}

/// Beside the folder of the profile, where the tests look for it.
fn folder() -> PathBuf {
    target().join("python")
}
