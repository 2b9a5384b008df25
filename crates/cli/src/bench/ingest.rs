//! Signed events per second: verified, durable and in the views, in batches as the node makes them.

use super::event_generator::{self, EventGenerator, LateClock, RawEvent};
use super::machine::PeakMemory;
use super::{BenchOptions, baseline, figure, print_figures, print_tables};
use anyhow::{Result, ensure};
use engine::rows::{Origin, Outcome};
use node::fetch::hunter::NoSources;
use node::{Node, NodeOptions, WriterCore};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use store::tables::TableReads as _;

struct Measured {
    events_per_s: f64,
    events_per_batch: f64,
    row_bytes: usize,
}

pub(crate) fn run(options: &BenchOptions) -> Result<()> {
    let (base, measured) = if options.quick { (25_000, 25_000) } else { (1_000_000, 100_000) };
    let folder = event_generator::create_temp_folder(options.dir.as_deref())?;
    let generator = EventGenerator::new(None)?;
    let peak = PeakMemory::default();
    let mut next = 0;
    fill(folder.path(), &generator, &mut next, base, &peak)?;
    let raw = generator.messages(next, measured)?;
    let verify_per_s = baseline::verify_per_s(&raw)?;
    let small = measure(folder.path(), raw, &peak)?;
    next += measured;
    let bare_folder = event_generator::create_temp_folder(options.dir.as_deref())?;
    let batch = small.events_per_batch as u64;
    let engine_per_s = baseline::engine_per_s(bare_folder.path(), base, measured, batch, small.row_bytes)?;
    let missing = (10 * base).saturating_sub(next);
    fill(folder.path(), &generator, &mut next, missing, &peak)?;
    let large = measure(folder.path(), generator.messages(next, measured)?, &peak)?;
    let size = event_generator::open_store(folder.path())?.size()?;
    print_tables(&size, next + measured);
    print_figures(
        "ingest",
        &[
            figure("stored", base as f64, "events in the store before measuring"),
            figure("events_per_s", small.events_per_s, "verified, durable and in the views"),
            figure("events_per_s_10x", large.events_per_s, "the same with ten times as many events stored"),
            figure("events_per_batch", small.events_per_batch, "average per commit"),
            figure("verify_per_s", verify_per_s, "strict signature verification alone, on all cores"),
            figure("ratio_verify", small.events_per_s / verify_per_s, "ingest to verification alone"),
            figure("engine_per_s", engine_per_s, "redb alone, writing the same rows"),
            figure("ratio_engine", small.events_per_s / engine_per_s, "ingest to redb alone"),
            figure("slowdown_10x", 1.0 - large.events_per_s / small.events_per_s, "share lost at ten times the size"),
            figure("bytes_per_event", size.used_bytes as f64 / (next + measured) as f64, "of the database, in use"),
            figure("rss_mib", peak.mib(), "peak anonymous memory, including the generated events"),
        ],
    )
}

/// With few events stored, for comparison in other benchmarks.
pub(crate) fn events_per_s(options: &BenchOptions) -> Result<f64> {
    let folder = event_generator::create_temp_folder(options.dir.as_deref())?;
    let generator = EventGenerator::new(None)?;
    let peak = PeakMemory::default();
    let mut next = 0;
    fill(folder.path(), &generator, &mut next, 25_000, &peak)?;
    let measured = measure(folder.path(), generator.messages(next, 50_000)?, &peak)?;
    Ok(measured.events_per_s)
}

fn fill(folder: &Path, generator: &EventGenerator, next: &mut u64, count: u64, peak: &PeakMemory) -> Result<()> {
    let core = WriterCore::new(event_generator::open_store(folder)?);
    if *next == 0 {
        event_generator::store_foundation(&core, generator)?;
    }
    event_generator::store_messages(&core, generator, *next, count, |done| {
        peak.sample();
        if done % (256 * event_generator::CHUNK) == 0 {
            eprintln!("  filled {done} of {count}");
        }
    })?;
    *next += count;
    Ok(())
}

fn measure(folder: &Path, raw: Vec<RawEvent>, peak: &PeakMemory) -> Result<Measured> {
    let node = Node::start(
        event_generator::open_store(folder)?,
        Arc::new(LateClock),
        Arc::new(NoSources),
        NodeOptions::default(),
    );
    let applied = Arc::new(AtomicU64::new(0));
    let count = raw.len() as u64;
    let begun = Instant::now();
    let commits = node.commits();
    std::thread::scope(|scope| {
        for part in raw.chunks(raw.len().div_ceil(2).max(1)) {
            let (node, applied) = (&node, &applied);
            scope.spawn(move || {
                // As an import does.
                node::running::yield_to_writer();
                part.iter().try_for_each(|raw| submit(node, raw, applied))
            });
        }
    });
    node.stop();
    let elapsed = begun.elapsed().as_secs_f64();
    peak.sample();
    let done = applied.load(Ordering::Relaxed);
    ensure!(done == count, "{done} of {count} events were applied");
    let db = node.snapshot()?;
    let row_bytes = match db.tables().events().last()? {
        Some(row) => row.value()?.len(),
        None => 0,
    };
    let batches = (node.commits() - commits).max(1);
    Ok(Measured { events_per_s: count as f64 / elapsed, events_per_batch: count as f64 / batches as f64, row_bytes })
}

fn submit(node: &Node, raw: &RawEvent, applied: &Arc<AtomicU64>) -> Result<()> {
    let request = node.receive(raw.blob.clone(), raw.inline.clone(), Origin::Import)?;
    let applied = applied.clone();
    node.submit_patiently(request, move |answer| {
        if let Ok((_, Outcome::Applied(_))) = answer {
            applied.fetch_add(1, Ordering::Relaxed);
        }
    })?;
    Ok(())
}
