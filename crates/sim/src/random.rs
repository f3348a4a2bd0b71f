//! Random numbers: one stream per (seed of the run, name of the component).
//!
//! The key of a stream is SHA-256 of the seed and the name; the generator is ChaCha with 8 rounds. So a component draws
//! the same numbers on every machine, regardless of other components and of the order of creation.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

#[derive(Clone, Debug)]
pub struct RandomStream {
    generator: ChaCha8Rng,
}

impl RandomStream {
    /// The stream of the component called `name` in the run with this seed. Two components of a run must not share a
    /// name, or their draws are identical.
    pub fn new(seed: u64, name: &str) -> Self {
        Self { generator: ChaCha8Rng::from_seed(derive_key(seed, name)) }
    }
    pub fn bits32(&mut self) -> u32 {
        self.generator.next_u32()
    }
    pub(crate) fn bits64(&mut self) -> u64 {
        self.generator.next_u64()
    }
    /// Uniform from 0 (included) to 1 (excluded), a multiple of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.bits64() >> 11) as f64 / (1u64 << 53) as f64
    }
    /// Uniform from `low` (included) to `high` (excluded); `low` if the range is empty.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low).max(0.0) * self.uniform()
    }
    /// Uniform integer from 0 (included) to `bound` (excluded), by the high half of a product: the bias is below
    /// `bound` / 2^64. 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits64()) * u128::from(bound)) >> 64) as u64
    }
    /// Exponentially distributed.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }
    /// True with the given probability.
    pub fn happens(&mut self, chance: Chance) -> bool {
        match chance {
            Chance::NEVER => false,
            Chance::ALWAYS => true,
            Chance(threshold) => self.bits32() < threshold,
        }
    }
    /// Index of one of `weights`, with a probability proportional to its weight.
    pub fn choice(&mut self, weights: &[f64]) -> usize {
        let mut left = self.uniform() * weights.iter().sum::<f64>();
        for (index, weight) in weights.iter().enumerate() {
            if left < *weight {
                return index;
            }
            left -= weight;
        }
        weights.len().saturating_sub(1)
    }
}

/// The key of a stream: SHA-256 over the seed (8 bytes, little-endian) and the name.
pub(crate) fn derive_key(seed: u64, name: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"anabranch random stream 1");
    hash.update(seed.to_le_bytes());
    hash.update(name.as_bytes());
    hash.finalize().into()
}

/// A probability in steps of 2^-32, so that a draw is one comparison of integers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Chance(u32);

impl Chance {
    /// Probability 0; nothing is drawn.
    pub const NEVER: Self = Self(0);
    /// Probability 1; nothing is drawn.
    pub const ALWAYS: Self = Self(u32::MAX);
    /// The step nearest to `probability`, which is clamped to 0 to 1; above 1 - 2^-32 it is 1.
    pub fn new(probability: f64) -> Self {
        Self((probability.clamp(0.0, 1.0) * 4_294_967_296.0) as u32)
    }
    pub fn is_never(self) -> bool {
        self == Self::NEVER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_depend_on_seed_and_name_only() {
        let draw = |seed, name| RandomStream::new(seed, name).bits64();
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
    }

    #[test]
    fn the_first_numbers_of_a_stream_are_the_same_on_every_machine() {
        let mut stream = RandomStream::new(7, "golden");
        assert_eq!([stream.bits64(), stream.bits64()], GOLDEN);
    }
    /// Computed by an independent program.
    const GOLDEN: [u64; 2] = [12_608_322_177_656_648_312, 11_809_260_855_049_137_447];

    #[test]
    fn an_exponential_with_mean_three_has_mean_three_and_deviation_three() {
        let mut stream = RandomStream::new(1, "exponential");
        let draws: Vec<f64> = (0..100_000).map(|_| stream.exponential(3.0)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / draws.len() as f64;
        assert!((mean - 3.0).abs() < 0.05, "{mean}");
        assert!((variance.sqrt() - 3.0).abs() < 0.06, "{variance}");
    }

    #[test]
    fn a_choice_follows_its_weights() {
        let mut stream = RandomStream::new(1, "choice");
        let mut counts = [0; 3];
        for _ in 0..60_000 {
            counts[stream.choice(&[1.0, 2.0, 3.0])] += 1;
        }
        for (count, expected) in counts.iter().zip([10_000, 20_000, 30_000]) {
            assert!(i32::abs(*count - expected) < 400, "{counts:?}");
        }
    }

    #[test]
    fn chances_of_zero_and_one_are_certain() {
        let mut stream = RandomStream::new(1, "chance");
        assert!((0..1000).all(|_| !stream.happens(Chance::new(0.0)) && stream.happens(Chance::new(1.0))));
        let hits = (0..100_000).filter(|_| stream.happens(Chance::new(0.25))).count();
        assert!((24_500..25_500).contains(&hits), "{hits}");
    }
}
