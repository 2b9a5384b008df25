//! The latency of one durable event at a time, compared with a plain write and sync.

use super::event_generator::{self, EventGenerator, LateClock};
use super::{BenchOptions, figure, print_figures};
use anyhow::Result;
use engine::rows::Origin;
use node::fetch::hunter::NoSources;
use node::{Node, NodeOptions, WriterCore};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) fn run(options: &BenchOptions) -> Result<()> {
    let count = if options.quick { 500 } else { 5000 };
    let folder = event_generator::create_temp_folder(options.dir.as_deref())?;
    let generator = EventGenerator::new(None)?;
    {
        let core = WriterCore::new(event_generator::open_store(folder.path())?);
        event_generator::store_foundation(&core, &generator)?;
        event_generator::store_messages(&core, &generator, 0, 20_000, |_| ())?;
    }
    let bare = measure_sync(folder.path(), count)?;
    let node = Node::start(
        event_generator::open_store(folder.path())?,
        Arc::new(LateClock),
        Arc::new(NoSources),
        NodeOptions::default(),
    );
    let mut times = Vec::new();
    for raw in generator.messages(20_000, count)? {
        let begun = Instant::now();
        node.ask(node.receive(raw.blob, raw.inline, Origin::Import)?)?;
        times.push(begun.elapsed());
    }
    node.stop();
    let (p50, p99, fsync) =
        (percentile_ms(&mut times, 50), percentile_ms(&mut times, 99), percentile_ms(&mut bare.clone(), 50));
    print_figures(
        "commit",
        &[
            figure("p50_ms", p50, "one event: verified, durable and answered"),
            figure("p99_ms", p99, "the same, 99th percentile"),
            figure("fsync_p50_ms", fsync, "a plain write of 4 KiB with sync"),
            figure("ratio_fsync", p50 / fsync, "ratio of the medians"),
        ],
    )
}

fn percentile_ms(times: &mut [Duration], percent: usize) -> f64 {
    times.sort();
    times.get(times.len() * percent / 100).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

fn measure_sync(folder: &Path, count: u64) -> Result<Vec<Duration>> {
    let mut file = File::create(folder.join("sync"))?;
    let mut times = Vec::new();
    for _ in 0..count {
        let begun = Instant::now();
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    Ok(times)
}
