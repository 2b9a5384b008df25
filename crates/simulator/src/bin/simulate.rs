//! Runs seeds, replays one, or plants bugs and counts how soon they are caught.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use anteroom_simulator::run::{RunLog, run};
use model::planted::{PlantedBug, plant};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Within so many seeds a planted bug must be caught.
const PLANTED_SEEDS: u64 = 500;

#[derive(Debug, Default)]
struct Arguments {
    seeds: u64,
    from: u64,
    seed: Option<u64>,
    planted: bool,
    bug: Option<PlantedBug>,
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(what) => {
            eprintln!("{what}\nusage: simulate [--seeds N] [--from SEED] [--seed S] [--planted] [--bug NAME]");
            return ExitCode::from(2);
        }
    };
    std::panic::set_hook(Box::new(|_| ()));
    let passed = if let Some(seed) = arguments.seed {
        replay(seed, arguments.bug)
    } else if arguments.planted {
        let bugs = arguments.bug.map_or(PlantedBug::ALL.to_vec(), |bug| vec![bug]);
        catch_all(&bugs)
    } else {
        search(arguments.from, arguments.seeds)
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
            "--seed" => arguments.seed = Some(number(words.next(), "--seed")?),
            "--planted" => arguments.planted = true,
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
fn attempt(seed: u64, bug: Option<PlantedBug>, log: RunLog) -> Result<(), String> {
    plant(bug);
    let result = catch_unwind(AssertUnwindSafe(|| run(seed, log)));
    plant(None);
    result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    })
}

fn replay(seed: u64, bug: Option<PlantedBug>) -> bool {
    match attempt(seed, bug, RunLog { verbose: true }) {
        Ok(()) => {
            println!("seed {seed}: everything holds");
            true
        }
        Err(what) => {
            println!("seed {seed}: {what}");
            false
        }
    }
}

fn workers() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

fn search(from: u64, seeds: u64) -> bool {
    let begun = Instant::now();
    let next = AtomicU64::new(from);
    let failures: Mutex<Vec<(u64, String)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..workers() {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + seeds || failures.lock().unwrap().len() >= 5 {
                        return;
                    }
                    if let Err(what) = attempt(seed, None, RunLog::default()) {
                        failures.lock().unwrap().push((seed, what));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    for (seed, what) in &failures {
        println!("seed {seed}: {what}\n  replay: cargo xtask simulate --seed {seed}");
    }
    println!("{} seeds from {from} in {:.1} s", seeds, begun.elapsed().as_secs_f64());
    println!("simulation: {} passed, {} failed", seeds - failures.len() as u64, failures.len());
    failures.is_empty()
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
                    let found = (0..PLANTED_SEEDS)
                        .find_map(|seed| attempt(seed, Some(*bug), RunLog::default()).err().map(|what| (seed, what)));
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
