//! The hunt for git data on loopback: ten events for each of a thousand repositories wait for objects that `git http-backend`
//! has, behind nginx on a hundred addresses, each of which is a domain. The access log tells who was visited when.

use super::backend::Backend;
use super::child_node::ChildNode;
use super::event_generator::create_temp_folder;
use super::hosting::{RelayClient, git, now, sign};
use super::{BenchOptions, figure, print_figures};
use anyhow::{Context as _, Result, ensure};
use model::crypto::content_hash;
use model::nostr::VerifiedNostr;
use nostr::key::PublicKey;
use nostr::nips::nip19::ToBech32 as _;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::thread::park_timeout;
use std::time::{Duration, Instant};

/// Pull requests of each repository; with announcement and state it has ten events.
const PULL_REQUESTS: usize = 8;
/// Events that are sent before an answer is waited for.
const WINDOW: usize = 200;
/// How long the node waits before it hunts for what clients sent.
const DELAY: Duration = Duration::from_secs(10);
/// The limit of starts for each domain, and its window.
const STARTS_MAX: usize = 30;
const WINDOW_SECONDS: f64 = 60.0;
/// After so long what was not released is given up.
const PATIENCE: Duration = Duration::from_secs(1800);
/// For how long the node is watched when it has nothing to do.
const IDLE: Duration = Duration::from_secs(10);

pub(crate) fn run(options: &BenchOptions) -> Result<()> {
    let (identifiers, domains) = if options.quick { (50, 5) } else { (1_000, 100) };
    let folder = create_temp_folder(options.dir.as_deref())?;
    let hosts: Vec<Ipv4Addr> = (1..=domains).map(|number| Ipv4Addr::new(127, 0, 1, number)).collect();
    let backend = Backend::start(folder.path(), &hosts)?;
    let commits = fill_repository(folder.path(), &backend)?;
    let delay = format!("sync.default_delay_secs={}", DELAY.as_secs());
    let settings = ["git.enabled=1", "sync.gather=0", "http.address_requests_per_second=1000000", &delay];
    let node = ChildNode::start_with(options, &settings, &[("ANTEROOM_SYNC_PRIVATE_NETWORKS", "127.0.1.0/24")])?;
    let mut events = Vec::new();
    for number in 0..identifiers {
        let source = backend.url_at(hosts[number % hosts.len()], "tool");
        events.extend(events_of(number, node.address, &source, &commits)?);
    }
    let mut watcher = RelayClient::connect(node.address)?;
    watcher.say(r#"["REQ","live",{"limit":0}]"#.to_owned())?;
    ensure!(watcher.hear()?.contains("EOSE"), "no subscription");
    let begun = Instant::now();
    publish(node.address, &events)?;
    let published = begun.elapsed();
    watcher.hear()?;
    let first = begun.elapsed().saturating_sub(DELAY);
    let mut released = 1;
    while released < events.len() && begun.elapsed() < PATIENCE {
        watcher.hear()?;
        released += 1;
    }
    let took = begun.elapsed().saturating_sub(DELAY);
    let visits = backend.visits()?;
    let per_domain = visits.values().map(Vec::len).max().unwrap_or_default();
    let states = count(node.address, r#"{"kinds":[30618]}"#)?;
    let before = node.cpu_seconds()?;
    park_timeout(IDLE);
    let idle = (node.cpu_seconds()? - before) / IDLE.as_secs_f64() * 100.0;
    print_figures(
        "hunt",
        &[
            figure("released", released as f64, "events that were held for git data and are applied"),
            figure("events", events.len() as f64, "all of them"),
            figure("requests", visits.values().map(Vec::len).sum::<usize>() as f64, "visits to sources"),
            figure("requests_per_domain", per_domain as f64, "visits to the domain with the most"),
            figure("window_violations", violations(&visits) as f64, "windows with more starts than allowed"),
            figure("starved", (identifiers - states) as f64, "repositories whose state still waits"),
            figure("publish_s", published.as_secs_f64(), "seconds in which all were published"),
            figure(
                "first_release_ms",
                first.as_secs_f64() * 1000.0,
                "from when the first was due to the first release",
            ),
            figure("all_released_s", took.as_secs_f64(), "to the last"),
            figure("idle_cpu_percent", idle, "of one core, when nothing waits"),
            figure("rss_mib", node.peak_mib()?, "peak memory of the node"),
        ],
    )
}

/// A repository with a branch and commits of pull requests: the commit of the branch, then the others.
fn fill_repository(folder: &Path, backend: &Backend) -> Result<Vec<String>> {
    let work = folder.join("work");
    std::fs::create_dir(&work)?;
    git(&work, &["init", "--quiet", "--initial-branch=main"])?;
    let url = backend.create("tool")?;
    let mut commits = Vec::new();
    for number in 0..=PULL_REQUESTS {
        std::fs::write(work.join("file"), number.to_string())?;
        git(&work, &["add", "file"])?;
        git(&work, &["commit", "--quiet", "--message", &number.to_string()])?;
        commits.push(git(&work, &["rev-parse", "HEAD"])?);
        let name = if number == 0 { "refs/heads/main".to_owned() } else { format!("refs/heads/change-{number}") };
        git(&work, &["push", "--quiet", &url, &format!("HEAD:{name}")])?;
    }
    Ok(commits)
}

/// Announcement, state and pull requests of one repository.
fn events_of(number: usize, node: SocketAddr, source: &str, commits: &[String]) -> Result<Vec<VerifiedNostr>> {
    let secret = |kind: u8| content_hash(&[&[kind], number.to_be_bytes().as_slice()].concat()).0;
    let (owner, contributor, at) = (secret(1), secret(2), now()?);
    let (key, identifier) = (sign(owner, at, 1, &[], "")?.author, format!("tool-{number}"));
    let npub = PublicKey::from_hex(&key.to_string())?.to_bech32()?;
    let (clone, relay) = (format!("http://{node}/{npub}/{identifier}.git"), format!("ws://{node}"));
    let announced: [&[&str]; 3] = [&["d", &identifier], &["clone", &clone, source], &["relays", &relay]];
    let (main, changes) = commits.split_first().context("no commits")?;
    let state: [&[&str]; 3] = [&["d", &identifier], &["HEAD", "ref: refs/heads/main"], &["refs/heads/main", main]];
    let mut events = vec![sign(owner, at, 30617, &announced, "")?, sign(owner, at, 30618, &state, "")?];
    let address = format!("30617:{key}:{identifier}");
    for change in changes {
        events.push(sign(contributor, at, 1618, &[&["a", &address], &["c", change]], "")?);
    }
    Ok(events)
}

fn publish(node: SocketAddr, events: &[VerifiedNostr]) -> Result<()> {
    let mut client = RelayClient::connect(node)?;
    for part in events.chunks(WINDOW) {
        for event in part {
            client.write(format!("[\"EVENT\",{}]", event.to_json()))?;
        }
        client.flush()?;
        for _ in part {
            let answer = client.hear()?;
            ensure!(answer.contains(",true,\"purgatory"), "{answer}");
        }
    }
    Ok(())
}

fn count(node: SocketAddr, filter: &str) -> Result<usize> {
    let mut client = RelayClient::connect(node)?;
    client.say(format!("[\"COUNT\",\"n\",{filter}]"))?;
    let answer: serde_json::Value = serde_json::from_str(&client.hear()?)?;
    Ok(usize::try_from(answer[2]["count"].as_u64().context("no count")?)?)
}

/// Visits after which more than the limit were begun within a window.
fn violations(visits: &BTreeMap<String, Vec<f64>>) -> usize {
    let of_domain = |times: &Vec<f64>| {
        let in_window = |begin: &f64| times.iter().filter(|at| (0.0..WINDOW_SECONDS).contains(&(*at - begin))).count();
        times.iter().filter(|begin| in_window(begin) > STARTS_MAX).count()
    };
    visits.values().map(of_domain).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_visits_in_a_window_are_counted() {
        let visits = |count: usize, apart: f64| {
            let times = (0..count).map(|number| number as f64 * apart).collect();
            BTreeMap::from([("a".to_owned(), times)])
        };
        assert_eq!(violations(&visits(30, 0.1)), 0);
        assert_eq!(violations(&visits(31, 0.1)), 1);
        assert_eq!(violations(&visits(100, 2.0)), 0);
    }
}
