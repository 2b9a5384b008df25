//! Ten thousand events for a thousand identifiers on a hundred domains, with a virtual clock: no window has too many starts,
//! nobody starves, and everything is released by the request that brings it.

use super::super::schedule::{ScheduleRow, on_hunt_ended, on_new_need};
use super::super::{
    BackoffPolicy, DomainLimits, FetchReads, HuntDelays, HuntInput, HuntOutput, Hunts, Nanoseconds, NeedOrigin,
    RequestId, SECOND, Source,
};
use std::collections::{BTreeMap, BTreeSet};

const IDENTIFIERS: usize = 1_000;
const DOMAINS: usize = 100;
const EVENTS: usize = 10;
/// Each source has what a third of the events of its identifier need.
const SOURCES: usize = 3;
/// How long a request takes.
const REQUEST: Nanoseconds = 2 * SECOND;

#[derive(Default)]
struct Identifiers {
    /// Events that wait, by identifier.
    waiting: BTreeMap<usize, BTreeSet<usize>>,
}

fn domain(identifier: usize, source: usize) -> usize {
    [identifier, identifier * 7 + 3, identifier * 13 + 5][source] % DOMAINS
}

impl FetchReads<usize> for Identifiers {
    fn pending(&self, group: &usize) -> bool {
        self.waiting.contains_key(group)
    }

    fn sources(&self, group: &usize) -> Vec<Source> {
        let source = |number| {
            let domain = format!("host-{}", domain(*group, number));
            Source { url: format!("https://{domain}/{group}/{number}"), domain }
        };
        (0..SOURCES).map(source).collect()
    }
}

fn check_windows(domain: &str, times: &[Nanoseconds], limits: DomainLimits) {
    for (number, begin) in times.iter().enumerate() {
        let in_window = times[number..].iter().filter(|at| **at < begin + limits.window).count();
        assert!(in_window <= limits.starts_per_window_max as usize, "{domain} at {begin}");
    }
}

#[test]
fn a_thousand_identifiers_on_a_hundred_domains_are_all_served_within_limits() {
    let limits = DomainLimits::default();
    let (mut hunts, mut world) = (Hunts::<usize>::new(limits), Identifiers::default());
    let mut rows: BTreeMap<usize, ScheduleRow> = BTreeMap::new();
    for identifier in 0..IDENTIFIERS {
        world.waiting.insert(identifier, (0..EVENTS).collect());
        for _ in 0..EVENTS {
            let old = rows.get(&identifier).copied();
            let delays = HuntDelays::default();
            rows.insert(identifier, on_new_need(old, BackoffPolicy::Git, NeedOrigin::PeerOrRelay, delays, 0));
        }
    }
    let mut under_way: BTreeMap<(Nanoseconds, RequestId), (usize, String)> = BTreeMap::new();
    let mut starts: BTreeMap<String, Vec<Nanoseconds>> = BTreeMap::new();
    let mut first_visit: BTreeMap<usize, Nanoseconds> = BTreeMap::new();
    let (mut now, mut released, mut looks) = (0, 0, 0);
    while !world.waiting.is_empty() {
        looks += 1;
        assert!(looks < 100_000, "{} identifiers wait for ever", world.waiting.len());
        let due: Vec<(usize, ScheduleRow)> =
            rows.iter().filter(|(_, row)| row.next <= now).map(|(group, row)| (*group, *row)).collect();
        for (group, row) in due.into_iter().filter(|(group, _)| !hunts.is_hunting(group)).collect::<Vec<_>>() {
            hunts.hear(&world, HuntInput::Due { group, mark: row.mark() }, now);
        }
        hunts.hear(&world, HuntInput::Tick, now);
        while let Some(output) = hunts.take(true, now) {
            match output {
                HuntOutput::Start { ticket, group, url, domain } => {
                    starts.entry(domain).or_default().push(now);
                    first_visit.entry(group).or_insert(now);
                    under_way.insert((now + REQUEST, ticket), (group, url));
                }
                HuntOutput::HuntEnded { group, mark, started_at } => {
                    let pending = world.pending(&group);
                    let row = on_hunt_ended(&rows[&group], mark, pending, BackoffPolicy::Git, started_at, now, 0);
                    match row {
                        Some(row) => rows.insert(group, row),
                        None => rows.remove(&group),
                    };
                }
            }
        }
        let next_end = under_way.keys().next().map(|(at, _)| *at);
        let next_due = rows.values().map(|row| row.next).filter(|next| *next > now).min();
        now = [next_end, next_due, hunts.wake_at(now)].into_iter().flatten().min().unwrap_or(now + 1).max(now);
        while let Some(((at, ticket), (group, url))) = under_way.pop_first() {
            if at > now {
                under_way.insert((at, ticket), (group, url));
                break;
            }
            // What the source has arrives before the end of the request is heard.
            let source: usize = url.rsplit('/').next().and_then(|number| number.parse().ok()).unwrap_or_default();
            if let Some(waiting) = world.waiting.get_mut(&group) {
                let before = waiting.len();
                waiting.retain(|event| event % SOURCES != source);
                released += before - waiting.len();
                if waiting.is_empty() {
                    world.waiting.remove(&group);
                }
            }
            hunts.hear(&world, HuntInput::Ended { ticket }, now);
        }
    }
    assert_eq!((released, first_visit.len()), (IDENTIFIERS * EVENTS, IDENTIFIERS));
    starts.iter().for_each(|(domain, times)| check_windows(domain, times, limits));
    // 3,000 visits to 100 domains of 30 a minute: nobody waits much longer than the limits make everybody wait.
    assert!(first_visit.values().all(|at| *at <= 3 * 60 * SECOND), "somebody waited too long");
    let visits: usize = starts.values().map(Vec::len).sum();
    assert!(visits <= 2 * SOURCES * IDENTIFIERS, "{visits} visits");
}
