//! Chance from a seed: splitmix64, which is small enough to keep here and good enough to shuffle a test.

/// A source of numbers that depend on the seed only.
pub(super) struct DriverRandom(u64);

impl DriverRandom {
    pub(super) fn new(seed: u64) -> Self {
        DriverRandom(seed)
    }

    /// Any number.
    pub(super) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from the first to the last, both included.
    pub(super) fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.number() % (last - first + 1)
    }

    /// True once in so many times.
    pub(super) fn one_in(&mut self, times: u64) -> bool {
        self.number().is_multiple_of(times)
    }

    /// One of these.
    pub(super) fn pick<T: Copy, const N: usize>(&mut self, choices: [T; N]) -> T {
        choices[self.number() as usize % N]
    }
}
