//! The endpoint's random numbers: keys, nonces, initial sequence numbers, ports.

use rand_chacha::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};

/// A cryptographic generator: as unguessable as its seed.
pub struct Random(ChaCha12Rng);

impl Random {
    /// From a seed; the same seed gives the same numbers.
    pub fn new(seed: [u8; 32]) -> Self {
        Self(ChaCha12Rng::from_seed(seed))
    }
    /// 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }
    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}
