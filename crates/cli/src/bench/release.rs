//! Releasing a great many held events, their view rows included.

use super::event_generator::{self, LateClock, Raw, Supply};
use super::machine::Peak;
use super::{Scale, figure, print};
use anyhow::{Result, ensure};
use engine::reads::Reads as _;
use node::node_commands::Tick;
use node::{Clock as _, WriterCore};
use std::time::Instant;

/// Runs it: the threads are withheld, messages wait for them, then the threads come.
pub(crate) fn run(scale: &Scale) -> Result<()> {
    let held = if scale.quick { 50_000 } else { 1_000_000 };
    let folder = event_generator::folder(scale.dir.as_deref())?;
    let mut supply = Supply::new(None)?;
    let threads: Vec<Raw> = supply.foundation.split_off(supply.foundation.len() - supply.threads.len());
    let core = WriterCore::new(event_generator::open(folder.path())?);
    let peak = Peak::default();
    event_generator::found(&core, &supply)?;
    let begun = Instant::now();
    event_generator::fill(&core, &supply, 0, held, |_| peak.look())?;
    let hold_us = begun.elapsed().as_secs_f64() * 1e6 / held as f64;
    let waiting = core.store().snapshot()?.held_total()?;
    ensure!(waiting == held, "{waiting} of {held} events are held");
    let requests = event_generator::check(core.store(), threads)?;
    let begun = Instant::now();
    let mut has_more = core.run(requests, LateClock.now())?.has_more;
    while has_more {
        has_more = core.run(vec![Tick], LateClock.now())?.has_more;
        peak.look();
    }
    let elapsed = begun.elapsed().as_secs_f64();
    let left = core.store().snapshot()?.held_total()?;
    ensure!(left == 0, "{left} events are still held");
    print(
        "release",
        &[
            figure("held", held as f64, "events that waited"),
            figure("hold_us", hold_us, "to sign, check and hold one"),
            figure("release_us", elapsed * 1e6 / held as f64, "to release and apply one, view rows included"),
            figure("rss_mib", peak.mib(), "greatest anonymous memory, the supply included"),
        ],
    )
}
