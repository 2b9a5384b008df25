//! Releasing many held events, including their view rows.

use super::event_generator::{self, EventGenerator, LateClock, RawEvent};
use super::machine::PeakMemory;
use super::{BenchOptions, figure, print_figures};
use anyhow::{Result, ensure};
use engine::reads::Reads as _;
use node::node_commands::Tick;
use node::{Clock as _, WriterCore};
use std::time::Instant;

/// Messages are stored before their threads, so they are held; then the threads arrive.
pub(crate) fn run(options: &BenchOptions) -> Result<()> {
    let held = if options.quick { 50_000 } else { 1_000_000 };
    let folder = event_generator::create_temp_folder(options.dir.as_deref())?;
    let mut generator = EventGenerator::new(None)?;
    let threads: Vec<RawEvent> = generator.foundation.split_off(generator.foundation.len() - generator.threads.len());
    let core = WriterCore::new(event_generator::open_store(folder.path())?);
    let peak = PeakMemory::default();
    event_generator::store_foundation(&core, &generator)?;
    let begun = Instant::now();
    event_generator::store_messages(&core, &generator, 0, held, |_| peak.sample())?;
    let hold_us = begun.elapsed().as_secs_f64() * 1e6 / held as f64;
    let waiting = core.store().snapshot()?.held_total()?;
    ensure!(waiting == held, "{waiting} of {held} events are held");
    let requests = event_generator::verify_all(core.store(), threads)?;
    let begun = Instant::now();
    let mut has_more = core.run(requests, LateClock.now())?.has_more;
    while has_more {
        has_more = core.run(vec![Tick], LateClock.now())?.has_more;
        peak.sample();
    }
    let elapsed = begun.elapsed().as_secs_f64();
    let left = core.store().snapshot()?.held_total()?;
    ensure!(left == 0, "{left} events are still held");
    print_figures(
        "release",
        &[
            figure("held", held as f64, "held events"),
            figure("hold_us", hold_us, "to sign, verify and hold one event"),
            figure(
                "release_us",
                elapsed * 1e6 / held as f64,
                "to release and apply one event, including its view rows",
            ),
            figure("rss_mib", peak.mib(), "peak anonymous memory, including the generated events"),
        ],
    )
}
