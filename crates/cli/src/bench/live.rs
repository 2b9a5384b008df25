//! Live streams: the memory of idle streams, and how much 1,000 busy streams slow down posting.
//!
//! The node is a separate process of this program, so that its memory can be measured alone. The clients share the
//! machine's cores with it. Memory is measured after each idle stream has received a keep-alive. Then many streams listen to
//! one thread with a steady rate of messages, while other connections post to other threads as fast as they can.

mod stream_reader;

use self::stream_reader::{DeliveryCount, StreamReader};
use super::child_node::ChildNode;
use super::http::{Load, fetch, message_poster, request, run_load};
use super::{BenchOptions, figure, print_figures};
use crate::open_file_limit;
use anyhow::{Context as _, Result, ensure};
use http::Method;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connections that are opened concurrently.
const CONCURRENT_OPENS: usize = 50;
/// Connections that post to other threads.
const WRITERS: usize = 64;
const MESSAGES_PER_SECOND: u32 = 20;
const THREAD: &str = "live";
/// For the last messages, after the load has ended.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// The result of the run with busy streams.
struct BusyRun {
    ingest: Load,
    sent: u64,
    counted: DeliveryCount,
}

pub(crate) fn run(options: &BenchOptions) -> Result<()> {
    let (idle, subscribers, seconds) = if options.quick { (1_000, 100, 5) } else { (10_000, 1_000, 20) };
    let files = open_file_limit::raise_open_file_limit();
    ensure!(files.is_none_or(|files| files > idle as u64 + 100), "{idle} connections need more open files");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut node = ChildNode::start(options, &[])?;
    let key = runtime.block_on(prepare(&node))?;
    let kib_per_idle = runtime.block_on(measure_idle_memory(&node, &key, idle))?;
    let time = Duration::from_secs(seconds);
    let alone = |time| runtime.block_on(run_load(node.address, WRITERS, time, Arc::new(message_poster(key.clone()))));
    alone(time / 4)?;
    let before = alone(time)?;
    let busy = runtime.block_on(run_busy_streams(node.address, &key, subscribers, time))?;
    let after = alone(time)?;
    node.stop()?;
    let ingest_alone = (before.per_s + after.per_s) / 2.0;
    let expected = busy.sent * subscribers as u64;
    print_figures(
        "live",
        &[
            figure("idle", idle as f64, "idle streams"),
            figure("kib_per_idle", kib_per_idle, "anonymous memory of the node per idle stream, in KiB"),
            figure("subscribers", subscribers as f64, "streams on one thread"),
            figure("messages", busy.sent as f64, "messages in that thread, 20 per second"),
            figure("delivered", busy.counted.delivered as f64, "delivered messages over all streams"),
            figure("missing", expected.saturating_sub(busy.counted.delivered) as f64, "messages not delivered"),
            figure("delivery_p50_ms", busy.counted.percentile_ms(50), "from posting to delivery, median"),
            figure("delivery_p99_ms", busy.counted.percentile_ms(99), "the same, 99th percentile"),
            figure("ingest_alone_per_s", ingest_alone, "durable posts to other threads, without streams"),
            figure("ingest_with_live_per_s", busy.ingest.per_s, "the same while the streams are served"),
            figure("ingest_lost", 1.0 - busy.ingest.per_s / ingest_alone, "share lost"),
        ],
    )
}

/// Creates an API key and the thread for the streams.
async fn prepare(node: &ChildNode) -> Result<String> {
    let mut asked = request(Method::POST, "/admin/api-keys", "", 0, "{\"role\":\"backend\"}".to_owned())?;
    asked.headers_mut().clear();
    asked.headers_mut().insert("content-type", "application/json".parse()?);
    asked.headers_mut().insert("authorization", format!("Bearer {}", node.token).parse()?);
    asked.headers_mut().insert("host", "localhost".parse()?);
    let made: serde_json::Value = serde_json::from_slice(&fetch(node.address, asked).await?)?;
    let key = made["key"].as_str().context("the node made no key")?.to_owned();
    post_message(node.address, &key, "begins").await?;
    Ok(key)
}

async fn post_message(address: SocketAddr, key: &str, text: &str) -> Result<()> {
    let path = format!("/v1/threads/{THREAD}/messages");
    let body = serde_json::json!({ "body": { "text": text } }).to_string();
    fetch(address, request(Method::POST, &path, key, 0, body)?).await?;
    Ok(())
}

/// Opens streams, waits for a keep-alive on each, and returns the memory per stream in KiB.
async fn measure_idle_memory(node: &ChildNode, key: &str, idle: usize) -> Result<f64> {
    // The first connections allocate memory that later ones share, so they are not measured.
    drop(open_streams(node.address, key, "", CONCURRENT_OPENS).await?);
    let before = node.anonymous_kib()?;
    let mut readers = open_streams(node.address, key, "", idle).await?;
    for reader in &mut readers {
        reader.wait_for_keep_alive().await?;
    }
    let after = node.anonymous_kib()?;
    Ok(after.saturating_sub(before) as f64 / idle as f64)
}

async fn open_streams(address: SocketAddr, key: &str, query: &str, count: usize) -> Result<Vec<StreamReader>> {
    let mut readers = Vec::with_capacity(count);
    while readers.len() < count {
        let some = readers.len()..(readers.len() + CONCURRENT_OPENS).min(count);
        let opening: Vec<_> = some
            .map(|user| tokio::spawn(StreamReader::open(address, key.to_owned(), query.to_owned(), user)))
            .collect();
        for reader in opening {
            readers.push(reader.await??);
        }
    }
    Ok(readers)
}

/// Runs streams, steady messages and other posts at the same time.
async fn run_busy_streams(address: SocketAddr, key: &str, subscribers: usize, time: Duration) -> Result<BusyRun> {
    let readers = open_streams(address, key, &format!("?thread={THREAD}"), subscribers).await?;
    let begun = Instant::now();
    let messages = time.as_secs() * u64::from(MESSAGES_PER_SECOND);
    let reading: Vec<_> = readers
        .into_iter()
        .map(|reader| tokio::spawn(reader.count_messages(begun, messages, time + DELIVERY_TIMEOUT)))
        .collect();
    let writing = tokio::spawn(run_load(address, WRITERS, time, Arc::new(message_poster(key.to_owned()))));
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / MESSAGES_PER_SECOND);
    for _ in 0..messages {
        ticks.tick().await;
        post_message(address, key, &format!("{}{:012}", stream_reader::MARK, begun.elapsed().as_micros())).await?;
    }
    let ingest = writing.await??;
    let mut counted = DeliveryCount::default();
    for reader in reading {
        counted.add(reader.await??);
    }
    counted.sort();
    Ok(BusyRun { ingest, sent: messages, counted })
}
