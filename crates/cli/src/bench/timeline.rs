//! Pages of fifty messages, of an open and of a sealed space, idle and while the writer runs at full speed.

use super::event_generator::{self, LateClock, Supply};
use super::machine::Peak;
use super::{Scale, figure, print};
use anyhow::{Context as _, Result};
use engine::reads::Reads as _;
use engine::rows::Origin;
use model::{EventId, Nanos, Seq, Stamp};
use node::fetch::hunter::NoSources;
use node::{Node, NodeOptions, WriterCore};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use store::Store;

const PAGE: usize = 50;

/// Runs it.
pub(crate) fn run(scale: &Scale) -> Result<()> {
    let stored = if scale.quick { 50_000 } else { 1_000_000 };
    let seconds = if scale.quick { 3 } else { 10 };
    let peak = Peak::default();
    let open = event_generator::folder(scale.dir.as_deref())?;
    let supply = Supply::new(None)?;
    fill(open.path(), &supply, stored, &peak)?;
    let store = event_generator::open(open.path())?;
    let idle = read_pages(&store, &supply, stored, &|begun| begun.elapsed() < Duration::from_secs(seconds))?;
    let writing = while_writing(store, &supply, stored, seconds)?;
    drop(open);
    let sealed = event_generator::folder(scale.dir.as_deref())?;
    let supply = Supply::new(Some([8; 32]))?;
    fill(sealed.path(), &supply, stored, &peak)?;
    let store = event_generator::open(sealed.path())?;
    let secret = read_pages(&store, &supply, stored, &|begun| begun.elapsed() < Duration::from_secs(seconds))?;
    print(
        "timeline",
        &[
            figure("stored", stored as f64, "messages in the store"),
            figure("open_pages_per_s", idle.per_s, "pages of 50 of an open space, one thread"),
            figure("sealed_pages_per_s", secret.per_s, "pages of 50 of a sealed space, one thread"),
            figure("p99_us", idle.p99_us, "99th percentile of an open page, idle"),
            figure("p99_us_while_writing", writing.p99_us, "the same while the writer runs at full speed"),
            figure("ratio_writing", writing.p99_us / idle.p99_us, "of the two"),
            figure("rss_mib", peak.mib(), "greatest anonymous memory, the supply included"),
        ],
    )
}

struct Read {
    per_s: f64,
    p99_us: f64,
}

fn fill(folder: &Path, supply: &Supply, count: u64, peak: &Peak) -> Result<()> {
    let core = WriterCore::new(event_generator::open(folder)?);
    event_generator::found(&core, supply)?;
    event_generator::fill(&core, supply, 0, count, |_| peak.look())
}

fn read_pages(store: &Store, supply: &Supply, stored: u64, goes_on: &dyn Fn(Instant) -> bool) -> Result<Read> {
    let mut threads = Vec::new();
    let db = store.snapshot()?;
    for thread in &supply.threads {
        threads.push(db.seq(thread)?.context("a thread is missing")?);
    }
    let mut times = Vec::new();
    let mut number = 12_345_u64;
    let begun = Instant::now();
    while goes_on(begun) {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let thread: Seq = threads[(number >> 33) as usize % threads.len()];
        let message = (number >> 20) % stored;
        let at = Nanos(1_700_000_000_000_000_000 + 1_000_000 + message * 1000);
        let asked = Instant::now();
        let page = store.snapshot()?.timeline(thread, Stamp { at, id: EventId([0xff; 16]) }, PAGE)?;
        std::hint::black_box(page);
        times.push(asked.elapsed());
    }
    let per_s = times.len() as f64 / begun.elapsed().as_secs_f64();
    times.sort();
    let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or_default();
    Ok(Read { per_s, p99_us: p99.as_secs_f64() * 1e6 })
}

/// Reads pages on this thread while another feeds the writer as fast as it takes.
fn while_writing(store: Store, supply: &Supply, stored: u64, seconds: u64) -> Result<Read> {
    let raw = supply.messages(stored, 200_000.min(stored * 2))?;
    let node = Node::start(store, Arc::new(LateClock), Arc::new(NoSources), NodeOptions::default());
    let is_over = AtomicBool::new(false);
    let read = std::thread::scope(|scope| {
        scope.spawn(|| {
            node::running::yield_to_readers();
            for raw in raw {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let request = node.receive(raw.blob, raw.inline, Origin::Import);
                let sent = request.map(|request| node.submit_patiently(request, |_| ()));
                if sent.is_err() {
                    break;
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let limit = Duration::from_secs(seconds);
        let goes_on = |begun: Instant| begun.elapsed() < limit && !is_over.load(Ordering::Relaxed);
        let read = read_pages(node.store(), supply, stored, &goes_on);
        is_over.store(true, Ordering::Relaxed);
        read
    });
    node.stop();
    read
}
