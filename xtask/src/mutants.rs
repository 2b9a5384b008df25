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

use anyhow::Result;
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
    /// Stop after this many minutes; the same command goes on where it stopped.
    #[arg(long, value_name = "MINUTES")]
    budget: Option<u64>,
    /// List the sample and build nothing.
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(options: &Mutants) -> Result<()> {
    let all = tree::all_mutants()?;
    let total = all.len();
    let mut drawn = draw(all, options.sample + options.sample.div_ceil(SPARE_OF), options.seed);
    if options.list {
        drawn.iter().take(options.sample).for_each(|mutant| println!("{}", mutant.describe()));
        return Ok(());
    }
    eprintln!("{total} mistakes can be made");
    let mut record = Record::open(options.seed, options.sample)?;
    let programs = tree::build(&mut drawn)?;
    drawn.truncate(options.sample);
    let trials = Trials::new(programs)?;
    let until = options.budget.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    for (index, mutant) in drawn.iter().enumerate() {
        let told = mutant.describe();
        let outcome = match record.outcome(&told) {
            Some(outcome) => outcome,
            None if until.is_some_and(|until| Instant::now() > until) => break,
            None => {
                let outcome = trials.meet(mutant)?;
                record.add(&told, &outcome)?;
                outcome
            }
        };
        match outcome {
            Outcome::CaughtBy(program) => eprintln!("{:4} caught by {program}: {told}", index + 1),
            Outcome::Survived => eprintln!("{:4} SURVIVED: {told}", index + 1),
        }
    }
    print_summary(&drawn, &record);
    Ok(())
}

fn print_summary(drawn: &[Mutant], record: &Record) {
    let outcomes: Vec<_> =
        drawn.iter().filter_map(|mutant| record.outcome(&mutant.describe()).map(|outcome| (mutant, outcome))).collect();
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

/// So many of them in an order that the seed decides, numbered from 1.
fn draw(mut all: Vec<Mutant>, most: usize, seed: u64) -> Vec<Mutant> {
    let mut state = seed;
    for end in (1..all.len()).rev() {
        let other = usize::try_from(next_random(&mut state) % (end as u64 + 1)).unwrap_or(0);
        all.swap(end, other);
    }
    all.truncate(most);
    all.iter_mut().enumerate().for_each(|(index, mutant)| mutant.number = index + 1);
    all
}

/// SplitMix64: enough to draw a sample that is the same everywhere.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
