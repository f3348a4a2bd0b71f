//! The source of all jitter.

use anabranch_policy::Duration;
use anabranch_wire::ospf::RouterId;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Random numbers seeded by the seed and the router ID.
pub(crate) struct Random(ChaCha8Rng);

impl Random {
    pub fn new(seed: u64, router: RouterId) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed ^ u64::from(router.0) << 32))
    }

    pub fn number(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// A number from 0 to 1.
    pub fn unit(&mut self) -> f64 {
        f64::from(self.number()) / f64::from(u32::MAX)
    }

    /// A span of time up to `most`.
    pub fn span(&mut self, most: Duration) -> Duration {
        most.mul_f64(self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routers_with_one_seed_draw_different_numbers_and_each_the_same_again() {
        let draw = |router| {
            let mut random = Random::new(7, RouterId(router));
            [random.number(), random.number(), random.number()]
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn spans_stay_within_their_bound() {
        let mut random = Random::new(1, RouterId(1));
        let most = Duration::from_millis(50);
        let spans: Vec<Duration> = (0..200).map(|_| random.span(most)).collect();
        assert!(spans.iter().all(|span| *span <= most));
        assert!(spans.iter().any(|span| *span > most / 2) && spans.iter().any(|span| *span < most / 2));
    }
}
