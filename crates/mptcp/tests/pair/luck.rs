//! Random numbers for random runs: the same for the same seed, everywhere (splitmix64).

/// The state of the generator.
#[derive(Clone)]
pub struct Luck(pub u64);

impl Luck {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of `0..bound`; 0 if that is empty.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// True with a probability of 1 in `count`.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// A random element.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}
