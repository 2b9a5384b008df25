//! Chance from a seed: the same seed, the same run.

/// A stream of numbers that looks random and is not (splitmix64).
#[derive(Clone, Debug)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// The stream of that seed.
    pub fn new(seed: u64) -> SeededRandom {
        SeededRandom(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(0x1234_5678_9ABC_DEF1))
    }

    /// The stream of one step of a run. Streams of neighbouring seeds are the same but for where they begin, so the
    /// number of the step is mixed in first.
    pub fn of_step(seed: u64, step: u64) -> SeededRandom {
        let mixed = SeededRandom::new(seed).next_u64() ^ step.wrapping_mul(0xD1B5_4A32_D192_ED03);
        SeededRandom(SeededRandom::new(mixed).next_u64())
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below a bound; zero for a bound of zero.
    pub fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { (self.next_u64() % bound as u64) as usize }
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.next_u64() % 100 < percent
    }

    /// One of them.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let at = self.below(items.len());
        &items[at]
    }

    /// Puts them in another order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            let other = self.below(at + 1);
            items.swap(at, other);
        }
    }

    /// Thirty-two bytes.
    pub fn bytes32(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for part in bytes.chunks_exact_mut(8) {
            part.copy_from_slice(&self.next_u64().to_be_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_step_draws_says_nothing_of_the_next() {
        let draws = |step| {
            let mut random = SeededRandom::of_step(7, step);
            (random.below(2), random.below(22))
        };
        let same = (0..10_000).filter(|step| draws(*step).1 % 2 == draws(step + 1).0).count();
        assert!((4700..5300).contains(&same), "{same} of 10000");
    }
}
