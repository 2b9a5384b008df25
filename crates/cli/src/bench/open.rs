//! Opening the database after a clean stop, and after the process was killed while writing.

use super::event_generator::{self, EventGenerator, LateClock};
use super::machine::PeakMemory;
use super::{BenchOptions, figure, print_figures};
use anyhow::{Context as _, Result, bail};
use node::{Clock as _, WriterCore};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The benchmark starts itself under this name, and kills that process.
pub(crate) const WRITER: &str = "open-writer";
/// Events per commit of the killed process.
const BATCH: u64 = 100;

pub(crate) fn run(options: &BenchOptions) -> Result<()> {
    let stored = if options.quick { 50_000 } else { 1_000_000 };
    let rounds = if options.quick { 3 } else { 5 };
    let folder = event_generator::create_temp_folder(options.dir.as_deref())?;
    let generator = EventGenerator::new(None)?;
    let peak = PeakMemory::default();
    {
        let core = WriterCore::new(event_generator::open_store(folder.path())?);
        event_generator::store_foundation(&core, &generator)?;
        event_generator::store_messages(&core, &generator, 0, stored, |_| peak.sample())?;
    }
    let clean_ms = (0..rounds).map(|_| open_ms(folder.path())).collect::<Result<Vec<f64>>>()?;
    let mut killed_ms = Vec::new();
    for _ in 0..rounds {
        write_and_kill(folder.path())?;
        killed_ms.push(open_ms(folder.path())?);
    }
    print_figures(
        "open",
        &[
            figure("stored", stored as f64, "stored messages"),
            figure("clean_ms", max(&clean_ms), "time to open after a clean stop, slowest round"),
            figure("killed_ms", max(&killed_ms), "time to open after kill -9 while writing, slowest round"),
            figure("rss_mib", peak.mib(), "peak anonymous memory, including the generated events"),
        ],
    )
}

fn max(times: &[f64]) -> f64 {
    times.iter().copied().fold(0.0, f64::max)
}

fn open_ms(folder: &Path) -> Result<f64> {
    let begun = Instant::now();
    let store = event_generator::open_store(folder)?;
    store.snapshot()?.position()?;
    Ok(begun.elapsed().as_secs_f64() * 1e3)
}

/// Starts a process that writes, and kills it after a few commits.
fn write_and_kill(folder: &Path) -> Result<()> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
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
            bail!("the writing process ended unexpectedly");
        }
    }
    child.kill()?;
    child.wait()?;
    Ok(())
}

/// Prints the event ids of each commit as one line, after the commit.
pub(crate) fn write_until_killed(folder: &Path) -> Result<()> {
    let generator = EventGenerator::new(None)?;
    let core = WriterCore::new(event_generator::open_store(folder)?);
    event_generator::store_foundation(&core, &generator)?;
    let mut at = 1_000_000_000 + u64::from(std::process::id()) * 1_000_000;
    loop {
        let requests = event_generator::verify_all(core.store(), generator.messages(at, BATCH)?)?;
        let done = core.run(requests, LateClock.now())?;
        at += BATCH;
        let ids = done.answers.iter().flatten().map(|(id, _)| id.to_string());
        println!("{}", ids.collect::<Vec<_>>().join(" "));
        std::io::stdout().flush()?;
    }
}
