//! `cargo xtask fuzz`: each fuzz target for a while, with `cargo fuzz` on the nightly toolchain.

use crate::process::{output, program, root, run as run_command, succeeds};
use anyhow::{Result, bail, ensure};
use clap::Args;

const SECONDS_DEFAULT: u64 = 30;

/// Run the fuzz targets, each for a while.
#[derive(Args)]
pub(crate) struct Fuzz {
    /// How long each target runs.
    #[arg(long, value_name = "N", default_value_t = SECONDS_DEFAULT)]
    seconds: u64,
    /// The target to run; all of them when absent.
    target: Option<String>,
}

/// Runs the chosen targets in turn and stops at the first that finds something.
pub(crate) fn run(fuzz: &Fuzz) -> Result<()> {
    ensure_available()?;
    // The bare name, not the toolchain's own cargo: only rustup's understands `+nightly`.
    let listed = output(&mut program("cargo", &["+nightly", "fuzz", "list"]))?;
    let seconds = format!("-max_total_time={}", fuzz.seconds);
    for target in chosen(&listed, fuzz.target.as_deref())? {
        run_command(&mut program("cargo", &["+nightly", "fuzz", "run", target, "--", &seconds]))?;
    }
    Ok(())
}

fn ensure_available() -> Result<()> {
    ensure!(
        succeeds(&mut program("cargo", &["+nightly", "--version"])),
        "fuzzing needs the nightly toolchain; install it with `rustup toolchain install nightly`"
    );
    ensure!(
        succeeds(&mut program("cargo", &["+nightly", "fuzz", "--version"])),
        "fuzzing needs cargo-fuzz; install it with `cargo install cargo-fuzz --locked`"
    );
    ensure!(root().join("fuzz/Cargo.toml").exists(), "there are no fuzz targets yet: fuzz/Cargo.toml is missing");
    Ok(())
}

fn chosen<'a>(listed: &'a str, only: Option<&str>) -> Result<Vec<&'a str>> {
    let targets: Vec<&str> = listed.lines().map(str::trim).filter(|target| !target.is_empty()).collect();
    let Some(only) = only else { return Ok(targets) };
    match targets.iter().find(|target| **target == only) {
        Some(target) => Ok(vec![target]),
        None => bail!("there is no fuzz target `{only}`; there are: {}", targets.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::chosen;

    fn check(listed: &str, only: Option<&str>, expected: &str) {
        let answer = match chosen(listed, only) {
            Ok(targets) => targets.join(" "),
            Err(error) => error.to_string(),
        };
        assert_eq!(answer, expected);
    }

    #[test]
    fn targets_are_chosen_by_name() {
        check("envelope\nblob\n", None, "envelope blob");
        check("envelope\nblob\n", Some("blob"), "blob");
        check("envelope\nblob\n", Some("bolb"), "there is no fuzz target `bolb`; there are: envelope, blob");
    }
}
