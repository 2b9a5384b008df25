//! `cargo xtask mutants`: small mistakes in the product's code, one at a time, to see whether tests and simulator notice.
//!
//! A sample of the mistakes that can be made is written into a scratch copy, each behind a number, and built once. An
//! environment variable switches one of them on when a program starts, so that a mistake costs runs and no builds. The
//! product's code carries none of it.

mod places;
mod record;
mod tree;
mod trial;
mod weave;

use anyhow::{Result, bail};
use clap::Args;
use record::Record;
use std::time::{Duration, Instant};
use tree::Mutant;
use trial::{Outcome, Trials};

/// For so many of the sample, one more is drawn in case that some do not compile.
const SPARE_OF: usize = 3;

/// Make small mistakes in the code, one at a time, and see whether the tests of the crate or 500 seeds notice.
#[derive(Args)]
pub(crate) struct Mutants {
    /// How many mistakes to draw.
    #[arg(long, value_name = "N", default_value_t = 100)]
    sample: usize,
    /// Which sample.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// The crates in which mistakes are made; also `git`, `git_http`, `relay`, `api` and `web`.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "model,engine,store,node,queries,server")]
    crates: Vec<String>,
    /// Stop after this many minutes; the same command goes on where it stopped.
    #[arg(long, value_name = "MINUTES")]
    budget: Option<u64>,
    /// Forget what was caught before, and try all of the sample.
    #[arg(long)]
    anew: bool,
    /// List the sample and build nothing.
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(options: &Mutants) -> Result<()> {
    let mut all = tree::all_mutants()?;
    all.retain(|mutant| options.crates.iter().any(|name| name == mutant.crate_name()));
    if let Some(unknown) = tree::unknown_crate(&options.crates) {
        bail!("no mistakes are made in {unknown}; see --help");
    }
    let total = all.len();
    let mut drawn = draw(all, options.sample + options.sample.div_ceil(SPARE_OF), options.seed);
    if options.list {
        drawn.iter().take(options.sample).for_each(|mutant| println!("{}", mutant.describe()));
        return Ok(());
    }
    eprintln!("{total} mistakes can be made");
    let mut record = Record::open()?;
    if options.anew {
        record.clear()?;
    }
    drawn.retain(|mutant| record.outcome(mutant) != Some(Outcome::NotCompiled));
    let programs = tree::build(&mut drawn, |wrong| record.add(wrong, &Outcome::NotCompiled))?;
    drawn.truncate(options.sample);
    let untried: Vec<&Mutant> = drawn.iter().filter(|mutant| record.outcome(mutant).is_none()).collect();
    eprintln!("{} of {} are to be tried", untried.len(), drawn.len());
    let trials = if untried.is_empty() { None } else { Some(Trials::new(programs, &untried)?) };
    let until = options.budget.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    for (index, mutant) in drawn.iter().enumerate() {
        let told = mutant.describe();
        let outcome = match (record.outcome(mutant), &trials) {
            (Some(outcome), _) => outcome,
            (None, Some(trials)) if until.is_none_or(|until| Instant::now() <= until) => {
                let outcome = trials.meet(mutant)?;
                record.add(mutant, &outcome)?;
                outcome
            }
            (None, _) => break,
        };
        match outcome {
            Outcome::CaughtBy(program) => eprintln!("{:4} caught by {program}: {told}", index + 1),
            Outcome::Survived => eprintln!("{:4} SURVIVED: {told}", index + 1),
            Outcome::NotCompiled => {}
        }
    }
    print_summary(&drawn, &record);
    Ok(())
}

fn print_summary(drawn: &[Mutant], record: &Record) {
    let outcomes: Vec<_> =
        drawn.iter().filter_map(|mutant| record.outcome(mutant).map(|outcome| (mutant, outcome))).collect();
    let survivors: Vec<_> = outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::Survived).collect();
    if !survivors.is_empty() {
        println!("survivors:");
        survivors.iter().for_each(|(mutant, _)| println!("  {}", mutant.describe()));
    }
    if outcomes.len() < drawn.len() {
        println!("{} of {} have been tried; run the same command again to go on", outcomes.len(), drawn.len());
    }
    let caught = outcomes.len() - survivors.len();
    let ratio = caught as f64 / outcomes.len().max(1) as f64;
    println!("{{\"mutants\":{},\"caught\":{caught},\"ratio\":{ratio:.3}}}", outcomes.len());
}

/// So many of them in an order that the seed decides, numbered from 1. A mistake keeps its place in that order while
/// other code changes, so that a sample can be compared with the same one before.
fn draw(all: Vec<Mutant>, most: usize, seed: u64) -> Vec<Mutant> {
    let mut ranked: Vec<_> = all.into_iter().map(|mutant| (rank(&mutant.name(), mutant.alike, seed), mutant)).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.truncate(most);
    let numbered = ranked.into_iter().enumerate();
    numbered.map(|(index, (_, mutant))| Mutant { number: index + 1, ..mutant }).collect()
}

/// The place of a mistake in the order: as good as random, and the same everywhere.
fn rank(name: &str, alike: u64, seed: u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ alike;
    for byte in name.bytes() {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    // The last steps of SplitMix64, so that every byte counts for every bit.
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_depend_on_everything_and_on_nothing_else() {
        let one = rank("a", 1, 1);
        assert_eq!(one, rank("a", 1, 1));
        let others = [rank("b", 1, 1), rank("a", 2, 1), rank("a", 1, 2)];
        assert!(others.iter().all(|other| *other != one), "{others:?}");
        // As many in each half.
        let low = (0..1000).filter(|number| rank(&format!("name {number}"), 1, 1) < u64::MAX / 2).count();
        assert!((400..600).contains(&low), "{low}");
    }
}
