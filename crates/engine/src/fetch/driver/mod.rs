//! Checks the fetcher's decisions with a random but repeatable life: one seed, one run.
//!
//! Three parts, from small to large. `backoffs` compares every delay with a table written by hand; `schedules` leads
//! one row through needs, retries and hunts; `world` lets groups, domains and requests loose on each other, with a
//! `referee` who sees only what goes in and comes out. The tests of this module and the simulator both call [`run`];
//! each planted bug of the fetcher must make some seed fail.

mod backoffs;
mod random;
mod referee;
mod schedules;
mod world;

use random::DriverRandom;

/// Lives the life of this seed, and says what went wrong if something did.
pub fn run(seed: u64) -> Result<(), String> {
    let mut random = DriverRandom::new(seed);
    backoffs::check(&mut random)
        .and_then(|()| schedules::check(&mut random))
        .and_then(|()| world::check(&mut random))
        .map_err(|wrong| format!("fetch driver, seed {seed}: {wrong}"))
}

/// Complains unless the claim is true.
fn ensure(claim: bool, complaint: impl FnOnce() -> String) -> Result<(), String> {
    if claim { Ok(()) } else { Err(complaint()) }
}
