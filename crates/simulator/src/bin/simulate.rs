//! Runs seeds, replays one, searches for a while, or plants bugs and counts how soon they are caught.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use anteroom_simulator::coverage::{Coverage, Reached};
use anteroom_simulator::run::{Cut, Failure, RunLog, run_without};
use anteroom_simulator::shrink::shrink;
use model::planted::{PlantedBug, plant};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Seeds that have failed once: they are run before any others.
const KEPT_SEEDS: &str = include_str!("../../seeds.txt");

/// Within so many seeds a planted bug must be caught.
const PLANTED_SEEDS: u64 = 500;

#[derive(Debug, Default)]
struct Arguments {
    seeds: u64,
    from: u64,
    seed: Option<u64>,
    minutes: Option<u64>,
    planted: bool,
    any_coverage: bool,
    bug: Option<PlantedBug>,
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(what) => {
            eprintln!(
                "{what}\nusage: simulate [--seeds N] [--from SEED] [--any-coverage] [--seed S] [--minutes M] [--planted] \
                 [--bug NAME]"
            );
            return ExitCode::from(2);
        }
    };
    std::panic::set_hook(Box::new(|_| ()));
    let passed = if let Some(seed) = arguments.seed {
        replay(seed, arguments.bug)
    } else if arguments.planted {
        let bugs = arguments.bug.map_or(PlantedBug::ALL.to_vec(), |bug| vec![bug]);
        catch_all(&bugs)
    } else if let Some(minutes) = arguments.minutes {
        let from = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos() as u64 >> 10);
        println!("searching for {minutes} minutes from seed {from}");
        search(from, u64::MAX - from, Some(Instant::now() + Duration::from_secs(60 * minutes)), &arguments)
    } else {
        search(arguments.from, arguments.seeds, None, &arguments)
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments { seeds: 100, ..Arguments::default() };
    let number = |word: Option<String>, name: &str| {
        word.and_then(|word| word.parse().ok()).ok_or(format!("{name} takes a number"))
    };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seeds" => arguments.seeds = number(words.next(), "--seeds")?,
            "--from" => arguments.from = number(words.next(), "--from")?,
            "--minutes" => arguments.minutes = Some(number(words.next(), "--minutes")?),
            "--seed" => arguments.seed = Some(number(words.next(), "--seed")?),
            "--planted" => arguments.planted = true,
            "--any-coverage" => arguments.any_coverage = true,
            "--bug" => {
                let name = words.next().unwrap_or_default();
                arguments.bug = Some(PlantedBug::by_name(&name).ok_or(format!("no bug is called {name}"))?);
            }
            other => return Err(format!("{other} is not an option")),
        }
    }
    Ok(arguments)
}

/// Runs one seed; a panic is a failure with its message.
fn attempt(seed: u64, bug: Option<PlantedBug>, log: RunLog, cut: &Cut) -> Result<Coverage, Failure> {
    plant(bug);
    let result = catch_unwind(AssertUnwindSafe(|| run_without(seed, log, cut)));
    plant(None);
    result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        // How far it came is not known: more events and steps than there are do no harm.
        Err(Failure { what: format!("panicked: {}", text.unwrap_or_default()), events: 200, steps: 400 })
    })
}

/// Runs one seed. If it fails, the smallest run that still fails is told.
fn replay(seed: u64, bug: Option<PlantedBug>) -> bool {
    let Err(failure) = attempt(seed, bug, RunLog::default(), &Cut::default()) else {
        let _ = attempt(seed, bug, RunLog { verbose: true }, &Cut::default());
        println!("seed {seed}: everything holds");
        return true;
    };
    println!("seed {seed}: {}\nlooking for a smaller run that fails in the same way", failure.what);
    // A smaller run may fail for another reason, which is another story.
    let is_same = |other: &Failure| kind_of(&other.what) == kind_of(&failure.what);
    let (cut, smallest) = shrink(&failure, |cut| attempt(seed, bug, RunLog::default(), cut).err().filter(is_same));
    let _ = attempt(seed, bug, RunLog { verbose: true }, &cut);
    let (events, steps) = (failure.events.saturating_sub(cut.events.len()), smallest.steps);
    let left = steps.saturating_sub(cut.steps.iter().filter(|step| **step < steps).count() as u64);
    println!(
        "seed {seed}: {}\n  {events} of {} events and {left} of {steps} steps show it",
        smallest.what, failure.events
    );
    false
}

/// The beginning of what a failure says, without numbers and ids.
fn kind_of(what: &str) -> String {
    let line = what.lines().next().unwrap_or_default();
    line.split_whitespace().filter(|word| !word.contains(|letter: char| letter.is_ascii_digit())).take(4).collect()
}

fn workers() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

fn kept_seeds() -> Vec<u64> {
    KEPT_SEEDS.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
}

/// Runs the seeds that are kept, then as many as were asked for, or until the time is over.
fn search(from: u64, seeds: u64, until: Option<Instant>, arguments: &Arguments) -> bool {
    let begun = Instant::now();
    let kept = kept_seeds();
    let next = AtomicU64::new(0);
    let failures: Mutex<Vec<(u64, String)>> = Mutex::default();
    let reached: Mutex<Reached> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..workers() {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let later = number.saturating_sub(kept.len() as u64);
                    let is_over = until.is_some_and(|until| Instant::now() > until);
                    if later >= seeds || is_over || failures.lock().unwrap().len() >= 5 {
                        return;
                    }
                    let seed = kept.get(number as usize).copied().unwrap_or(from.wrapping_add(later));
                    match attempt(seed, arguments.bug, RunLog::default(), &Cut::default()) {
                        Ok(coverage) => reached.lock().unwrap().add(&coverage),
                        Err(failure) => failures.lock().unwrap().push((seed, failure.what)),
                    }
                }
            });
        }
    });
    let (failures, reached) = (failures.into_inner().unwrap(), reached.into_inner().unwrap());
    reached.lines().iter().for_each(|line| println!("{line}"));
    for (seed, what) in &failures {
        println!("seed {seed}: {what}\n  replay: cargo xtask simulate --seed {seed}, and keep it in seeds.txt");
    }
    let missed = reached.missed();
    for state in &missed {
        println!("fewer than one in a hundred runs reached: {state}");
    }
    println!("{} seeds from {from} in {:.1} s", reached.runs(), begun.elapsed().as_secs_f64());
    println!("simulation: {} passed, {} failed", reached.runs(), failures.len());
    failures.is_empty() && (missed.is_empty() || arguments.any_coverage)
}

/// A bug, and the first seed that failed with it.
type Caught = (PlantedBug, Option<(u64, String)>);

fn catch_all(bugs: &[PlantedBug]) -> bool {
    let begun = Instant::now();
    let next = AtomicU64::new(0);
    let caught: Mutex<Vec<Caught>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..workers() {
            scope.spawn(|| {
                while let Some(bug) = bugs.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    let found = (0..PLANTED_SEEDS).find_map(|seed| {
                        attempt(seed, Some(*bug), RunLog::default(), &Cut::default()).err().map(|why| (seed, why.what))
                    });
                    caught.lock().unwrap().push((*bug, found));
                }
            });
        }
    });
    let mut caught = caught.into_inner().unwrap();
    caught.sort_by_key(|(bug, _)| PlantedBug::ALL.iter().position(|other| other == bug));
    for (bug, found) in &caught {
        match found {
            Some((seed, what)) => {
                let line = what.lines().next().unwrap_or_default();
                println!("{:28} caught at seed {seed:3}: {}", bug.name(), line.chars().take(110).collect::<String>());
            }
            None => println!("{:28} NOT CAUGHT within {PLANTED_SEEDS} seeds", bug.name()),
        }
    }
    let missed = caught.iter().filter(|(_, found)| found.is_none()).count();
    println!("{} bugs in {:.1} s", caught.len(), begun.elapsed().as_secs_f64());
    println!("planted: {} passed, {missed} failed", caught.len() - missed);
    missed == 0
}
