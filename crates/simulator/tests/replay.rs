//! The decoders again on the seeds of the fuzzer, and on many small changes of each: a short fuzz run in every test run.
//!
//! `ANTEROOM_FUZZ_ROUNDS` says how many changes of each seed are tried. A failure names the seed and the number of the
//! change, which is the same in every run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use anteroom_simulator::decoders::{self, ALL, Decoder};
use anteroom_simulator::random::SeededRandom;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const ROUNDS_DEFAULT: usize = 200;
/// A script opens and verifies a whole node: it gets this many times fewer rounds.
const SCRIPT_COST: usize = 20;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The names in a folder, without their endings, sorted.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
    entries.map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect()
}

/// The seeds of a decoder. What a local run of the fuzzer found is named by its hash and stays out: there is no end
/// of it.
fn seeds(name: &str) -> Vec<(String, Vec<u8>)> {
    let folder = fuzz().join("corpus").join(name);
    let is_found = |name: &str| name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let seeds = names(&folder).into_iter().filter(|name| !is_found(name));
    seeds.map(|seed| (seed.clone(), std::fs::read(folder.join(seed)).unwrap())).collect()
}

fn rounds(name: &str) -> usize {
    let rounds = std::env::var("ANTEROOM_FUZZ_ROUNDS").map_or(ROUNDS_DEFAULT, |text| text.parse().expect("a number"));
    if name == "arrival" { rounds.div_ceil(SCRIPT_COST) } else { rounds }
}

/// A few changes: bits, bytes and numbers at the edge; pieces cut out, doubled, moved and taken from another seed.
fn change(random: &mut SeededRandom, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..=random.below(4) {
        let (at, to) = (random.below(bytes.len() + 1), random.below(bytes.len() + 1));
        let piece = at.min(to)..at.max(to);
        match random.below(8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(piece)),
            2 => bytes.extend_from_within(piece),
            3 => drop(bytes.splice(at..at, other[..random.below(other.len() + 1)].iter().copied())),
            4 => bytes.insert(at, random.next_u64() as u8),
            5 => bytes.iter_mut().skip(at).take(4).for_each(|byte| *byte = 0xff),
            6 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = random.next_u64() as u8),
            _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
        }
        bytes.truncate(16 * 1024);
    }
}

/// Says which input it was if the decoder panics.
struct Input<'a>(&'a str, &'a str, usize);

impl Drop for Input<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("decoder {}, seed {}, change {} (0: none)", self.0, self.1, self.2);
        }
    }
}

fn replay(name: &str, decode: Decoder) {
    let seeds = seeds(name);
    assert!(!seeds.is_empty(), "{name} has no seeds");
    for (number, (seed, bytes)) in seeds.iter().enumerate() {
        assert!(bytes.len() < 4096, "{name}/{seed} is too large for a seed");
        for round in 0..=rounds(name) {
            let _input = Input(name, seed, round);
            let mut random = SeededRandom::new((number << 32 | round) as u64);
            let mut bytes = bytes.clone();
            if round > 0 {
                let other = &random.pick(&seeds).1;
                change(&mut random, &mut bytes, other);
            }
            decode(&bytes);
        }
    }
}

#[test]
fn every_decoder_has_a_target_and_seeds() {
    let decoders: BTreeSet<String> = ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&fuzz().join("fuzz_targets")), decoders);
    assert_eq!(names(&fuzz().join("corpus")), decoders);
    let manifest = std::fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    for name in decoders {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name} is not in fuzz/Cargo.toml");
    }
}

macro_rules! replays {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name), decoders::$name);
        })*

        #[test]
        fn every_decoder_is_replayed() {
            let replayed = BTreeSet::from([$(stringify!($name)),*]);
            assert_eq!(ALL.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>(), replayed);
        }
    };
}

replays! { arrival backup blob body bundle content envelope need packet payload }

/// With `ANTEROOM_FUZZ_SEEDS=write` the seeds are written anew, as after a change of a format.
#[test]
fn the_seeds_are_those_that_are_made() {
    for (name, _) in ALL {
        let (folder, made) = (fuzz().join("corpus").join(name), decoders::seeds::of(name));
        if std::env::var_os("ANTEROOM_FUZZ_SEEDS").is_some_and(|what| what == "write") {
            std::fs::create_dir_all(&folder).unwrap();
            made.iter().for_each(|(seed, bytes)| std::fs::write(folder.join(seed), bytes).unwrap());
        }
        let made: BTreeSet<String> = made.into_iter().map(|(seed, _)| seed).collect();
        let kept: BTreeSet<String> = seeds(name).into_iter().map(|(seed, _)| seed).collect();
        assert_eq!(kept, made, "{name}");
    }
}
