//! Opening a store after a clean stop, and after the process was killed while it wrote.

use super::event_generator::{self, LateClock, Supply};
use super::machine::Peak;
use super::{Scale, figure, print};
use anyhow::{Context as _, Result, bail};
use node::{Clock as _, WriterCore};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The name under which the benchmark starts itself to be killed.
pub(crate) const WRITER: &str = "open-writer";
/// How many events the process that is killed commits at a time.
const BATCH: u64 = 100;

/// Runs it.
pub(crate) fn run(scale: &Scale) -> Result<()> {
    let stored = if scale.quick { 50_000 } else { 1_000_000 };
    let rounds = if scale.quick { 3 } else { 5 };
    let folder = event_generator::folder(scale.dir.as_deref())?;
    let supply = Supply::new(None)?;
    let peak = Peak::default();
    {
        let core = WriterCore::new(event_generator::open(folder.path())?);
        event_generator::found(&core, &supply)?;
        event_generator::fill(&core, &supply, 0, stored, |_| peak.look())?;
    }
    let clean_ms = (0..rounds).map(|_| open_ms(folder.path())).collect::<Result<Vec<f64>>>()?;
    let mut killed_ms = Vec::new();
    for _ in 0..rounds {
        write_and_kill(folder.path())?;
        killed_ms.push(open_ms(folder.path())?);
    }
    print(
        "open",
        &[
            figure("stored", stored as f64, "messages in the store"),
            figure("clean_ms", greatest(&clean_ms), "to open after a clean stop, the slowest of a few"),
            figure("killed_ms", greatest(&killed_ms), "to open after kill -9 while writing, the slowest of a few"),
            figure("rss_mib", peak.mib(), "greatest anonymous memory, the supply included"),
        ],
    )
}

fn greatest(times: &[f64]) -> f64 {
    times.iter().copied().fold(0.0, f64::max)
}

fn open_ms(folder: &Path) -> Result<f64> {
    let begun = Instant::now();
    let store = event_generator::open(folder)?;
    store.snapshot()?.position()?;
    Ok(begun.elapsed().as_secs_f64() * 1e3)
}

/// Starts a process that writes, and kills it in the middle.
fn write_and_kill(folder: &Path) -> Result<()> {
    let program = std::env::current_exe().context("this program has no path")?;
    let mut child = Command::new(program)
        .args(["bench", WRITER, "--dir"])
        .arg(folder)
        .stdout(Stdio::piped())
        .spawn()
        .context("the writing process did not start")?;
    let output = child.stdout.take().context("the writing process has no output")?;
    let mut lines = BufReader::new(output).lines();
    for _ in 0..5 {
        if lines.next().is_none() {
            bail!("the writing process ended by itself");
        }
    }
    child.kill()?;
    child.wait()?;
    Ok(())
}

/// Writes until it is killed; each line names the events of a commit, after the commit.
pub(crate) fn write_for_ever(folder: &Path) -> Result<()> {
    let supply = Supply::new(None)?;
    let core = WriterCore::new(event_generator::open(folder)?);
    event_generator::found(&core, &supply)?;
    let mut at = 1_000_000_000 + u64::from(std::process::id()) * 1_000_000;
    loop {
        let requests = event_generator::check(core.store(), supply.messages(at, BATCH)?)?;
        let done = core.run(requests, LateClock.now())?;
        at += BATCH;
        let ids = done.answers.iter().flatten().map(|(id, _)| id.to_string());
        println!("{}", ids.collect::<Vec<_>>().join(" "));
        std::io::stdout().flush()?;
    }
}
