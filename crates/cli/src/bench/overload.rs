//! Three times as many posts as the node can take, offered at a steady pace whether it answers or not: what is accepted is
//! answered soon, the rest is refused and told when to come again, and nothing that was acknowledged is lost.
//!
//! The node has one core and the client another. The node is killed at the end, and its folder is read.

use super::http::{connect_from, message_poster, prepare, request, run_load};
use super::machine::anonymous_mib;
use super::{BenchOptions, event_generator, figure, print_figures};
use crate::app::app;
use crate::clock::SystemClock;
use anyhow::{Context as _, Result, ensure};
use engine::reads::Reads as _;
use http::{Method, StatusCode, header};
use http_body_util::BodyExt as _;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;
use node::fetch::hunter::NoSources;
use node::{Node, NodeOptions};
use rustix::thread::{CpuSet, sched_setaffinity};
use server::{Limits, ServerOptions, ServerState};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// The name under which this benchmark starts the node in a process of its own.
pub(super) const NODE: &str = "overload-node";
/// Addresses of this machine from which the client connects, and how many connections it opens from each: less than one
/// address may have. Together they are more than the node answers in the time that a request may wait, so that it is the
/// node that has to refuse, and not the client that has to wait for a free connection.
const SOURCES: u8 = 4;
const CONNECTIONS_PER_SOURCE: usize = 2000;
/// How many times as much is offered as the node took when it was asked politely.
const TIMES: f64 = 3.0;
/// Arrivals are spread over steps of this length.
const STEP: Duration = Duration::from_millis(2);
const USERS: usize = 200;
const THREADS: usize = 20;

/// A post that was answered.
struct Answered {
    number: usize,
    is_accepted: bool,
    /// How long it was due before a connection was free.
    late: Duration,
    /// From when it was due until it was answered.
    took: Duration,
    at: Instant,
}

pub(crate) fn run(options: &BenchOptions) -> Result<()> {
    let (measured, offered) = if options.quick { (3, 8) } else { (10, 30) };
    let folder = event_generator::create_temp_folder(options.dir.as_deref())?;
    let (mut node, address, key) = start_node(folder.path())?;
    stay_on_core(1)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let polite = message_poster(key.clone());
    let capacity = runtime.block_on(run_load(address, 64, Duration::from_secs(measured), Arc::new(polite)))?.per_s;
    let pace = capacity * TIMES;
    let time = Duration::from_secs(offered);
    let Offered { begun, answered, rss_mib } = runtime.block_on(offer(address, &key, pace, time, node.id()))?;
    node.kill()?;
    node.wait()?;
    // Until the last answer: what piles up and is answered afterwards was not answered in time.
    let ended = answered.iter().map(|answer| answer.at).max().unwrap_or(begun);
    let seconds = ended.duration_since(begun).as_secs_f64();
    let all = answered.len() as f64;
    let mut late: Vec<Duration> = answered.iter().map(|answer| answer.late).collect();
    let (accepted, refused): (Vec<_>, Vec<_>) = answered.into_iter().partition(|answer| answer.is_accepted);
    let lost = lost(folder.path(), &accepted)?;
    ensure!(lost == 0, "{lost} of {} acknowledged posts are lost", accepted.len());
    let per_s = accepted.len() as f64 / seconds;
    let (mut accepted, mut refused) = (times(&accepted), times(&refused));
    print_figures(
        "overload",
        &[
            figure("capacity_per_s", capacity, "posts at 64 connections that wait for their answers"),
            figure("offered_per_s", all / seconds, "posts that were offered, three times as many"),
            figure("accepted_per_s", per_s, "of these accepted"),
            figure("ratio_accepted", per_s / capacity, "to what it takes politely"),
            figure("accepted_p99_ms", percentile(&mut accepted, 99), "their 99th percentile, from when they were due"),
            figure("accepted_max_ms", percentile(&mut accepted, 100), "the slowest of them"),
            figure("refused_p99_ms", percentile(&mut refused, 99), "until the others knew to come again"),
            figure("late_p99_ms", percentile(&mut late, 99), "of these, by how much the client was late"),
            figure("lost", lost as f64, "acknowledged and not there after the node was killed"),
            figure("rss_mib", rss_mib as f64, "peak anonymous memory of the node"),
        ],
    )
}

fn times(answered: &[Answered]) -> Vec<Duration> {
    answered.iter().map(|answer| answer.took).collect()
}

fn percentile(times: &mut [Duration], of_hundred: usize) -> f64 {
    times.sort();
    let index = (times.len() * of_hundred / 100).min(times.len().saturating_sub(1));
    times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

fn stay_on_core(core: usize) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut set = CpuSet::new();
    set.set(core.min(cores - 1));
    Ok(sched_setaffinity(None, &set)?)
}

/// Starts the node in a process of its own, and reads where it listens and its key.
fn start_node(folder: &Path) -> Result<(Child, SocketAddr, String)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", NODE, "--dir"]).arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("its output")?).lines();
    let line = lines.next().context("the node has ended")??;
    let (address, key) = line.split_once(' ').context("an address and a key")?;
    Ok((child, address.parse()?, key.to_owned()))
}

/// Serves a node in a folder on one core, until it is killed.
pub(super) fn serve_until_killed(folder: &Path) -> Result<()> {
    stay_on_core(0)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let store = event_generator::open_store(folder)?;
    let node = Node::start(store, Arc::new(SystemClock), Arc::new(NoSources), NodeOptions::default());
    let key = prepare(&node)?;
    let limits = Limits { key_per_second: 10_000_000, ..Limits::default() };
    let state = ServerState::new(node, ServerOptions { limits, ..ServerOptions::default() }, "bench");
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = runtime.block_on(server::serve(app(&state), local))?;
    println!("{} {key}", server.address);
    std::io::stdout().flush()?;
    // Whoever started this holds the other end.
    let _ = std::io::stdin().lines().count();
    runtime.block_on(server.stop());
    Ok(())
}

/// What came of the posts that were offered.
struct Offered {
    begun: Instant,
    answered: Vec<Answered>,
    /// The peak of the node's memory.
    rss_mib: u64,
}

/// Offers posts at this pace. A post that is due while every connection waits for an answer is late, and that counts.
async fn offer(address: SocketAddr, key: &str, pace: f64, time: Duration, node: u32) -> Result<Offered> {
    // No more than are offered in all can be due or answered at a time.
    let total = (time.as_secs_f64() * pace) as usize;
    let (due, queue) = mpsc::channel(total.max(1));
    let queue: SharedQueue = Arc::new(tokio::sync::Mutex::new(queue));
    let (sender, mut outcomes) = mpsc::channel(total.max(1));
    for number in 0..usize::from(SOURCES) * CONNECTIONS_PER_SOURCE {
        let source = Ipv4Addr::new(127, 0, 0, 1 + (number % usize::from(SOURCES)) as u8);
        let connection = connect_from(source.into(), address).await?;
        tokio::spawn(send_what_is_due(connection, queue.clone(), key.to_owned(), sender.clone()));
    }
    drop(sender);
    let (begun, mut offered, mut peak) = (Instant::now(), 0_usize, 0);
    while begun.elapsed() < time {
        tokio::time::sleep(STEP).await;
        let wanted = total.min((begun.elapsed().as_secs_f64() * pace) as usize);
        let now = Instant::now();
        for number in offered..wanted {
            due.try_send((number, now)).context("nobody sends any more")?;
        }
        offered = wanted;
        peak = peak.max(anonymous_mib(&node.to_string()));
    }
    drop(due);
    let mut found = Vec::with_capacity(offered);
    while let Some(outcome) = outcomes.recv().await {
        found.push(outcome?);
    }
    ensure!(found.len() == offered, "{} of {offered} posts were answered", found.len());
    Ok(Offered { begun, answered: found, rss_mib: peak })
}

type DuePost = (usize, Instant);
type SharedQueue = Arc<tokio::sync::Mutex<mpsc::Receiver<DuePost>>>;

async fn send_what_is_due(
    mut connection: SendRequest<Full<Bytes>>,
    queue: SharedQueue,
    key: String,
    outcomes: mpsc::Sender<Result<Answered>>,
) {
    loop {
        let next = queue.lock().await.recv().await;
        let Some((number, due)) = next else { return };
        let outcome = send(&mut connection, &key, number, due).await;
        let has_failed = outcome.is_err();
        if outcomes.send(outcome).await.is_err() || has_failed {
            return;
        }
    }
}

async fn send(connection: &mut SendRequest<Full<Bytes>>, key: &str, number: usize, due: Instant) -> Result<Answered> {
    let late = due.elapsed();
    let path = format!("/v1/threads/thread-{}/messages", number % THREADS);
    let body = format!("{{\"id\":\"p{number}\",\"body\":{{\"text\":\"message {number} says something ordinary\"}}}}");
    connection.ready().await?;
    let response = connection.send_request(request(Method::POST, &path, key, number % USERS, body)?).await?;
    let (status, again) = (response.status(), response.headers().contains_key(header::RETRY_AFTER));
    response.into_body().collect().await?;
    let is_accepted = match status {
        StatusCode::CREATED => true,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS if again => false,
        other => anyhow::bail!("the server answered {other}"),
    };
    Ok(Answered { number, is_accepted, late, took: due.elapsed(), at: Instant::now() })
}

/// How many of these posts are not in the folder.
fn lost(folder: &Path, accepted: &[Answered]) -> Result<usize> {
    let store = event_generator::open_store(folder)?;
    let db = store.snapshot()?;
    let (space, _) = db.hosted_spaces()?.into_iter().next().context("a space")?;
    let space = db.space_no(&space)?.context("a space with events")?;
    let mut lost = 0;
    for answer in accepted {
        lost += usize::from(db.chosen(space, &format!("p{}", answer.number))?.is_none());
    }
    Ok(lost)
}
