//! `cargo xtask bench`: the benchmarks of the release binary, each in a process of its own.

use crate::packages;
use crate::process::{cargo, program, root, run as run_command};
use anyhow::Result;
use clap::Args;
use std::path::{Path, PathBuf};

const BENCHES: [&str; 13] = [
    "ingest", "release", "timeline", "open", "commit", "http", "overload", "live", "web", "relay", "git", "hunt",
    "files",
];
/// Benchmarks beside other programs, which are installed for them.
const WITH_PACKAGES: [&str; 4] = ["web", "git", "hunt", "files"];

/// Build the release binary and run one benchmark, or all of them in turn.
#[derive(Args)]
pub(crate) struct Bench {
    /// The benchmark to run; all of them when absent.
    #[arg(value_parser = BENCHES)]
    name: Option<String>,
    /// Run a small version, to see that it works rather than how fast it is.
    #[arg(long)]
    quick: bool,
}

/// Builds once, then starts the binary anew for each benchmark so that none warms the next one's caches.
pub(crate) fn run(bench: &Bench) -> Result<()> {
    run_command(&mut cargo(&["build", "--release", "-p", "anteroom-cli"]))?;
    if bench.name.as_deref().is_none_or(|only| WITH_PACKAGES.contains(&only)) {
        packages::install_missing()?;
    }
    let binary = binary();
    for name in BENCHES.into_iter().filter(|name| bench.name.as_deref().is_none_or(|only| only == *name)) {
        let mut command = program(&binary.to_string_lossy(), &["bench", name]);
        run_command(command.args(bench.quick.then_some("--quick")))?;
    }
    Ok(())
}

fn binary() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let name = format!("anteroom{}", std::env::consts::EXE_SUFFIX);
    root().join(Path::new(&target)).join("release").join(name)
}
