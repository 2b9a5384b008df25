//! For small sets, every order of arrival; for any set, any order, repetition and batching: the same views.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use anteroom_simulator::disk::SimDisk;
use anteroom_simulator::protocol::space::cast::MadeEvent;
use anteroom_simulator::protocol::space::world::World;
use anteroom_simulator::random::SeededRandom;
use anteroom_simulator::requests::SimRequest;
use anteroom_simulator::staging::stage;
use engine::chains;
use engine::policy::Policy;
use engine::rows::Origin;
use model::Nanos;
use node::WriterCore;
use node::node_commands::{AddPrekey, Arrive};
use proptest::prelude::*;
use std::sync::Arc;
use store::{MasterKey, Store, StoreOptions};

fn digest(world: &World, order: &[&MadeEvent], batch: usize) -> String {
    let policy = Policy { inline_bytes_max: world.inline_max, releases_max: 2, ..Policy::default() };
    let options = StoreOptions { policy, cache_bytes: 1 << 20, reserve_bytes: 0, random: store::KeySource::Seed(1) };
    let store = Store::open(Arc::new(SimDisk::new()), MasterKey::new(&[1; 32]), options).unwrap();
    let core = WriterCore::new(store);
    let now = Nanos(world.end + 3600 * Nanos::SECOND);
    core.ask(AddPrekey(world.prekeys[0], None), now).unwrap();
    for part in order.chunks(batch) {
        let mut requests = Vec::new();
        for made in part {
            let keys = core.store().keys().clone();
            let inline = made.inline(world.inline_max);
            let arrival = chains::receive_blob(&*keys, &policy, made.blob.clone(), inline, Origin::Import);
            requests.push(Arrive(Box::new(arrival.unwrap())));
        }
        core.run(requests, now).unwrap();
    }
    core.settle(now).unwrap();
    for made in order.iter().filter(|made| !made.wire.is_empty()) {
        let (space, hash, bytes) = (made.envelope.space, made.hash(), made.wire.clone());
        let staged = stage(&core, SimRequest::deliver(space, hash, bytes), now).unwrap();
        core.ask(staged, now).unwrap();
    }
    core.settle(now).unwrap();
    core.store().snapshot().unwrap().digest().unwrap().to_string()
}

fn world(seed: u64) -> World {
    World::new(&mut SeededRandom::new(seed), 1)
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = permutations(count - 1);
    let insert = |order: &Vec<usize>, at: usize| {
        let mut longer = order.clone();
        longer.insert(at, count - 1);
        longer
    };
    shorter.iter().flat_map(|order| (0..count).map(move |at| insert(order, at))).collect()
}

#[test]
fn every_order_of_small_sets_shows_the_same() {
    for seed in 0..8 {
        let world = world(seed);
        // The beginning of a story holds its foundation; the rest is drawn from all of it.
        let mut random = SeededRandom::new(seed + 100);
        let mut set: Vec<&MadeEvent> = world.key_events[0].iter().chain(world.events.iter().take(3)).collect();
        while set.len() < 6 {
            set.push(random.pick(&world.events));
        }
        set.truncate(6);
        let first = digest(&world, &set, 1);
        for order in permutations(set.len()) {
            let order: Vec<&MadeEvent> = order.into_iter().map(|at| set[at]).collect();
            assert_eq!(digest(&world, &order, 6), first, "seed {seed}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn any_order_repetition_and_batching_shows_the_same(seed in 0..1_000_000u64, shuffle: u64, batch in 1..30usize) {
        let world = world(seed);
        let all: Vec<&MadeEvent> = world.key_events[0].iter().chain(&world.events).collect();
        let mut other = all.clone();
        let mut random = SeededRandom::new(shuffle);
        let repeated: Vec<&MadeEvent> = all.iter().copied().filter(|_| random.percent(30)).collect();
        other.extend(repeated);
        random.shuffle(&mut other);
        prop_assert_eq!(digest(&world, &all, 1000), digest(&world, &other, batch));
    }
}
