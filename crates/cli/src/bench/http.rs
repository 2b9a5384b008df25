//! The HTTP API under load: durable posts, pages of 50 messages, and a handler that returns the same bytes without work.
//!
//! Client and server share this process and its cores. Each connection sends its next request after the response to the
//! previous one.

use super::event_generator;
use super::machine::PeakMemory;
use super::{BenchOptions, figure, ingest, print_figures, print_tables};
use crate::app::app;
use crate::clock::SystemClock;
use crate::home_space;
use crate::random::random_bytes;
use anyhow::{Context as _, Result, ensure};
use engine::access::KeyRole;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use node::commands::AdminCommand;
use node::fetch::hunter::NoSources;
use node::{Node, NodeOptions};
use server::{Limits, NewKey, RunningServer, ServerOptions, ServerState};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::tables::TableReads as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Runtime;

/// Enough users that no single user is a bottleneck.
const USERS: usize = 200;
const THREADS: usize = 20;
const LOCAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The result of a load run.
pub(super) struct Load {
    pub(super) per_s: f64,
    p99_ms: f64,
}

/// Makes a request from the numbers of connection and request.
pub(super) type MakeRequest = dyn Fn(usize, usize) -> Result<Request<Full<Bytes>>> + Send + Sync;

pub(crate) fn run(options: &BenchOptions) -> Result<()> {
    let time = Duration::from_secs(if options.quick { 3 } else { 10 });
    let peak = PeakMemory::default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let folder = event_generator::create_temp_folder(options.dir.as_deref())?;
    let (node, key, server) = start(folder.path(), &runtime)?;
    let load = |address, connections, time, make: Arc<MakeRequest>| {
        runtime.block_on(run_load(address, connections, time, make))
    };
    let posting: Arc<MakeRequest> = Arc::new(message_poster(key.clone()));
    load(server.address, 64, time / 3, posting.clone())?;
    let few = load(server.address, 64, time, posting.clone())?;
    peak.sample();
    let many = load(server.address, 512, time, posting)?;
    peak.sample();
    let reading: Arc<MakeRequest> = Arc::new(reader(key));
    let pages = load(server.address, 64, time, reading.clone())?;
    let page = runtime.block_on(fetch(server.address, reading(0, 0)?))?;
    let bare = runtime.block_on(server::serve_bare(LOCAL, page.clone()))?;
    let bare_load = load(bare.address, 64, time, reading)?;
    runtime.block_on(async { tokio::join!(bare.stop(), server.stop()) });
    node.stop();
    peak.sample();
    let bytes_per_message = bytes_per_message(options, &runtime, time)?;
    let ingested = ingest::events_per_s(options)?;
    print_figures(
        "http",
        &[
            figure("posts_per_s", few.per_s, "durable posts at 64 connections"),
            figure("posts_p99_ms", few.p99_ms, "their 99th percentile"),
            figure("posts_per_s_512", many.per_s, "durable posts at 512 connections"),
            figure("posts_p99_ms_512", many.p99_ms, "their 99th percentile"),
            figure("pages_per_s", pages.per_s, "pages of 50 messages of a sealed space at 64 connections"),
            figure("bare_per_s", bare_load.per_s, "a handler that only returns the same bytes"),
            figure("page_kb", page.len() as f64 / 1000.0, "size of the page"),
            figure("ratio_pages", pages.per_s / bare_load.per_s, "pages to that handler"),
            figure("ratio_ingest", many.per_s / ingested, "posts at 512 connections to ingest without HTTP"),
            figure(
                "bytes_per_message",
                bytes_per_message,
                "of the database, in use: bodies of 210 bytes, sealed space",
            ),
            figure("rss_mib", peak.mib(), "peak anonymous memory, including the client"),
        ],
    )
}

/// A node with a sealed space in a folder, a key for it, and its server.
fn start(folder: &Path, runtime: &Runtime) -> Result<(Node, String, RunningServer)> {
    let store = event_generator::open_store(folder)?;
    let node = Node::start(store, Arc::new(SystemClock), Arc::new(NoSources), NodeOptions::default());
    let key = prepare(&node)?;
    let (key_per_second, backend_user_per_second) = (10_000_000, 1_000_000);
    // What is measured here is how much it can do, not what it refuses.
    let wait_max = Duration::from_secs(60);
    let limits = Limits { key_per_second, backend_user_per_second, wait_max, ..Limits::default() };
    let state = ServerState::new(node.clone(), ServerOptions { limits, ..ServerOptions::default() }, "bench");
    let server = runtime.block_on(server::serve(app(&state), LOCAL))?;
    Ok((node, key, server))
}

/// How much room a message takes that 16 users post into 20 threads.
fn bytes_per_message(options: &BenchOptions, runtime: &Runtime, time: Duration) -> Result<f64> {
    let folder = event_generator::create_temp_folder(options.dir.as_deref())?;
    let (node, key, server) = start(folder.path(), runtime)?;
    let body = format!("{{\"body\":\"{}\"}}", "x".repeat(210));
    let posting = move |connection: usize, number: usize| {
        let path = format!("/v1/threads/thread-{}/messages", (connection * 31 + number) % THREADS);
        request(Method::POST, &path, &key, connection, body.clone())
    };
    let before = node.snapshot()?.tables().events().len()?;
    runtime.block_on(run_load(server.address, 16, time, Arc::new(posting)))?;
    runtime.block_on(server.stop());
    node.stop();
    let messages = node.snapshot()?.tables().events().len()? - before;
    drop(node);
    let size = event_generator::open_store(folder.path())?.size()?;
    print_tables(&size, messages);
    Ok(size.used_bytes as f64 / messages as f64)
}

pub(super) fn prepare(node: &Node) -> Result<String> {
    let failed = |failure: crate::failure::Failure| anyhow::anyhow!("{failure:?}");
    home_space::create_home_space(node).map_err(failed)?;
    let (space, _) = *node
        .snapshot()?
        .hosted_spaces()?
        .first()
        .map(|(space, kept)| (*space, kept.sealed))
        .as_ref()
        .context("a space")?;
    let key = NewKey::new(random_bytes().map_err(failed)?, &random_bytes().map_err(failed)?);
    let (id, hash, role) = (key.id, key.hash, KeyRole::Backend);
    home_space::administer(node, AdminCommand::AddKey { id, role, space, hash, label: "bench".into() })
        .map_err(failed)?;
    Ok(key.text)
}

pub(super) fn request(
    method: Method,
    path: &str,
    key: &str,
    user: usize,
    body: String,
) -> Result<Request<Full<Bytes>>> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, "localhost")
        .header("x-api-key", key)
        .header("x-user-id", format!("user-{user}"))
        .header(header::CONTENT_TYPE, "application/json");
    Ok(request.body(Full::new(Bytes::from(body)))?)
}

pub(super) fn message_poster(key: String) -> impl Fn(usize, usize) -> Result<Request<Full<Bytes>>> + Send + Sync {
    move |connection, number| {
        let path = format!("/v1/threads/thread-{}/messages", (connection + number) % THREADS);
        let body = format!(
            "{{\"body\":{{\"text\":\"message {number} of connection {connection} says something ordinary\"}}}}"
        );
        request(Method::POST, &path, &key, (connection * 7 + number) % USERS, body)
    }
}

fn reader(key: String) -> impl Fn(usize, usize) -> Result<Request<Full<Bytes>>> + Send + Sync {
    move |connection, number| {
        let path = format!("/v1/threads/thread-{}/messages?limit=50", (connection + number) % THREADS);
        request(Method::GET, &path, &key, number % USERS, String::new())
    }
}

pub(super) async fn connect(address: SocketAddr) -> Result<SendRequest<Full<Bytes>>> {
    speak_over(TcpStream::connect(address).await?).await
}

/// Connects from another address of this machine.
pub(super) async fn connect_from(source: IpAddr, address: SocketAddr) -> Result<SendRequest<Full<Bytes>>> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((source, 0)))?;
    speak_over(socket.connect(address).await?).await
}

async fn speak_over(stream: TcpStream) -> Result<SendRequest<Full<Bytes>>> {
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

pub(super) async fn fetch(address: SocketAddr, request: Request<Full<Bytes>>) -> Result<Bytes> {
    let response = connect(address).await?.send_request(request).await?;
    ensure!(response.status().is_success(), "the server answered {}", response.status());
    Ok(response.into_body().collect().await?.to_bytes())
}

/// Each connection sends requests one after the other until the time is over.
pub(super) async fn run_load(
    address: SocketAddr,
    connections: usize,
    time: Duration,
    make: Arc<MakeRequest>,
) -> Result<Load> {
    let begun = Instant::now();
    let tasks: Vec<_> = (0..connections)
        .map(|connection| tokio::spawn(send_until(address, connection, begun + time, make.clone())))
        .collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }
    let elapsed = begun.elapsed().as_secs_f64();
    times.sort();
    let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or_default();
    Ok(Load { per_s: times.len() as f64 / elapsed, p99_ms: p99.as_secs_f64() * 1e3 })
}

async fn send_until(
    address: SocketAddr,
    connection: usize,
    until: Instant,
    make: Arc<MakeRequest>,
) -> Result<Vec<Duration>> {
    let mut sender = connect(address).await?;
    let mut times = Vec::new();
    while Instant::now() < until {
        let request = make(connection, times.len())?;
        let asked = Instant::now();
        sender.ready().await?;
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        let is_good = status == StatusCode::OK || status == StatusCode::CREATED;
        ensure!(is_good, "the server answered {status}: {}", String::from_utf8_lossy(&body));
        times.push(asked.elapsed());
    }
    Ok(times)
}
