//! The relay under load: events that are verified, durable and found by filters, over 1 and 8 WebSockets; queries of 500
//! events; and events that 1,000 subscribers hear of. Beside it the bare verification of signatures on the same cores.
//!
//! The node is a process of its own, on the same cores as the clients.

use super::child_node::ChildNode;
use super::event_generator::{create_temp_folder, in_parallel};
use super::hosting::{RelayClient, announce, git, now, sign};
use super::{BenchOptions, figure, print_figures};
use crate::open_file_limit;
use anyhow::{Context as _, Result, ensure};
use model::nostr::{NostrEvent, VerifiedNostr};
use std::net::SocketAddr;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Who writes the events.
const AUTHORS: u64 = 100;
/// Events that a client sends before it waits for an answer.
const WINDOW: usize = 256;
const QUERY_EVENTS: usize = 500;
/// Queries over one socket, which may ask so many without a pause.
const QUERIES_PER_SOCKET: usize = 300;
/// Connections that ask for events at the same time.
const READERS: usize = 4;

pub(crate) fn run(options: &BenchOptions) -> Result<()> {
    let (events, subscribers, heard) = if options.quick { (4_000, 50, 20) } else { (40_000, 1_000, 50) };
    open_file_limit::raise_open_file_limit();
    let settings = ["git.enabled=1", "http.address_requests_per_second=1000000"];
    let node = ChildNode::start(options, &settings)?;
    let repository = host_repository(options, node.address)?;
    let made = make_events(&repository, events + heard)?;
    let (live, made) = made.split_at(heard as usize);
    let (few, many) = made.split_at(made.len() / 4);
    let verify_per_s = verify(many)?;
    let alone = publish(node.address, 1, few)?;
    let together = publish(node.address, 8, many)?;
    let queries_per_s = query(node.address, Duration::from_secs(if options.quick { 2 } else { 10 }))?;
    let fanout_per_s = fan_out(node.address, subscribers, live)?;
    let verify_per_s = (verify_per_s + verify(many)?) / 2.0;
    print_figures(
        "relay",
        &[
            figure("events_per_s_1", alone, "events over 1 WebSocket: verified, durable, indexed"),
            figure("events_per_s_8", together, "the same over 8"),
            figure("verify_per_s", verify_per_s, "bare verification of the same events, on all cores"),
            figure("ratio_verify", together / verify_per_s, "events over 8 WebSockets to that"),
            figure("queries_per_s", queries_per_s, "queries of 500 events, over 4 WebSockets"),
            figure("fanout_per_s", fanout_per_s, "deliveries of live events to all subscribers"),
            figure("subscribers", subscribers as f64, "WebSockets that hear of them"),
            figure("rss_mib", node.peak_mib()?, "peak memory of the node"),
        ],
    )
}

/// Announces a repository and pushes it: its address.
fn host_repository(options: &BenchOptions, address: SocketAddr) -> Result<String> {
    let folder = create_temp_folder(options.dir.as_deref())?;
    let owner = [200; 32];
    git(folder.path(), &["init", "--quiet", "--initial-branch=main"])?;
    git(folder.path(), &["commit", "--quiet", "--allow-empty", "--message", "begin"])?;
    let commit = git(folder.path(), &["rev-parse", "HEAD"])?;
    let url = announce(address, owner, "bench", &commit)?;
    git(folder.path(), &["push", "--quiet", &url, "main"])?;
    Ok(format!("30617:{}:bench", sign(owner, 1, 1, &[], "")?.author))
}

/// Issues of many authors, each in its own second or at least with a text of its own.
fn make_events(repository: &str, count: u64) -> Result<Vec<VerifiedNostr>> {
    let begin = now()?.saturating_sub(count);
    in_parallel(count, |number| {
        let mut author = [0; 32];
        author[31] = u8::try_from(1 + number % AUTHORS).context("an author")?;
        let (text, subject) =
            (format!("This is issue {number}. {}", "It does not work. ".repeat(10)), number.to_string());
        sign(author, begin + number, 1621, &[&["a", repository], &["subject", &subject]], &text)
    })
}

/// How many events a second all cores verify that do nothing else.
fn verify(events: &[VerifiedNostr]) -> Result<f64> {
    let cores = std::thread::available_parallelism()?.get();
    let texts: Vec<String> = events.iter().map(|event| event.to_json()).collect();
    let parsed: Vec<NostrEvent> = texts.iter().map(|text| NostrEvent::parse(text)).collect::<Result<_, _>>()?;
    let begun = Instant::now();
    let is_good = std::thread::scope(|scope| {
        let parts = parsed.chunks(parsed.len().div_ceil(cores).max(1));
        let working: Vec<_> =
            parts.map(|part| scope.spawn(|| part.iter().all(|event| event.clone().check().is_ok()))).collect();
        working.into_iter().all(|thread| thread.join().is_ok_and(|is_good| is_good))
    });
    ensure!(is_good, "an event of our own is not valid");
    Ok(events.len() as f64 / begun.elapsed().as_secs_f64())
}

/// How many events a second so many WebSockets publish, each answered when it is durable.
fn publish(address: SocketAddr, sockets: usize, events: &[VerifiedNostr]) -> Result<f64> {
    let barrier = Barrier::new(sockets + 1);
    let parts: Vec<&[VerifiedNostr]> = events.chunks(events.len().div_ceil(sockets)).collect();
    ensure!(parts.len() == sockets, "too few events");
    let time = std::thread::scope(|scope| {
        let publishing: Vec<_> =
            parts.iter().map(|part| scope.spawn(|| publish_part(address, part, &barrier))).collect();
        barrier.wait();
        let begun = Instant::now();
        for thread in publishing {
            thread.join().map_err(|_| anyhow::anyhow!("a client failed"))??;
        }
        anyhow::Ok(begun.elapsed())
    })?;
    Ok(events.len() as f64 / time.as_secs_f64())
}

fn publish_part(address: SocketAddr, events: &[VerifiedNostr], barrier: &Barrier) -> Result<()> {
    let connected = RelayClient::connect(address);
    let texts: Vec<String> = events.iter().map(|event| format!("[\"EVENT\",{}]", event.to_json())).collect();
    barrier.wait();
    let mut relay = connected?;
    let (mut sent, mut answered) = (0, 0);
    let mut texts = texts.into_iter();
    while answered < events.len() {
        while sent < answered + WINDOW
            && let Some(text) = texts.next()
        {
            relay.write(text)?;
            sent += 1;
        }
        relay.flush()?;
        let answer = relay.hear()?;
        ensure!(answer.contains(",true,\"\""), "{answer}");
        answered += 1;
    }
    Ok(())
}

/// How many queries of 500 events a second are answered.
fn query(address: SocketAddr, time: Duration) -> Result<f64> {
    let begun = Instant::now();
    let answered: usize = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..READERS).map(|_| scope.spawn(|| query_until(address, begun, time))).collect();
        asking
            .into_iter()
            .map(|thread| thread.join().map_err(|_| anyhow::anyhow!("a client failed"))?)
            .sum::<Result<_>>()
    })?;
    Ok(answered as f64 / begun.elapsed().as_secs_f64())
}

fn query_until(address: SocketAddr, begun: Instant, time: Duration) -> Result<usize> {
    let mut relay = RelayClient::connect(address)?;
    let mut answered = 0;
    while begun.elapsed() < time {
        relay.say(format!("[\"REQ\",\"q\",{{\"kinds\":[1621],\"limit\":{QUERY_EVENTS}}}]"))?;
        let mut events = 0;
        loop {
            let said = relay.hear()?;
            if said.starts_with("[\"EOSE\"") {
                break;
            }
            ensure!(said.starts_with("[\"EVENT\""), "the relay says {said}");
            events += 1;
        }
        ensure!(events == QUERY_EVENTS, "{events} events came");
        relay.say("[\"CLOSE\",\"q\"]".to_owned())?;
        answered += 1;
        // A fast node answers more than one socket may ask.
        if answered % QUERIES_PER_SOCKET == 0 {
            relay = RelayClient::connect(address)?;
        }
    }
    Ok(answered)
}

/// How many deliveries a second there are when everybody hears of some events.
fn fan_out(address: SocketAddr, subscribers: usize, events: &[VerifiedNostr]) -> Result<f64> {
    let barrier = Barrier::new(subscribers + 1);
    let time = std::thread::scope(|scope| {
        let mut hearing = Vec::with_capacity(subscribers);
        for _ in 0..subscribers {
            let hear = || hear_all(address, events.len(), &barrier);
            hearing.push(std::thread::Builder::new().stack_size(256 * 1024).spawn_scoped(scope, hear)?);
        }
        barrier.wait();
        let begun = Instant::now();
        let mut relay = RelayClient::connect(address)?;
        for event in events {
            relay.publish(event)?;
        }
        for thread in hearing {
            thread.join().map_err(|_| anyhow::anyhow!("a subscriber failed"))??;
        }
        anyhow::Ok(begun.elapsed())
    })?;
    Ok((subscribers * events.len()) as f64 / time.as_secs_f64())
}

fn hear_all(address: SocketAddr, events: usize, barrier: &Barrier) -> Result<()> {
    let subscribe = || {
        let mut relay = RelayClient::connect(address)?;
        relay.say("[\"REQ\",\"live\",{\"kinds\":[1621],\"limit\":0}]".to_owned())?;
        let first = relay.hear()?;
        ensure!(first.starts_with("[\"EOSE\""), "{first}");
        Ok(relay)
    };
    let subscribed = subscribe();
    barrier.wait();
    let mut relay = subscribed?;
    for _ in 0..events {
        let heard = relay.hear()?;
        ensure!(heard.starts_with("[\"EVENT\""), "{heard}");
    }
    Ok(())
}
