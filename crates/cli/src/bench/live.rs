//! Live streams: what an idle one costs the node, and what a thousand busy ones cost those who write.
//!
//! The node is this program in a process of its own, so that its memory is only its own. The clients share the machine's
//! cores with it. Idle streams are counted after each has shown that it lives once more. Then a thread is listened to by
//! many while messages come at a steady rate, and others write elsewhere as fast as they can.

mod child_node;
mod stream_reader;

use self::child_node::ChildNode;
use self::stream_reader::{Counted, Reader};
use super::http::{Load, loaded, one, poster, request};
use super::{Scale, figure, print};
use crate::open_file_limit;
use anyhow::{Context as _, Result, ensure};
use http::Method;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connections that are being opened at the same time.
const OPENING: usize = 50;
/// Connections that write elsewhere.
const WRITERS: usize = 64;
const MESSAGES_PER_SECOND: u32 = 20;
const THREAD: &str = "live";
/// How long the last messages may take to arrive after the load has ended.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the streams and those who write came to.
struct Busy {
    ingest: Load,
    sent: u64,
    counted: Counted,
}

/// Runs it.
pub(crate) fn run(scale: &Scale) -> Result<()> {
    let (idle, subscribers, seconds) = if scale.quick { (1_000, 100, 5) } else { (10_000, 1_000, 20) };
    let files = open_file_limit::raise();
    ensure!(files.is_none_or(|files| files > idle as u64 + 100), "{idle} connections need more open files");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut node = ChildNode::start(scale)?;
    let key = runtime.block_on(prepare(&node))?;
    let kib_per_idle = runtime.block_on(idle_memory(&node, &key, idle))?;
    let time = Duration::from_secs(seconds);
    let alone = |time| runtime.block_on(loaded(node.address, WRITERS, time, Arc::new(poster(key.clone()))));
    alone(time / 4)?;
    let before = alone(time)?;
    let busy = runtime.block_on(busy(node.address, &key, subscribers, time))?;
    let after = alone(time)?;
    node.stop()?;
    let ingest_alone = (before.per_s + after.per_s) / 2.0;
    let expected = busy.sent * subscribers as u64;
    print(
        "live",
        &[
            figure("idle", idle as f64, "streams on which nothing happens"),
            figure("kib_per_idle", kib_per_idle, "anonymous memory of the node for each, in KiB"),
            figure("subscribers", subscribers as f64, "streams of one thread"),
            figure("messages", busy.sent as f64, "messages in that thread, at 20 a second"),
            figure("delivered", busy.counted.delivered as f64, "messages that arrived, over all streams"),
            figure("missing", expected.saturating_sub(busy.counted.delivered) as f64, "messages that did not"),
            figure("delivery_p50_ms", busy.counted.percentile_ms(50), "from posting to arriving, half of them"),
            figure("delivery_p99_ms", busy.counted.percentile_ms(99), "the 99th percentile"),
            figure("ingest_alone_per_s", ingest_alone, "durable posts elsewhere, without streams"),
            figure("ingest_with_live_per_s", busy.ingest.per_s, "the same while the streams are served"),
            figure("ingest_lost", 1.0 - busy.ingest.per_s / ingest_alone, "part lost"),
        ],
    )
}

/// Makes a key, and the thread that is listened to.
async fn prepare(node: &ChildNode) -> Result<String> {
    let mut asked = request(Method::POST, "/admin/api-keys", "", 0, "{\"role\":\"backend\"}".to_owned())?;
    asked.headers_mut().clear();
    asked.headers_mut().insert("content-type", "application/json".parse()?);
    asked.headers_mut().insert("authorization", format!("Bearer {}", node.token).parse()?);
    asked.headers_mut().insert("host", "localhost".parse()?);
    let made: serde_json::Value = serde_json::from_slice(&one(node.address, asked).await?)?;
    let key = made["key"].as_str().context("the node made no key")?.to_owned();
    post(node.address, &key, "begins").await?;
    Ok(key)
}

async fn post(address: SocketAddr, key: &str, text: &str) -> Result<()> {
    let path = format!("/v1/threads/{THREAD}/messages");
    let body = serde_json::json!({ "body": { "text": text } }).to_string();
    one(address, request(Method::POST, &path, key, 0, body)?).await?;
    Ok(())
}

/// Opens so many streams, waits until each has been written to once more, and says what each costs.
async fn idle_memory(node: &ChildNode, key: &str, idle: usize) -> Result<f64> {
    // What the first connections bring into being is not theirs alone.
    drop(open(node.address, key, "", OPENING).await?);
    let before = node.anonymous_kib()?;
    let mut readers = open(node.address, key, "", idle).await?;
    for reader in &mut readers {
        reader.sign_of_life().await?;
    }
    let after = node.anonymous_kib()?;
    Ok(after.saturating_sub(before) as f64 / idle as f64)
}

async fn open(address: SocketAddr, key: &str, query: &str, count: usize) -> Result<Vec<Reader>> {
    let mut readers = Vec::with_capacity(count);
    while readers.len() < count {
        let some = readers.len()..(readers.len() + OPENING).min(count);
        let opening: Vec<_> =
            some.map(|user| tokio::spawn(Reader::open(address, key.to_owned(), query.to_owned(), user))).collect();
        for reader in opening {
            readers.push(reader.await??);
        }
    }
    Ok(readers)
}

/// Everything at once: streams, steady messages, and others who write.
async fn busy(address: SocketAddr, key: &str, subscribers: usize, time: Duration) -> Result<Busy> {
    let readers = open(address, key, &format!("?thread={THREAD}"), subscribers).await?;
    let begun = Instant::now();
    let messages = time.as_secs() * u64::from(MESSAGES_PER_SECOND);
    let reading: Vec<_> =
        readers.into_iter().map(|reader| tokio::spawn(reader.count(begun, messages, time + PATIENCE))).collect();
    let writing = tokio::spawn(loaded(address, WRITERS, time, Arc::new(poster(key.to_owned()))));
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / MESSAGES_PER_SECOND);
    for _ in 0..messages {
        ticks.tick().await;
        post(address, key, &format!("{}{:012}", stream_reader::MARK, begun.elapsed().as_micros())).await?;
    }
    let ingest = writing.await??;
    let mut counted = Counted::default();
    for reader in reading {
        counted.add(reader.await??);
    }
    counted.sort();
    Ok(Busy { ingest, sent: messages, counted })
}
