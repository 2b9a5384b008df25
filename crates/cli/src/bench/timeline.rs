//! Reading pages of 50 messages, of an open and of a sealed space, idle and while the writer runs at full speed.

use super::event_generator::{self, EventGenerator, LateClock};
use super::machine::PeakMemory;
use super::{BenchOptions, figure, print_figures};
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

const PAGE_MESSAGES: usize = 50;

pub(crate) fn run(options: &BenchOptions) -> Result<()> {
    let stored = if options.quick { 50_000 } else { 1_000_000 };
    let seconds = if options.quick { 3 } else { 10 };
    let peak = PeakMemory::default();
    let open = event_generator::create_temp_folder(options.dir.as_deref())?;
    let generator = EventGenerator::new(None)?;
    fill(open.path(), &generator, stored, &peak)?;
    let store = event_generator::open_store(open.path())?;
    let idle = read_pages(&store, &generator, stored, &|begun| begun.elapsed() < Duration::from_secs(seconds))?;
    let writing = read_while_writing(store, &generator, stored, seconds)?;
    drop(open);
    let sealed = event_generator::create_temp_folder(options.dir.as_deref())?;
    let generator = EventGenerator::new(Some([8; 32]))?;
    fill(sealed.path(), &generator, stored, &peak)?;
    let store = event_generator::open_store(sealed.path())?;
    let secret = read_pages(&store, &generator, stored, &|begun| begun.elapsed() < Duration::from_secs(seconds))?;
    print_figures(
        "timeline",
        &[
            figure("stored", stored as f64, "stored messages"),
            figure("open_pages_per_s", idle.per_s, "pages of 50 of an open space, one thread"),
            figure("sealed_pages_per_s", secret.per_s, "pages of 50 of a sealed space, one thread"),
            figure("p99_us", idle.p99_us, "99th percentile of an open page, idle"),
            figure("p99_us_while_writing", writing.p99_us, "the same while the writer runs at full speed"),
            figure("ratio_writing", writing.p99_us / idle.p99_us, "ratio of the two"),
            figure("rss_mib", peak.mib(), "peak anonymous memory, including the generated events"),
        ],
    )
}

struct ReadRate {
    per_s: f64,
    p99_us: f64,
}

fn fill(folder: &Path, generator: &EventGenerator, count: u64, peak: &PeakMemory) -> Result<()> {
    let core = WriterCore::new(event_generator::open_store(folder)?);
    event_generator::store_foundation(&core, generator)?;
    event_generator::store_messages(&core, generator, 0, count, |_| peak.sample())
}

fn read_pages(
    store: &Store,
    generator: &EventGenerator,
    stored: u64,
    goes_on: &dyn Fn(Instant) -> bool,
) -> Result<ReadRate> {
    let mut threads = Vec::new();
    let db = store.snapshot()?;
    for thread in &generator.threads {
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
        let page = store.snapshot()?.timeline(thread, Stamp { at, id: EventId([0xff; 16]) }, PAGE_MESSAGES)?;
        std::hint::black_box(page);
        times.push(asked.elapsed());
    }
    let per_s = times.len() as f64 / begun.elapsed().as_secs_f64();
    times.sort();
    let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or_default();
    Ok(ReadRate { per_s, p99_us: p99.as_secs_f64() * 1e6 })
}

/// Reads pages on this thread while another one writes as fast as possible.
fn read_while_writing(store: Store, generator: &EventGenerator, stored: u64, seconds: u64) -> Result<ReadRate> {
    let raw = generator.messages(stored, 200_000.min(stored * 2))?;
    let node = Node::start(store, Arc::new(LateClock), Arc::new(NoSources), NodeOptions::default());
    let is_over = AtomicBool::new(false);
    let read = std::thread::scope(|scope| {
        scope.spawn(|| {
            node::running::yield_to_writer();
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
        let read = read_pages(node.store(), generator, stored, &goes_on);
        is_over.store(true, Ordering::Relaxed);
        read
    });
    node.stop();
    read
}
