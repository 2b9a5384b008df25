//! One durable event at a time, against a bare sync of the same disk.

use super::event_generator::{self, LateClock, Supply};
use super::{Scale, figure, print};
use anyhow::Result;
use engine::rows::Origin;
use node::fetch::hunter::NoSources;
use node::{Node, NodeOptions, WriterCore};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs it.
pub(crate) fn run(scale: &Scale) -> Result<()> {
    let count = if scale.quick { 500 } else { 5000 };
    let folder = event_generator::folder(scale.dir.as_deref())?;
    let supply = Supply::new(None)?;
    {
        let core = WriterCore::new(event_generator::open(folder.path())?);
        event_generator::found(&core, &supply)?;
        event_generator::fill(&core, &supply, 0, 20_000, |_| ())?;
    }
    let bare = sync_times(folder.path(), count)?;
    let node = Node::start(
        event_generator::open(folder.path())?,
        Arc::new(LateClock),
        Arc::new(NoSources),
        NodeOptions::default(),
    );
    let mut times = Vec::new();
    for raw in supply.messages(20_000, count)? {
        let begun = Instant::now();
        node.ask(node.receive(raw.blob, raw.inline, Origin::Import)?)?;
        times.push(begun.elapsed());
    }
    node.stop();
    let (p50, p99, fsync) = (part(&mut times, 50), part(&mut times, 99), part(&mut bare.clone(), 50));
    print(
        "commit",
        &[
            figure("p50_ms", p50, "one event, checked, durable and answered"),
            figure("p99_ms", p99, "the same, 99th percentile"),
            figure("fsync_p50_ms", fsync, "a bare write of 4 KiB and its sync"),
            figure("ratio_fsync", p50 / fsync, "of the medians"),
        ],
    )
}

fn part(times: &mut [Duration], percent: usize) -> f64 {
    times.sort();
    times.get(times.len() * percent / 100).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

fn sync_times(folder: &Path, count: u64) -> Result<Vec<Duration>> {
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
