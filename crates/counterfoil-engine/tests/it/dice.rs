//! A reproducible source of random numbers.

/// A seeded random number generator (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Dice {
    state: u64,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `most - 1`; 0 if `most` is 0.
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        if most == 0 { 0 } else { self.next() % most }
    }

    /// A number from `least` to `most`.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// True with this probability in percent.
    pub(crate) fn percent(&mut self, times: u64) -> bool {
        self.below(100) < times
    }

    /// One of these, with equal probability.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.below(from.len() as u64);
        &from[usize::try_from(at).unwrap_or(0)]
    }

    /// One of these, by weight.
    pub(crate) fn weigh<T: Copy>(&mut self, from: &[(u64, T)]) -> T {
        let mut left = self.below(from.iter().map(|(weight, _)| weight).sum());
        for (weight, one) in from {
            if left < *weight {
                return *one;
            }
            left -= weight;
        }
        from[0].1
    }
}
